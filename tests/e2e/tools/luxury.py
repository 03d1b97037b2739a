"""Answers with a number that nobody needs."""

from services.tool.registry import Fallback, Tool
from tests.e2e.moods import MoodArguments, answer

TOOL = Tool(
    name="luxury",
    description="Answers with a number, for tests.",
    arguments=MoodArguments,
    run=answer,
    timeout_s=5.0,
    max_concurrency=16,
    fallback=Fallback.SKIP,
    idempotent=True,
)
