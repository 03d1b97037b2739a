"""Defines one entry of the ledger of promises."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Requirement:
    """Says one promise."""

    sentence: str
    """What holds, in words that a user of the project understands."""
    source: str
    """Where it was promised: the design, a decision record, an issue, a specification."""
