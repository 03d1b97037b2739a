"""Defines the settings of the gateway."""

from pydantic import Field

from services.runtime.config import HopSettings


class GatewaySettings(HopSettings):
    """Bounds what clients may send."""

    max_question_chars: int = Field(default=8_000, ge=1)
    """The longest question, in characters; longer text belongs into a file."""
    max_source_bytes: int = Field(default=16 * 1024 * 1024, ge=1)
    """The largest data file of a question; a larger one belongs into the tool's data folder."""
    max_source_count: int = Field(default=4, ge=0)
    """The most data files of a question; so many can be compared, more are a database."""
    max_history_count: int = Field(default=400, ge=0, le=900)
    """The most messages of a history; the model hop takes a thousand, with rules and question."""
    max_history_bytes: int = Field(default=768 * 1024, ge=0)
    """The largest history, with all that belongs to its messages; the model hop takes a prompt of
    a megabyte, rules and question included."""
