"""Blocks a thread that nothing can interrupt, as the import of a large library does."""

import time

from pydantic import BaseModel, ConfigDict

from services.tool.registry import Fallback, Tool, ToolContext, ToolResult

LENGTH_S = 1.0


class StubbornArguments(BaseModel):
    """Takes nothing."""

    model_config = ConfigDict(frozen=True, extra="forbid")


async def block(arguments: StubbornArguments, context: ToolContext) -> ToolResult:
    """Return after the thread has slept."""
    await context.run_blocking(lambda: time.sleep(LENGTH_S))
    return ToolResult({})


TOOL = Tool(
    name="stubborn",
    description="Blocks a thread, for tests.",
    arguments=StubbornArguments,
    run=block,
    timeout_s=5.0,
    max_concurrency=1,
    fallback=Fallback.NONE,
    idempotent=True,
)
