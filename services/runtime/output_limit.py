"""Says where a text was cut off, and whose limit that was."""

from dataclasses import dataclass
from enum import StrEnum

CUT_FINISH = "length"
"""The finish reason of a text that ends at its token limit, not at its end."""


class LimitedBy(StrEnum):
    """Says who has set the limit at which a text ends."""

    CALLER = "caller"
    """Whoever asked the model hop for the text."""
    SETTINGS = "settings"
    """The model hop's settings: what one answer of this model may have."""
    TIME = "time"
    """The model hop, because no more can be written in the time that is left."""
    PROVIDER = "provider"
    """The provider, before the limit that it was given: its window, or a limit of its own."""
    UNKNOWN = ""
    """Nobody has told."""


@dataclass(frozen=True, slots=True)
class OutputLimit:
    """Is the limit at which a text ends."""

    token_count: int
    """The limit; of a provider's own, how much it wrote."""
    limited_by: LimitedBy


def limit_that_cut(*, asked: int, allowed: int, granted: int, written: int | None) -> OutputLimit:
    """Return the limit at which a text ends that was cut off.

    Args:
        asked: the tokens that the caller asked for at most; 0 for as many as there may be.
        allowed: what was left of that by the settings.
        granted: what was left of that by the time, and what the provider was given.
        written: how many the provider says that it wrote; None when it does not say.
    """
    if written is not None and written < granted:
        return OutputLimit(written, LimitedBy.PROVIDER)
    if granted < allowed:
        return OutputLimit(granted, LimitedBy.TIME)
    whose = LimitedBy.CALLER if asked == allowed else LimitedBy.SETTINGS
    return OutputLimit(granted, whose)


def limited_by(told: str) -> LimitedBy:
    """Return who has set a limit, as it was told on the wire; a newer word tells nothing here."""
    return LimitedBy(told) if told in {each.value for each in LimitedBy} else LimitedBy.UNKNOWN
