"""Streams the model's text: the path gateway, routing, domain, model, provider."""

from services.domain.agent import Agent, Answer
from services.domain.run import Run
from services.runtime.conversation import Message


async def run(run: Run) -> Answer:
    """Say what the model says."""
    async with run.generate([Message("user", run.question)]) as generation:
        async for text in generation:
            run.say(text)
    return Answer(model=generation.result.model, usage=generation.result.usage)


AGENT = Agent(
    name="probe_stream",
    description="Streams the model's text, for tests.",
    examples=("probe the stream of the model", "probe what the model streams"),
    run=run,
)
