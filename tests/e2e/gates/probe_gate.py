"""Answers with the name of its folder; while there is a file `shut` in it, nothing gets through.

Each process of the domain hop gets a copy in a folder of its own, so that a test can make one slow.
"""

import asyncio
from pathlib import Path

from services.domain.agent import Agent, Answer
from services.domain.run import Run

FOLDER = Path(__file__).parent
LENGTH_S = 0.05
POLL_S = 0.02


async def run(run: Run) -> Answer:
    """Take a while, and say where."""
    await asyncio.sleep(LENGTH_S)
    while (FOLDER / "shut").exists():  # noqa: ASYNC110  # no event crosses processes
        await asyncio.sleep(POLL_S)
    run.say(FOLDER.name)
    return Answer()


AGENT = Agent(
    name="probe_gate",
    description="Waits at a gate, for tests.",
    examples=("probe the gate of a replica", "wait at the gate"),
    run=run,
)
