"""Answers one read-only SQL query over the caller's data."""

from pydantic import BaseModel, ConfigDict, Field

from services.tool.interruption import Interruption
from services.tool.registry import Fallback, Group, Tool, ToolContext, ToolResult


class SqlArguments(BaseModel):
    """Takes the query."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    query: str = Field(min_length=1, max_length=20_000)
    """One SELECT statement in DuckDB's dialect; tables are named after the files."""

    max_rows: int = Field(default=1000, ge=1)
    """Most rows to return; the tool room's own `max_rows` may be lower."""


async def query(arguments: SqlArguments, context: ToolContext) -> ToolResult:
    """Return the rows of one query."""
    interruption = Interruption()
    settings = context.settings

    def work() -> ToolResult:
        # Imported here: the database and the parser take 70 MB, and an idle process does without.
        from services.tool.dataset import cached_dataset
        from services.tool.query import answer

        dataset = cached_dataset(context.sources, settings, context.cache, interruption)
        return ToolResult(
            answer(
                dataset,
                arguments.query,
                max_rows=min(arguments.max_rows, settings.max_rows),
                max_bytes=settings.max_result_bytes,
                interruption=interruption,
            )
        )

    return await context.run_blocking(
        work, interrupt=interruption, timeout_s=settings.query_timeout_s
    )


TOOL = Tool(
    name="sql",
    description="Answers one read-only SQL query over the user's CSV, Parquet or SQLite data.",
    arguments=SqlArguments,
    run=query,
    timeout_s=10.0,
    max_concurrency=4,
    # The same question over the same data: an earlier answer is old only when files have changed.
    fallback=Fallback.CACHE,
    cache_age_s=600.0,
    idempotent=True,
    group=Group.DATA,
)
