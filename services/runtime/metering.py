"""Counts what tenants use within a minute that slides, in this process."""

from dataclasses import dataclass

from services.runtime.clock import Clock

LENGTH_S = 60
"""How long the window is, seconds."""
REQUESTS, TOKENS = "requests", "tokens"
"""What is counted."""
MAX_IDLE_COUNT = 1_000
"""So many counters may be there before those that count nothing any more are thrown away."""
_MOMENT_S = 1e-3
"""Whoever comes back exactly then finds room, whatever rounding does."""


@dataclass(frozen=True, slots=True)
class Window:
    """Is what was counted lately: in this minute, and in the one before it.

    Of the minute before, as much counts as is still within the last 60 seconds, as if it had come
    evenly. Two numbers for each tenant are enough for that, whatever it does.
    """

    previous: int
    """What was counted in the minute before."""
    current: int
    """What has been counted in this one."""
    left_s: float
    """How long this minute still goes on, seconds."""

    @property
    def used(self) -> float:
        """Return how much counts now."""
        return self.previous * self.left_s / LENGTH_S + self.current

    def wait_s(self, limit: int) -> float:
        """Return how long until less than the limit counts if nothing is added; 0 if now."""
        if self.used < limit:
            return 0.0
        if self.current < limit:
            # The minute before moves out until what is left of it fits.
            fits_s = (limit - self.current) * LENGTH_S / self.previous
            return self.left_s - fits_s + _MOMENT_S
        # Not in this minute; in the next one it counts as the one before.
        return self.left_s + LENGTH_S * (1 - limit / self.current) + _MOMENT_S


@dataclass(slots=True)
class _Counter:
    minute: int
    previous: int = 0
    current: int = 0


class LocalMeter:
    """Counts on the clock of this process, for this process alone."""

    def __init__(self, clock: Clock) -> None:
        """Take the clock."""
        self._clock = clock
        self._counters: dict[tuple[str, str], _Counter] = {}

    async def take_request(self, tenant: str, limit: int) -> float:
        """Count one call unless that exceeds the limit; as the policy says."""
        wait_s = self.window(REQUESTS, tenant).wait_s(limit)
        if wait_s == 0:
            self.add(REQUESTS, tenant, 1)
        return wait_s

    async def token_wait_s(self, tenant: str, limit: int) -> float:
        """Return how long until fewer tokens than the limit count, seconds."""
        return self.window(TOKENS, tenant).wait_s(limit)

    def note_tokens(self, tenant: str, count: int) -> None:
        """Count tokens that were used."""
        self.add(TOKENS, tenant, count)

    def window(self, kind: str, tenant: str) -> Window:
        """Return what was counted lately."""
        minute, left_s = self._minute()
        counter = self._counters.get((kind, tenant))
        if counter is None:
            return Window(0, 0, left_s)
        _advance(counter, minute)
        return Window(counter.previous, counter.current, left_s)

    def add(self, kind: str, tenant: str, count: int) -> None:
        """Count something."""
        minute, _ = self._minute()
        counter = self._counters.get((kind, tenant))
        if counter is None:
            self._forget_idle(minute)
            counter = self._counters[kind, tenant] = _Counter(minute)
        _advance(counter, minute)
        counter.current += count

    def _minute(self) -> tuple[int, float]:
        now = self._clock.now()
        minute = int(now // LENGTH_S)
        return minute, (minute + 1) * LENGTH_S - now

    def _forget_idle(self, minute: int) -> None:
        if len(self._counters) < MAX_IDLE_COUNT:
            return
        self._counters = {
            key: counter for key, counter in self._counters.items() if counter.minute >= minute - 1
        }


def _advance(counter: _Counter, minute: int) -> None:
    """Move a counter into the present minute."""
    if counter.minute == minute:
        return
    counter.previous = counter.current if counter.minute == minute - 1 else 0
    counter.current = 0
    counter.minute = minute
