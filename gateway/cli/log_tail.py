"""Follows the log files of a suite."""

from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from services.runtime.clock import Clock

FOLLOW_INTERVAL_S = 0.2


async def follow(files: Sequence[Path], target: TextIO, clock: Clock) -> None:
    """Copy whole lines that are added to the files, from their beginning, until cancelled."""
    offsets = dict.fromkeys(files, 0)
    while True:
        for file, offset in offsets.items():
            lines, offsets[file] = new_lines(file, offset)
            target.write(lines)
        target.flush()
        await clock.sleep(FOLLOW_INTERVAL_S)


def new_lines(file: Path, offset: int) -> tuple[str, int]:
    """Return the whole lines of a file from an offset on, and the offset of what comes next."""
    if not file.exists():
        return "", offset
    with file.open("rb") as stream:
        stream.seek(offset)
        new = stream.read()
    whole = new[: new.rfind(b"\n") + 1]
    return whole.decode("utf-8", "replace"), offset + len(whole)
