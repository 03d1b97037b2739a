"""Takes the longest path: gateway, routing, domain, tool, model, provider."""

from services.domain.agent import Agent, Answer
from services.domain.run import Run


async def run(run: Run) -> Answer:
    """Say what the tool `summarise` makes of the question, with the model."""
    arguments = {"instruction": "Say it again.", "text": run.question, "language": run.language}
    result = await run.tool("summarise", arguments, title="Summarise")
    run.say(str(result.data["text"]))
    return Answer(model=str(result.data["model"]))


AGENT = Agent(
    name="probe_six",
    description="Goes through all six hops, for tests.",
    examples=("probe all of the six hops", "probe the longest path"),
    run=run,
)
