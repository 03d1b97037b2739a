"""Defines what may happen to text that a run has said, when it turns out not to hold."""

from enum import StrEnum


class Delivery(StrEnum):
    """Says when a run's text reaches its reader, and whether it can be taken back."""

    RESTARTABLE = "restartable"
    """As it is said; the reader is told when it is void."""
    BUFFERED = "buffered"
    """Once the run has ended well; nobody sees what was taken back before."""
    LIVE = "live"
    """As it is said, and for good: what does not hold ends the run in an error."""
