"""Notices that a connection is dead by the signs of life that do not come any more.

A provider that keeps a waiting connection alive has told how often it does: when its bytes stay out
for several times as long, nobody is there any more, however long content may take. One that has
never sent a sign of life owes none: its silence is content's business alone, and that clock is the
limit on the payload, which no sign of life ever moves.
"""

import math

MIN_SILENCE_S = 15.0
"""Below this no connection is called dead: a queue's signs of life may end when the work begins."""
MISSED_COUNT = 3
"""So many signs in a row may stay out."""


class BytesClock:
    """Knows until when the next bytes of one answer must come."""

    __slots__ = ("_longest_s", "_seen_at")

    def __init__(self, now: float) -> None:
        """Begin when the answer begins."""
        self._seen_at = now
        self._longest_s = 0.0

    def see(self, now: float, *, content: bool) -> None:
        """Note that bytes have come: content, or a sign of life."""
        if not content:
            self._longest_s = max(self._longest_s, now - self._seen_at)
        self._seen_at = now

    @property
    def until(self) -> float:
        """Return the instant at which the connection is dead; infinite while none is owed."""
        if not self._longest_s:
            return math.inf
        return self._seen_at + max(MIN_SILENCE_S, MISSED_COUNT * self._longest_s)
