"""Blocks the event loop of its process, as a tool does that waits or computes without a thread."""

import time

from pydantic import BaseModel, ConfigDict

from services.tool.registry import Fallback, Tool, ToolContext, ToolResult


class BlockerArguments(BaseModel):
    """Takes for how long, and how."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    length_s: float
    computes: bool = False
    """Uses a CPU meanwhile; else it sleeps."""


def hold(arguments: BlockerArguments) -> None:
    """Let nothing else be done for so long."""
    until = time.monotonic() + arguments.length_s
    if not arguments.computes:
        time.sleep(arguments.length_s)
    while time.monotonic() < until:
        pass


async def block(arguments: BlockerArguments, context: ToolContext) -> ToolResult:
    """Return after having held the loop up."""
    hold(arguments)
    return ToolResult({})


TOOL = Tool(
    name="blocker",
    description="Blocks the event loop, for tests.",
    arguments=BlockerArguments,
    run=block,
    timeout_s=15.0,
    max_concurrency=16,
    fallback=Fallback.NONE,
    idempotent=True,
    slow_call_s=15.0,
)
