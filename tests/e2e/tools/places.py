"""Has a number of places, each of which serves one call in a fixed time; others wait for one."""

import asyncio

from pydantic import BaseModel, ConfigDict, Field

from services.tool.registry import Fallback, Tool, ToolContext, ToolResult


class PlacesArguments(BaseModel):
    """Takes which places, and how long one is needed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    count: int = Field(ge=1)
    """How many places there are. Calls with the same number share them."""
    length_s: float = 0.0
    """How long one call needs its place."""
    tells: bool = False
    """Tells what was seen so far instead of being served."""


class _Places:
    """Counts who comes and goes, whatever becomes of the calls."""

    def __init__(self, count: int) -> None:
        self.free = asyncio.Semaphore(count)
        self.inside = self.peak = self.begun = self.done = 0


_PLACES: dict[int, _Places] = {}


async def serve(arguments: PlacesArguments, context: ToolContext) -> ToolResult:
    """Return once it has had a place for its time."""
    places = _PLACES.setdefault(arguments.count, _Places(arguments.count))
    if arguments.tells:
        return ToolResult(
            {
                "inside": places.inside,
                "peak": places.peak,
                "begun": places.begun,
                "done": places.done,
            }
        )
    places.begun += 1
    places.inside += 1
    places.peak = max(places.peak, places.inside)
    try:
        async with places.free:
            await context.clock.sleep(arguments.length_s)
    finally:
        places.inside -= 1
    places.done += 1
    return ToolResult({})


TOOL = Tool(
    name="places",
    description="Serves so many calls at once, each in a fixed time, for tests.",
    arguments=PlacesArguments,
    run=serve,
    timeout_s=10.0,
    max_concurrency=1024,
    fallback=Fallback.NONE,
    idempotent=True,
    slow_call_s=10.0,
)
"""Is one that never counts as slow: what is tested are the doors before it."""
