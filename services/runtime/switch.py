"""Says that another model writes a text than the one that was asked first, and why."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """Tells of one change from the first model to the one that stands in."""

    model: str
    """The model that stands in, as its hop names it; empty while it has not told."""
    error_reason: str = ""
    """The reason of the error that made it necessary; empty when the first was not asked."""
    origin_reason: str = ""
    """The reason of whoever that error began with; empty when the first was not asked."""
    problem: str = ""
    """What went wrong, for people; empty when the first was not asked."""
    voided: bool = False
    """True when text of the first model was given, and the new text replaces it."""
    continued: bool = False
    """True when the new text goes on from the text that was given."""
    compression: str = ""
    """What was left out of the conversation, in the language that was asked for; empty when all of
    it was sent."""
