"""Keeps the lengths of the last half minute or so, and forgets them when no more come."""

from services.runtime.recent import RecentLengths

WINDOW_S = 15.0
"""How long one generation of lengths is added to; what is looked at is once to twice as old."""
MIN_COUNT = 5
"""With fewer lengths nothing is known."""
EAGER_COUNT = 25
"""So many lengths of a generation are taken as they come."""


class AgingLengths:
    """Knows the percentiles of what was added lately.

    Two generations: lengths go into the young one, which becomes the old one after a window, and is
    gone after another. So both adding and asking are cheap, and without traffic nothing is known.
    Of many lengths, those that come at even intervals are taken.
    """

    __slots__ = ("_max_count", "_old", "_until", "_window_s", "_young", "next_at")

    def __init__(self, window_s: float = WINDOW_S, max_count: int = 100) -> None:
        """Take the length of a generation, and how many lengths it looks at."""
        self._window_s = window_s
        self._max_count = max_count
        self._until = 0.0
        self.next_at = 0.0
        """Before this instant no length is taken: whoever has many need not offer them."""
        self._young = self._old = RecentLengths(max_count)

    def add(self, now: float, length_s: float) -> None:
        """Take a length, or pass it over when there are many."""
        if now < self.next_at:
            return
        if now >= self._until:
            self._turn(now)
        self._young.add(length_s)
        if len(self._young) >= EAGER_COUNT:
            self.next_at = now + self._window_s / self._max_count

    def count(self, now: float) -> int:
        """Return how many lengths are looked at."""
        if now >= self._until:
            self._turn(now)
        return len(self._looked_at())

    def percentile(self, now: float, ratio: float) -> float | None:
        """Return the length that this part of them does not exceed; None when too few are known."""
        if now >= self._until:
            self._turn(now)
        lengths = self._looked_at()
        return lengths.percentile(ratio) if len(lengths) >= MIN_COUNT else None

    def _looked_at(self) -> RecentLengths:
        # The old ones speak until there are enough of the young.
        return self._young if len(self._young) >= MIN_COUNT else self._old

    def _turn(self, now: float) -> None:
        is_next = now < self._until + self._window_s
        self._old = self._young if is_next else RecentLengths(self._max_count)
        self._young = RecentLengths(self._max_count)
        # Counted on from the end of the last one, so that looking late prolongs nothing.
        self._until = (self._until if is_next else now) + self._window_s
