"""Makes tools that are well or sick as a file says, for tests of what is given instead."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from services.runtime.errors import SelfUnavailableError
from services.tool.registry import ToolContext, ToolResult

PROBLEM = "the engine is gone, as the test wants it"


class MoodArguments(BaseModel):
    """Takes what to answer, and where to look how the tool is."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    folder: str
    """While it holds the file `sick`, every execution fails."""
    number: int = 0


async def answer(arguments: MoodArguments, context: ToolContext) -> ToolResult:
    """Return the number, or fail."""
    if (Path(arguments.folder) / "sick").exists():
        raise SelfUnavailableError(PROBLEM)
    return ToolResult({"number": arguments.number})
