"""Answers with a number, and has a default."""

from services.tool.registry import Fallback, Tool
from tests.e2e.moods import MoodArguments, answer

TOOL = Tool(
    name="spare",
    description="Answers with a number, for tests.",
    arguments=MoodArguments,
    run=answer,
    timeout_s=5.0,
    max_concurrency=16,
    fallback=Fallback.DEFAULT,
    default={"number": -1},
    idempotent=True,
)
