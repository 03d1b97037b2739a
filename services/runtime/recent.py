"""Keeps what happened recently: by time, and by number."""

import math
from array import array
from bisect import bisect_left, insort


class RecentCalls:
    """Counts the calls of the last seconds in buckets of one second, with running totals.

    The totals hold for the instant of the last `add` or `move`.
    """

    __slots__ = ("_buckets", "_second", "_size", "call_count", "failure_count", "total_s")

    def __init__(self, window_s: int) -> None:
        """Take the length of the window, in whole seconds."""
        self._size = window_s
        self._buckets = [_Bucket() for _ in range(window_s)]
        self._second = 0
        self.call_count = 0
        """How many calls ended in the window."""
        self.failure_count = 0
        """How many of them failed."""
        self.total_s = 0.0
        """The sum of their lengths."""

    def add(self, now: float, length_s: float, *, failed: bool) -> None:
        """Count a call that has ended now."""
        if now >= self._second + 1:
            self.move(now)
        bucket = self._buckets[self._second % self._size]
        bucket.calls += 1
        bucket.total_s += length_s
        self.call_count += 1
        self.total_s += length_s
        if failed:
            bucket.failures += 1
            self.failure_count += 1

    def move(self, now: float) -> None:
        """Drop what is older than the window."""
        second = int(now)
        passed = second - self._second
        if passed <= 0:
            return
        for step in range(1, min(passed, self._size) + 1):
            self._drop(self._buckets[(self._second + step) % self._size])
        self._second = second

    def resize(self, window_s: int) -> None:
        """Look so far back from now on; what is known of that time stays known."""
        kept = {
            second: self._buckets[second % self._size]
            for second in range(self._second - min(window_s, self._size) + 1, self._second + 1)
        }
        for bucket in self._buckets:
            if bucket not in kept.values():
                self._drop(bucket)
        self._size = window_s
        self._buckets = [_Bucket() for _ in range(window_s)]
        for second, bucket in kept.items():
            self._buckets[second % window_s] = bucket

    def clear(self) -> None:
        """Forget everything."""
        for bucket in self._buckets:
            self._drop(bucket)

    def _drop(self, bucket: "_Bucket") -> None:
        if not bucket.calls:
            return
        self.call_count -= bucket.calls
        self.failure_count -= bucket.failures
        # What subtracting leaves behind of a sum of nothing is no length.
        self.total_s = self.total_s - bucket.total_s if self.call_count else 0.0
        bucket.calls = bucket.failures = 0
        bucket.total_s = 0.0


class _Bucket:
    """Holds what ended in one second."""

    __slots__ = ("calls", "failures", "total_s")

    def __init__(self) -> None:
        self.calls = 0
        self.failures = 0
        self.total_s = 0.0


_MAX_NEW = 32


class RecentLengths:
    """Knows the percentiles of the latest lengths; both adding and asking are cheap."""

    __slots__ = ("_latest", "_max_count", "_new", "_next", "_sorted")

    def __init__(self, max_count: int = 200) -> None:
        """Take how many lengths are looked at; the p99 needs a hundred, and old ones mislead."""
        self._max_count = max_count
        # Plain numbers, in the order of their coming and in that of their size: there are some
        # of these for every dependency, and as objects they would take three times the room.
        self._latest = array("d")
        self._sorted = array("d")
        self._next = 0
        # Those that came since somebody asked: a call must not pay for sorting, and many at once
        # cost a fraction of as many single ones.
        self._new: list[float] = []

    def __len__(self) -> int:
        """Return how many lengths there are."""
        return min(len(self._sorted) + len(self._new), self._max_count)

    def add(self, length_s: float) -> None:
        """Take a length; the oldest goes when there is no more room."""
        self._new.append(length_s)
        if len(self._new) >= _MAX_NEW:
            self._sort_in()

    def copy(self) -> "RecentLengths":
        """Return the same lengths once more, to go on from here by itself."""
        other = RecentLengths(self._max_count)
        other._latest, other._sorted = self._latest[:], self._sorted[:]
        other._next, other._new = self._next, self._new[:]
        return other

    def percentile(self, ratio: float) -> float:
        """Return the length that this part of them does not exceed; zero without any."""
        self._sort_in()
        if not self._sorted:
            return 0.0
        return self._sorted[max(0, math.ceil(ratio * len(self._sorted)) - 1)]

    def _sort_in(self) -> None:
        for length_s in self._new:
            if len(self._latest) < self._max_count:
                self._latest.append(length_s)
            else:
                oldest = self._latest[self._next]
                del self._sorted[bisect_left(self._sorted, oldest)]
                self._latest[self._next] = length_s
                self._next = (self._next + 1) % self._max_count
            insort(self._sorted, length_s)
        self._new.clear()
