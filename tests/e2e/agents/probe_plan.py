"""Says what it can do without the tool that the question names, then uses it if it may."""

import json

from services.domain.agent import Agent, Answer
from services.domain.run import Run


async def run(run: Run) -> Answer:
    """Say which tools are on offer and what the tool gives."""
    name, _, arguments = run.question.partition(" ")
    out = run.leave_out_unavailable({name: "Execute"})
    offered = [tool.name for tool in run.offered()]
    result = None
    if name not in out:
        result = await run.optional(
            name, json.loads(arguments or "{}"), title="Execute", expected_s=0.1, reserve_s=0.1
        )
    run.say(json.dumps({"offered": offered, "given": result.data if result else None}))
    return Answer()


AGENT = Agent(
    name="probe_plan",
    description="Does without a tool, for tests.",
    examples=("probe a plan without a tool", "probe what is on offer"),
    run=run,
)
