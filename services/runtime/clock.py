"""Reads time, the only file that does."""

import asyncio
import time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Protocol


class Clock(Protocol):
    """Tells instants and lengths. All lengths are seconds on a monotonic scale."""

    def now(self) -> float:
        """Return the present instant; only differences mean something."""
        ...

    def utc(self) -> datetime:
        """Return the date and time of day in UTC, for logs and for people."""
        ...

    async def sleep(self, length_s: float) -> None:
        """Wait for a length; zero and less return at the next turn of the loop."""
        ...


class MonotonicClock:
    """Reads the machine's clocks."""

    __slots__ = ()

    # Not methods around them: every call reads the clock ten times.
    now = staticmethod(time.monotonic)
    """Return the present instant of the monotonic clock."""

    utc = staticmethod(partial(datetime.now, UTC))
    """Return the date and time of day in UTC."""

    async def sleep(self, length_s: float) -> None:
        """Wait for a length."""
        await asyncio.sleep(max(0.0, length_s))


wall_s = time.time
"""Returns the seconds since the epoch by the machine's clock, which is how gRPC wants deadlines."""


def process_cpu_s() -> float:
    """Return the CPU time that this process has used since its start, seconds."""
    return time.process_time()


class ManualClock:
    """Moves only when a test says so, and wakes those that sleep."""

    def __init__(self, start: float = 1000.0) -> None:
        """Start at an instant; the default is far from zero, so that mixing lengths shows."""
        self._now = start
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def now(self) -> float:
        """Return the instant that the test has set."""
        return self._now

    def utc(self) -> datetime:
        """Return the instant as if the scale had begun in 1970."""
        return datetime.fromtimestamp(self._now, UTC)

    async def sleep(self, length_s: float) -> None:
        """Wait until the test has advanced the clock by the length."""
        if length_s <= 0:
            await asyncio.sleep(0)
            return
        waiter = asyncio.get_running_loop().create_future()
        entry = (self._now + length_s, waiter)
        self._sleepers.append(entry)
        try:
            await waiter
        finally:
            if entry in self._sleepers:
                self._sleepers.remove(entry)

    def advance(self, length_s: float) -> None:
        """Move the clock forward and wake whoever is due."""
        self._now += length_s
        for until, waiter in list(self._sleepers):
            if until <= self._now and not waiter.done():
                waiter.set_result(None)


def busy_s() -> float:
    """Return how long this process has used a CPU, or its main thread has waited for one.

    Only differences mean something. A process that was stopped has done neither. The wait is told
    by Linux alone; elsewhere it counts as nothing.
    """
    return time.process_time() + _waited_for_cpu_s()


def _waited_for_cpu_s() -> float:
    try:
        # Of the main thread: nanoseconds on a CPU, nanoseconds ready to run, times it ran.
        fields = Path("/proc/self/schedstat").read_bytes().split()
    except OSError:
        return 0.0
    return int(fields[1]) / 1e9
