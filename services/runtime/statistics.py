"""Counts what a process is doing and how long it takes."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

WINDOW = 512
"""How many recent calls the percentiles look at."""
LAST = 5
"""How many of the last calls the maximum looks at: what a person who asks now would meet."""

MIN_SAMPLES = 20
"""With fewer recent calls their mean is chance, and what follows from it is absurd."""


@dataclass(frozen=True, slots=True)
class LatencySnapshot:
    """Describes the recent calls; lengths in seconds, zero without any."""

    average_s: float = 0.0
    p50_s: float = 0.0
    p90_s: float = 0.0
    p99_s: float = 0.0
    average_wait_s: float = 0.0
    """The part of the average that was spent waiting for dependencies."""
    work_p50_s: float = 0.0
    """The median of what was not spent waiting."""
    work_p90_s: float = 0.0
    max_last_s: float = 0.0
    """The largest of the last five."""


class Activity:
    """Holds the counters of one process. Touched by its event loop only."""

    def __init__(self) -> None:
        """Start with nothing."""
        self.inflight = 0
        """Calls being served now."""
        self.outgoing = 0
        """Attempts of calls under way now."""
        self.call_count = 0
        """Calls that have ended."""
        self.error_count = 0
        """Of these, the ones that did not end well."""
        # Apart, because the mean of the lengths is asked for often and the rest is not.
        self._lengths: deque[float] = deque(maxlen=WINDOW)
        self._waits: deque[float] = deque(maxlen=WINDOW)

    def record(self, elapsed_s: float, wait_s: float, *, failed: bool) -> None:
        """Count a call that has ended; only calls that ended well tell a latency."""
        self.call_count += 1
        if failed:
            self.error_count += 1
        else:
            self._lengths.append(elapsed_s)
            self._waits.append(wait_s)

    def average_s(self) -> float:
        """Return the mean latency of the recent calls, in seconds; 0 without any."""
        return sum(self._lengths) / max(1, len(self._lengths))

    def spare_qps(self, room: int, inflight: int) -> float | None:
        """Return how many calls per second more there are places for.

        Args:
            room: how many calls may be in flight.
            inflight: how many are.

        Returns:
            The rate; None while too few calls tell what one takes, unless no place is free.
        """
        enough = len(self._lengths) >= MIN_SAMPLES
        return spare_qps(room, inflight, self.average_s() if enough else 0.0)

    def latency(self) -> LatencySnapshot:
        """Return the view of the recent calls."""
        if not self._lengths:
            return LatencySnapshot()
        lengths = sorted(self._lengths)
        pairs = zip(self._lengths, self._waits, strict=True)
        # A wait that its call did not see the end of may seem the longer one.
        works = sorted(max(0.0, elapsed_s - wait_s) for elapsed_s, wait_s in pairs)
        return LatencySnapshot(
            average_s=self.average_s(),
            p50_s=_percentile(lengths, 0.5),
            p90_s=_percentile(lengths, 0.9),
            p99_s=_percentile(lengths, 0.99),
            average_wait_s=sum(self._waits) / len(lengths),
            work_p50_s=_percentile(works, 0.5),
            work_p90_s=_percentile(works, 0.9),
            max_last_s=max(islice(reversed(self._lengths), LAST)),
        )


def spare_qps(room: int, inflight: int, average_s: float) -> float | None:
    """Return how many calls per second more there are places for.

    Little's law: calls in flight = calls per second · what one takes on average. So the places that
    are free, divided by the average, is the rate that would fill them.

    Args:
        room: how many calls may be in flight.
        inflight: how many are.
        average_s: the mean latency, seconds; 0 is unknown.

    Returns:
        The rate, or None while it is not known what a call takes.
    """
    if inflight >= room:
        return 0.0
    return (room - inflight) / average_s if average_s > 0 else None


def _percentile(lengths: Sequence[float], part: float) -> float:
    return lengths[round((len(lengths) - 1) * part)]
