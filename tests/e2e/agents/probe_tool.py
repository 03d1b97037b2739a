"""Executes the tool that the question names, with the arguments that follow as JSON."""

import json

from services.domain.agent import Agent, Answer
from services.domain.run import Run


async def run(run: Run) -> Answer:
    """Say what the tool gives."""
    name, _, arguments = run.question.partition(" ")
    result = await run.tool(name, json.loads(arguments or "{}"), title="Execute")
    run.say(str(result.data))
    return Answer()


AGENT = Agent(
    name="probe_tool",
    description="Executes a tool, for tests.",
    examples=("probe one tool", "probe the tool of this name"),
    run=run,
)
