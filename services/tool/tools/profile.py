"""Describes the caller's data: tables, columns, types, ranges, frequent values."""

from pydantic import BaseModel, ConfigDict

from services.tool.interruption import Interruption
from services.tool.registry import Fallback, Group, Tool, ToolContext, ToolResult


class ProfileArguments(BaseModel):
    """Takes nothing: the data comes beside the arguments."""

    model_config = ConfigDict(frozen=True, extra="forbid")


async def describe(_: ProfileArguments, context: ToolContext) -> ToolResult:
    """Return a description of every table in the caller's data."""
    interruption = Interruption()

    def work() -> ToolResult:
        # Imported here: the database takes 60 MB, and an idle process does without.
        from services.tool.dataset import cached_dataset
        from services.tool.profiling import profile

        dataset = cached_dataset(context.sources, context.settings, context.cache, interruption)
        described = context.cache.get(
            ("profile", dataset.key), lambda: profile(dataset, interruption)
        )
        return ToolResult(described)

    return await context.run_blocking(work, interrupt=interruption)


TOOL = Tool(
    name="profile",
    description="Describes the tables, columns, types and typical values of the user's data.",
    arguments=ProfileArguments,
    run=describe,
    timeout_s=10.0,
    max_concurrency=4,
    fallback=Fallback.CACHE,
    cache_age_s=600.0,
    idempotent=True,
    group=Group.DATA,
)
