"""Asks the tool hop one question about data: the path gateway, routing, domain, tool."""

from services.domain.agent import Agent, Answer
from services.domain.run import Run


async def run(run: Run) -> Answer:
    """Say the rows that a query gives; the question is the query."""
    result = await run.tool("sql", {"query": run.question}, title="Query")
    run.say(str(result.data["rows"]))
    return Answer()


AGENT = Agent(
    name="probe_sql",
    description="Queries data, for tests.",
    examples=("probe the rows of a query", "probe the query tool"),
    run=run,
)
