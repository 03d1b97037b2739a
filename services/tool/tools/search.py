"""Finds sections of the shop's documents that answer a question."""

from collections.abc import Hashable
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from services.tool.fulltext import FullTextIndex, document_files, sections_of
from services.tool.registry import Fallback, Group, Tool, ToolContext, ToolResult


class SearchArguments(BaseModel):
    """Takes the question."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    query: str = Field(min_length=1, max_length=2000)
    """Words or a whole question, English or Chinese."""

    max_results: int = Field(default=5, ge=1, le=50)
    """Most sections to return."""


async def search(arguments: SearchArguments, context: ToolContext) -> ToolResult:
    """Return the sections that fit best."""
    folder = context.settings.documents_dir

    def work() -> ToolResult:
        index = context.cache.get(
            ("full text", *_state(folder)), lambda: FullTextIndex(sections_of(folder))
        )
        hits = index.find(arguments.query, arguments.max_results)
        return ToolResult(
            {
                "results": [
                    {
                        "title": hit.section.title,
                        "source": hit.section.source,
                        "snippet": hit.snippet,
                        "score": hit.score,
                        "text": hit.section.text,
                    }
                    for hit in hits
                ]
            }
        )

    return await context.run_blocking(work)


def _state(folder: Path) -> list[Hashable]:
    # A changed, new or removed document changes the state, and the index is built anew.
    if not folder.is_dir():
        return [folder]
    facts = ((file, file.stat()) for file in document_files(folder))
    return [folder, *((file, stat.st_mtime_ns, stat.st_size) for file, stat in facts)]


TOOL = Tool(
    name="search",
    description="Finds passages in the folder of documents, with their titles and sources.",
    arguments=SearchArguments,
    run=search,
    timeout_s=3.0,
    max_concurrency=8,
    fallback=(Fallback.CACHE, Fallback.SKIP),
    # Documents change by the day.
    cache_age_s=3600.0,
    idempotent=True,
    group=Group.CORE,
)
