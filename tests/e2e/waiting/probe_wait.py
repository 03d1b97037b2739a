"""Waits for something that never comes, for tests of deadlines and cancellation."""

import asyncio

from services.domain.agent import Agent, Answer
from services.domain.run import Run


async def run(run: Run) -> Answer:
    """Say a word, then wait until somebody stops it."""
    run.say("waiting")
    await asyncio.Event().wait()
    return Answer()


AGENT = Agent(
    name="probe_wait",
    description="Waits for ever, for tests.",
    examples=("probe how long one waits", "probe the patience of a client"),
    run=run,
)
