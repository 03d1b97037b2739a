"""Declares how long each dependency may be waited for."""

from typing import Any

from pydantic import Field, model_validator

from services.runtime.sections import Section


class CallSettings(Section):
    """Bounds the waits for one dependency."""

    step_timeout_s: float = Field(default=5.0, gt=0, le=600)
    """The longest wait for an answer, or for the first event of a stream, seconds; five is ample
    for what starts at once, and what does not has its own number."""
    read_timeout_s: float = Field(default=15.0, gt=0, le=600)
    """The longest wait for each later event of a stream, seconds; fifteen heartbeats that stay out
    are no accident."""
    first_content_timeout_s: float | None = Field(default=None, gt=0, le=600)
    """The longest wait for the first content of a generation, seconds; heartbeats do not extend it.
    None where content is nothing else than an event."""
    min_useful_s: float = Field(default=0.07, ge=0, le=60)
    """With less than this, in seconds, nothing is sent: the callee could not answer. Five
    hundredths are what a hop keeps for its own answer at least, and two the way to it and back on
    a busy machine."""


class CallsSettings(Section):
    """Bounds the waits, one table per dependency."""

    routing: CallSettings = CallSettings(step_timeout_s=5.0)
    """Routing answers at once with its choice; an embedding takes tens of milliseconds."""
    domain: CallSettings = CallSettings(step_timeout_s=5.0)
    """An agent tells within a second that it works."""
    tool: CallSettings = CallSettings(step_timeout_s=20.0)
    """The slowest tool writes prose with a small local model."""
    model: CallSettings = CallSettings(step_timeout_s=10.0, first_content_timeout_s=6.0)
    """Prompt reading dominates; six seconds is what a person waits for a first word."""
    model_backup: CallSettings = CallSettings(step_timeout_s=10.0, first_content_timeout_s=6.0)
    """The model that stands in for the first one, as that: a smaller one is no slower."""
    llm: CallSettings = CallSettings(step_timeout_s=5.5, read_timeout_s=14.0, min_useful_s=0.02)
    """Providers queue before the first byte. A little less than what callers wait for the model
    hop, so that it is the model hop that says who was silent."""

    @model_validator(mode="before")
    @classmethod
    def _keep_other_defaults(cls, tables: Any) -> Any:
        # Setting one limit of a dependency must not reset its others to the general defaults.
        if not isinstance(tables, dict):
            return tables
        merged = dict(tables)
        for name, table in tables.items():
            if name in cls.model_fields and isinstance(table, dict):
                merged[name] = cls.model_fields[name].default.model_dump() | table
        return merged
