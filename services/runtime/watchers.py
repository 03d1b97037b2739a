"""Sends the state of a process to those who watch it, as often as it changes."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable

from services.runtime.clock import Clock
from services.runtime.errors import InvalidArgumentError, LoadShedError
from sixhop.runtime.v1 import runtime_pb2

MAX_WATCHERS = 16
"""So many may watch one process at once; each costs it a look ten times a second."""
POLL_INTERVAL_S = 0.1
"""How often is looked for a change. Much of it comes by time alone, so that nobody tells of it; and
what changes back and forth in between is one change."""
MIN_INTERVAL_S = 0.2
MAX_INTERVAL_S = 60.0
DEFAULT_INTERVAL_S = 10.0
READ_TIMEOUT_S = 10.0
"""How long a reader may leave a state lying that the transport has no room for any more."""
RETRY_AFTER_S = 5.0

Send = Callable[[runtime_pb2.WatchSnapshotsResponse], Awaitable[None]]
"""Gives a state to the transport; returns when it has taken it."""


def checked_interval_s(wanted_s: float | None) -> float:
    """Return the longest time between two states, in seconds.

    Args:
        wanted_s: what the watcher asks for; None takes the default.

    Raises:
        InvalidArgumentError: it is out of its range.
    """
    if wanted_s is None:
        return DEFAULT_INTERVAL_S
    if not MIN_INTERVAL_S <= wanted_s <= MAX_INTERVAL_S:
        raise InvalidArgumentError(
            "max_interval_duration",
            f"{wanted_s:g} s is not between {MIN_INTERVAL_S:g} and {MAX_INTERVAL_S:g} s",
        )
    return wanted_s


class Watchers:
    """Serves those who watch. Nothing is kept for a slow one: its next state is that of then."""

    def __init__(
        self,
        clock: Clock,
        snapshot: Callable[[], runtime_pb2.GetSnapshotResponse],
        fingerprint: Callable[[], Hashable],
        draining: Callable[[], bool],
    ) -> None:
        """Take where the state comes from.

        Args:
            clock: the clock.
            snapshot: returns the state now.
            fingerprint: returns what differs whenever the state has changed.
            draining: tells whether the process drains.
        """
        self._clock = clock
        self._snapshot = snapshot
        self._fingerprint = fingerprint
        self._draining = draining
        self.count = 0
        """How many watch now."""

    async def serve(self, interval_s: float, send: Send) -> None:
        """Send the state at once, after every change, and at least so often; end with the process.

        Args:
            interval_s: the longest time between two states.
            send: gives one to the watcher.

        Raises:
            LoadShedError: enough watch already, or this one does not read.
        """
        if self.count >= MAX_WATCHERS:
            raise LoadShedError(
                f"{self.count} watch this process already; end one, or ask by GetSnapshot",
                cause="watchers",
                retry_after_s=RETRY_AFTER_S,
            )
        self.count += 1
        try:
            await self._serve(interval_s, send)
        finally:
            self.count -= 1

    async def _serve(self, interval_s: float, send: Send) -> None:
        cause, sequence = runtime_pb2.WATCH_CAUSE_FIRST, 0
        while True:
            told, draining = self._fingerprint(), self._draining()
            due = self._clock.now() + interval_s
            sequence += 1
            await self._send(sequence, cause, send)
            # Only after the state was sent that says so: the last one tells why it is the last.
            if draining:
                return
            cause = await self._wait_for_news(told, due)

    async def _wait_for_news(self, told: Hashable, due: float) -> runtime_pb2.WatchCause.ValueType:
        """Return when there is something to tell, and why."""
        while True:
            left_s = due - self._clock.now()
            if left_s <= 0:
                return runtime_pb2.WATCH_CAUSE_INTERVAL
            await self._clock.sleep(min(POLL_INTERVAL_S, left_s))
            if self._draining() or self._fingerprint() != told:
                return runtime_pb2.WATCH_CAUSE_CHANGE

    async def _send(
        self, sequence: int, cause: runtime_pb2.WatchCause.ValueType, send: Send
    ) -> None:
        state = runtime_pb2.WatchSnapshotsResponse(
            sequence=sequence, cause=cause, snapshot=self._snapshot()
        )
        try:
            async with asyncio.timeout(READ_TIMEOUT_S):
                await send(state)
        except TimeoutError:
            raise LoadShedError(
                f"the watcher has not read for {READ_TIMEOUT_S:g} s; read faster",
                cause="slow_reader",
                retry_after_s=RETRY_AFTER_S,
            ) from None
