"""Fails by its own fault after a while, or does not, as its caller says."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from services.runtime.errors import SelfUnavailableError
from services.tool.registry import Fallback, Tool, ToolContext, ToolResult


class FaultyArguments(BaseModel):
    """Takes what to do."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    log: str
    """The file that gets a line for every execution: the instant of its arrival."""
    fails: bool = True
    length_s: float = 0.0
    """How long it takes to answer or to fail."""


def note(log: Path, now: float) -> None:
    """Add a line."""
    with log.open("a", encoding="ascii") as opened:
        opened.write(f"{now}\n")


async def work(arguments: FaultyArguments, context: ToolContext) -> ToolResult:
    """Return or fail."""
    note(Path(arguments.log), context.clock.now())
    await context.clock.sleep(arguments.length_s)
    if arguments.fails:
        raise SelfUnavailableError("the engine is gone, as the test wants it")
    return ToolResult({})


TOOL = Tool(
    name="faulty",
    description="Fails when it is told to, for tests.",
    arguments=FaultyArguments,
    run=work,
    timeout_s=5.0,
    max_concurrency=16,
    fallback=Fallback.NONE,
    idempotent=True,
)
