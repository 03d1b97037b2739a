"""Waits for a file, so that a test decides how long it is slow and when it is well again."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from services.tool.registry import Fallback, Tool, ToolContext, ToolResult

POLL_S = 0.01


class HatchArguments(BaseModel):
    """Takes where to look."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    folder: str
    """Gets a byte in `arrivals` for every execution; the file `open` lets all of them go on."""


def note(log: Path) -> None:
    """Add a byte."""
    with log.open("ab") as opened:
        opened.write(b".")


async def wait(arguments: HatchArguments, context: ToolContext) -> ToolResult:
    """Return once the hatch is open."""
    folder = Path(arguments.folder)
    note(folder / "arrivals")
    while not (folder / "open").exists():
        await context.clock.sleep(POLL_S)
    return ToolResult({})


TOOL = Tool(
    name="hatch",
    description="Waits for a file, for tests.",
    arguments=HatchArguments,
    run=wait,
    timeout_s=15.0,
    max_concurrency=16,
    fallback=Fallback.NONE,
    idempotent=True,
    slow_call_s=0.25,
)
