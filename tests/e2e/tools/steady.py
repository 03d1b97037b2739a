"""Answers well, and always as slowly as its caller says."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from services.tool.registry import Fallback, Tool, ToolContext, ToolResult


class SteadyArguments(BaseModel):
    """Takes how slow to be."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    log: str
    """The file that gets a byte for every execution."""
    length_s: float


def note(log: Path) -> None:
    """Add a byte."""
    with log.open("ab") as opened:
        opened.write(b".")


async def work(arguments: SteadyArguments, context: ToolContext) -> ToolResult:
    """Return when the time is over."""
    note(Path(arguments.log))
    await context.clock.sleep(arguments.length_s)
    return ToolResult({})


TOOL = Tool(
    name="steady",
    description="Takes its time, for tests.",
    arguments=SteadyArguments,
    run=work,
    timeout_s=5.0,
    max_concurrency=16,
    fallback=Fallback.NONE,
    idempotent=True,
)
