"""Cuts the work of calls off when their hop has to answer by itself."""

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import Any, Self, TypeVar

from services.runtime.call import Inbound
from services.runtime.clock import Clock

T = TypeVar("T")

GRAIN_S = 0.001
"""Timers of an event loop come up to so much too early."""


def cancel_asked() -> bool:
    """Tell whether somebody has cancelled the task that runs.

    Without that a CancelledError comes from what was awaited, and must not go on as one: gRPC would
    send no status at all.
    """
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class Cutoffs:
    """Cuts off all calls of a process, with one timer for all of them.

    Almost every call ends before its time and never needs a timer. So the one there is is set for
    the call whose instant comes first, and looked after only when it fires: a call costs a place in
    a dictionary, where a timer of its own costs a hop a fiftieth of its CPU.
    """

    def __init__(self, clock: Clock) -> None:
        """Take the clock."""
        self._clock = clock
        self._running: dict[Cutoff, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._fires_at = math.inf

    def __len__(self) -> int:
        """Return how many calls are being watched."""
        return len(self._running)

    def begin(
        self,
        at: float,
        inbound: Inbound,
        error: Callable[[Inbound], Exception],
        waiter: asyncio.Task[Any] | None = None,
    ) -> "Cutoff":
        """Return what ends a call from an instant on; it counts from now, and until it is left.

        Args:
            at: the instant.
            inbound: the call; it holds what is returned while it counts, and learns what it was
                waiting for when it was cut off.
            error: makes what a wait raises that was cut off.
            waiter: the task that does nothing but wait from now on; without one `Cutoff.bound` is
                told of each wait.
        """
        inbound.cutoff = cutoff = Cutoff(self, at, inbound, error, waiter)
        self._running[cutoff] = None
        if at < self._fires_at:
            self._arm(at)
        return cutoff

    def end(self, cutoff: "Cutoff") -> None:
        """Forget a call."""
        self._running.pop(cutoff, None)
        # Not left to the collector of garbage: what is free at once is used again while it is warm.
        cutoff.inbound.cutoff = None

    def _arm(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._fires_at = at
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(max(0.0, at - self._clock.now()), self._fire)

    def _fire(self) -> None:
        self._timer = None
        self._fires_at = math.inf
        now = self._clock.now() + GRAIN_S
        for cutoff in [each for each in self._running if each.at <= now]:
            del self._running[cutoff]
            cutoff.fire()
        if self._running:
            self._arm(min(each.at for each in self._running))


class Cutoff:
    """Ends what a call waits for, from one instant on.

    Does what asyncio.timeout does, once for all waits of a call: a stream waits once for each of
    its events. What happens between two waits does not count until the next begins.
    """

    __slots__ = ("_all", "_cancels", "_error", "_passed", "_waiter", "at", "cut", "inbound")

    def __init__(
        self,
        cutoffs: Cutoffs,
        at: float,
        inbound: Inbound,
        error: Callable[[Inbound], Exception],
        waiter: asyncio.Task[Any] | None,
    ) -> None:
        """Take what `Cutoffs.begin` was given."""
        self.at = at
        self._all = cutoffs
        self.inbound = inbound
        self._error = error
        self._waiter = waiter
        self._cancels = waiter.cancelling() if waiter is not None else 0
        self._passed = False
        self.cut = False
        """Whether it has cancelled the task that waits, and has not taken that back."""

    async def bound(self, work: Awaitable[T]) -> T:
        """Await work until the instant.

        Raises:
            Exception: the one that was given, when the instant came first.
        """
        waiter = self._waiter = asyncio.current_task()
        self._cancels = waiter.cancelling() if waiter is not None else 0
        if self._passed:
            # The work begins all the same: it may have its answer ready.
            asyncio.get_running_loop().call_soon(self._cancel)
        try:
            return await work
        except asyncio.CancelledError:
            self.raise_own()
            raise
        finally:
            if self.cut:
                self.take_back()
            self._waiter = None

    def raise_own(self) -> None:
        """Raise the error that was given when a wait was cancelled by this, and by nobody else."""
        # One cancel more than before is ours; another one is the caller's and goes on.
        if self.cut and self._waiter is not None and self._waiter.cancelling() <= self._cancels + 1:
            raise self._error(self.inbound) from None

    def take_back(self) -> None:
        """Take back the cancel, once it has done what it was for."""
        self.cut = False
        if self._waiter is not None:
            self._waiter.uncancel()

    def __enter__(self) -> Self:
        """Return itself: it counts already."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop counting."""
        self._all.end(self)

    def cancel(self, error: Callable[[Inbound], Exception]) -> None:
        """Cut off now, whatever the instant; what is waited for raises the error that is made."""
        self._error = error
        self._all.end(self)
        self.fire()

    def fire(self) -> None:
        """Cut off: the instant has come."""
        self._passed = True
        self._cancel()

    def _cancel(self) -> None:
        if self._waiter is not None and not self.cut:
            self.cut = True
            self.inbound.note_cut()
            self._waiter.cancel()
