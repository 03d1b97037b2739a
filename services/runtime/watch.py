"""Bounds the waits of one stream with a single timer."""

import asyncio
import math
from collections.abc import Callable

from services.runtime.call import WaitLimit
from services.runtime.clock import Clock


class Watch:
    """Calls `abort` when one wait of a stream outlives its limit.

    The time that the consumer takes between two events does not count: only what lies between
    `begin` and `end` is a wait. One timer serves the whole stream; it is moved only when it
    fires or when a limit comes nearer, so that an event costs two clock reads.
    """

    def __init__(self, clock: Clock, limit: WaitLimit, abort: Callable[[], None]) -> None:
        """Take the limits, and what ends the wait: it must make the waiter wake up."""
        self._clock = clock
        self._limit = limit
        self._abort = abort
        self._timer: asyncio.TimerHandle | None = None
        self._fires_at = math.inf
        self._until = math.inf
        self._began = 0.0
        self._cause = ""
        self.fired_cause = ""
        """The limit that fired; empty while none has."""
        self.waited_s = 0.0
        """How long the wait was that outlived its limit."""

    def begin(self) -> float:
        """Start a wait, and return the instant."""
        self._began = now = self._clock.now()
        self._until, self._cause = self._limit.next_wait_until(now)
        if self._timer is None or self._until < self._fires_at:
            self._arm()
        return now

    def end(self) -> None:
        """End a wait that stayed inside its limit."""
        self._until = math.inf

    def close(self) -> None:
        """Stop watching."""
        self._until = math.inf
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._fires_at = self._until
        delay_s = max(0.0, self._until - self._clock.now())
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._fire)

    def _fire(self) -> None:
        self._timer = None
        self._fires_at = math.inf
        if math.isinf(self._until):
            return
        now = self._clock.now()
        if now < self._until:
            self._arm()
            return
        self.fired_cause = self._cause
        self.waited_s = now - self._began
        self._until = math.inf
        self._abort()
