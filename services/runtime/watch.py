"""Bounds the waits of one stream with a single timer."""

import asyncio
from collections.abc import Callable

from services.runtime.call import WaitLimit
from services.runtime.clock import Clock


class Watch:
    """Calls `abort` when one wait of a stream outlives its limit.

    The time that the consumer takes between two events does not count: a wait is only what lies
    between `begin` and the end of `waiting`. One timer serves the whole stream, and the limit of a
    wait is asked for only when it fires: a later wait never has to end sooner, so an event costs a
    clock read.
    """

    def __init__(self, clock: Clock, limit: WaitLimit, abort: Callable[[], None]) -> None:
        """Take the limits, and what ends the wait: it must make the waiter wake up."""
        self._clock = clock
        self._limit = limit
        self._abort = abort
        self._timer: asyncio.TimerHandle | None = None
        self._began = 0.0
        self.waiting = False
        """Whether a wait is under way; who reads sets it to False when it is over."""
        self.fired_cause = ""
        """The limit that fired; empty while none has."""
        self.waited_s = 0.0
        """How long the wait was that outlived its limit."""

    def begin(self) -> float:
        """Start a wait, and return the instant."""
        self._began = now = self._clock.now()
        self.waiting = True
        if self._timer is None:
            self._arm(now, self._limit.next_wait_until(now)[0])
        return now

    def close(self) -> None:
        """Stop watching."""
        self.waiting = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self, now: float, until: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(max(0.0, until - now), self._fire)

    def _fire(self) -> None:
        self._timer = None
        if not self.waiting:
            return
        now = self._clock.now()
        until, cause = self._limit.next_wait_until(self._began)
        if now < until:
            self._arm(now, until)
            return
        self.fired_cause = cause
        self.waited_s = now - self._began
        self.waiting = False
        self._abort()
