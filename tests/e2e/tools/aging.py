"""Answers with a number that may be given again for a while."""

from services.tool.registry import Fallback, Tool
from tests.e2e.moods import MoodArguments, answer

TOOL = Tool(
    name="aging",
    description="Answers with a number, for tests.",
    arguments=MoodArguments,
    run=answer,
    timeout_s=5.0,
    max_concurrency=16,
    fallback=Fallback.CACHE,
    cache_age_s=600.0,
    idempotent=True,
)
