"""Executes the tool that the question names, after work of its own."""

import asyncio
from pathlib import Path

from services.domain.agent import Agent, Answer
from services.domain.run import Run
from services.runtime.errors import SelfUnavailableError
from tests.e2e.mesh.leaf import MOOD, mood

FOLDER = Path(__file__).parent


async def run(run: Run) -> Answer:
    """Say what the tool gives."""
    length_s, fails = mood(FOLDER / MOOD, 0.0)
    if fails:
        # A stream that has begun: no sidecar sees how it ends.
        run.say("once")
        raise SelfUnavailableError("the agent is gone, as the test wants it")
    await asyncio.sleep(length_s)
    result = await run.tool(run.question, {}, title="Execute")
    run.say(str(result.data["pod"]))
    return Answer()


AGENT = Agent(
    name="relay",
    description="Executes a tool, for tests.",
    examples=("relay to one tool", "execute the tool of this name"),
    run=run,
)
