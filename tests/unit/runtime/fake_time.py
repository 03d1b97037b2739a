"""Runs event loops whose time jumps to the next timer instead of passing."""

import asyncio
import selectors
from collections.abc import Coroutine, Mapping
from datetime import UTC, datetime
from typing import Any, Protocol, TypeVar

from services.runtime.clock import MonotonicClock

START = 1000.0
"""Far from zero, so that a length taken for an instant shows."""

T = TypeVar("T")


class TimeLine(Protocol):
    """Is what moves: as grpc-testing's `Time` does it."""

    def time(self) -> float:
        """Return the instant."""
        ...

    def sleep_for(self, duration: float) -> None:
        """Move on."""
        ...


class PlainTime:
    """Is a time line that nothing else is bound to."""

    def __init__(self) -> None:
        """Begin at the start."""
        self._now = START

    def time(self) -> float:
        """Return the instant."""
        return self._now

    def sleep_for(self, duration: float) -> None:
        """Move on."""
        self._now += duration


class StuckError(Exception):
    """Says that everything waits and nothing can ever happen: in real time it would hang."""


class _JumpingSelector(selectors.DefaultSelector):
    """Never waits: moves the time line by what the loop would have slept."""

    line: TimeLine

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready: list[tuple[selectors.SelectorKey, int]] = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None:
            raise StuckError("every task waits for something that nobody will do")
        self.line.sleep_for(timeout)
        return ready


class FakeTimeLoop(asyncio.SelectorEventLoop):
    """Is an event loop on a time line; a wait of an hour takes no time."""

    def __init__(self, line: TimeLine | None = None) -> None:
        """Take the time line; a new one without."""
        self.line = line or PlainTime()
        selector = _JumpingSelector()
        selector.line = self.line
        super().__init__(selector)

    def time(self) -> float:
        """Return the instant of the time line."""
        return self.line.time()

    def timer_count(self) -> int:
        """Return how many timers are set that nobody has cancelled."""
        handles: list[asyncio.TimerHandle] = self._scheduled  # type: ignore[attr-defined]
        return sum(not handle.cancelled() for handle in handles)


class LoopClock:
    """Is the clock of whichever loop runs."""

    def now(self) -> float:
        """Return the loop's instant."""
        return asyncio.get_running_loop().time()

    def utc(self) -> datetime:
        """Return the instant as if the time line had begun in 1970."""
        return datetime.fromtimestamp(self.now(), UTC)

    async def sleep(self, length_s: float) -> None:
        """Let the loop jump."""
        await MonotonicClock().sleep(length_s)


def run_in_fake_time(played: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on a loop of its own that jumps; nothing that it leaves is ended for it."""
    loop = FakeTimeLoop()
    try:
        return loop.run_until_complete(played)
    finally:
        loop.close()


def in_no_time(scenario: Coroutine[Any, Any, T]) -> T:
    """Run a scenario on a clock that jumps, and end what it leaves, as `asyncio.run` does."""
    with asyncio.Runner(loop_factory=FakeTimeLoop) as runner:
        return runner.run(scenario)


def loop_factories() -> Mapping[str, Any]:
    """Return what pytest-asyncio makes the loops of a folder of tests with."""
    return {"fake-time": FakeTimeLoop}
