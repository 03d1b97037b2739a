"""Leaves the model's stream after its first piece, as an agent may that has heard enough."""

from services.domain.agent import Agent, Answer
from services.domain.run import Run
from services.runtime.conversation import Message


async def run(run: Run) -> Answer:
    """Say the first piece of what the model says."""
    async with run.generate([Message("user", run.question)]) as generation:
        async for text in generation:
            run.say(text)
            break
    return Answer()


AGENT = Agent(
    name="probe_early",
    description="Leaves the model's stream early, for tests.",
    examples=("probe a stream that is left", "probe leaving early"),
    run=run,
)
