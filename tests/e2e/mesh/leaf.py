"""Makes the tool that stands at the end of the path, and is well or sick as a file says.

Each pod has a copy of the file in a folder of its own, so that a test can make one of them sick.
"""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from services.runtime.errors import SelfUnavailableError
from services.tool.registry import ToolContext, ToolResult

MOOD, ARRIVALS = "mood.json", "arrivals"
WELL_S = 0.01
"""How long it takes when it is well."""
HEAVY_S = 0.3
"""The same, for the tool that has more to do."""


class LeafArguments(BaseModel):
    """Takes what makes one call differ from another."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    number: int = 0


Work = Callable[[LeafArguments, ToolContext], Awaitable[ToolResult]]


def leaf(folder: Path, well_s: float = WELL_S) -> Work:
    """Return the work of the tool whose copy lies in a folder, and what it takes when well."""

    async def work(arguments: LeafArguments, context: ToolContext) -> ToolResult:
        note(folder / ARRIVALS)
        length_s, fails = mood(folder / MOOD, well_s)
        await context.clock.sleep(length_s)
        if fails:
            raise SelfUnavailableError("the engine is gone, as the test wants it")
        return ToolResult({"pod": folder.name, "number": arguments.number})

    return work


def note(log: Path) -> None:
    """Add a byte."""
    with log.open("ab") as opened:
        opened.write(b".")


def mood(path: Path, well_s: float) -> tuple[float, bool]:
    """Return how long to take, in seconds, and whether to fail then."""
    if not path.exists():
        return well_s, False
    told = json.loads(path.read_text())
    return float(told.get("length_s", well_s)), bool(told.get("fails", False))
