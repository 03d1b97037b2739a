"""Holds those who watch a process to being told at once, of every change, and in bounds."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from services.runtime.background import background
from services.runtime.errors import InvalidArgumentError, LoadShedError
from services.runtime.watchers import (
    DEFAULT_INTERVAL_S,
    MAX_WATCHERS,
    READ_TIMEOUT_S,
    Watchers,
    checked_interval_s,
)
from sixhop.runtime.v1 import runtime_pb2
from tests.unit.runtime.fake_time import LoopClock

FIRST, CHANGE, INTERVAL = (
    runtime_pb2.WATCH_CAUSE_FIRST,
    runtime_pb2.WATCH_CAUSE_CHANGE,
    runtime_pb2.WATCH_CAUSE_INTERVAL,
)


class Watched:
    """Is a process that is watched, and one who watches."""

    def __init__(self, clock: LoopClock) -> None:
        """Begin in the state 0."""
        self.clock = clock
        self.state = 0
        self.draining = False
        self.built = 0
        self.taken: list[tuple[float, runtime_pb2.WatchSnapshotsResponse]] = []
        self.reads = asyncio.Event()
        self.reads.set()
        self.watchers = Watchers(clock, self._snapshot, lambda: self.state, lambda: self.draining)

    def _snapshot(self) -> runtime_pb2.GetSnapshotResponse:
        self.built += 1
        return runtime_pb2.GetSnapshotResponse(call_count=self.state)

    async def send(self, response: runtime_pb2.WatchSnapshotsResponse) -> None:
        """Take a state as soon as the reader reads."""
        await self.reads.wait()
        self.taken.append((self.clock.now(), response))

    @property
    def states(self) -> list[int]:
        """Return the states that were taken."""
        return [response.snapshot.call_count for _, response in self.taken]

    @property
    def causes(self) -> list[int]:
        """Return why each was sent."""
        return [response.cause for _, response in self.taken]


@asynccontextmanager
async def watching(clock: LoopClock, interval_s: float = 10.0) -> AsyncIterator[Watched]:
    """Watch a process while the block runs."""
    watched = Watched(clock)
    async with background(watched.watchers.serve(interval_s, watched.send)):
        yield watched


async def test_the_first_state_comes_at_once(clock: LoopClock) -> None:
    async with watching(clock) as watched:
        began = clock.now()
        await clock.sleep(0.05)

    assert (watched.states, watched.causes) == ([0], [FIRST])
    assert watched.taken[0][0] == began


async def test_a_change_is_told_within_a_look(clock: LoopClock) -> None:
    async with watching(clock) as watched:
        await clock.sleep(1.0)
        watched.state = 7
        changed_at = clock.now()
        await clock.sleep(0.25)

    assert (watched.states, watched.causes) == ([0, 7], [FIRST, CHANGE])
    assert watched.taken[1][0] - changed_at <= 0.1 + 1e-6
    assert [response.sequence for _, response in watched.taken] == [1, 2]


async def test_without_any_change_the_state_comes_as_often_as_asked(clock: LoopClock) -> None:
    async with watching(clock, 0.75) as watched:
        began = clock.now()
        await clock.sleep(2.4)

    assert watched.causes == [FIRST, INTERVAL, INTERVAL, INTERVAL]
    assert [at - began for at, _ in watched.taken] == pytest.approx([0.0, 0.75, 1.5, 2.25])


async def test_a_change_begins_the_interval_anew(clock: LoopClock) -> None:
    async with watching(clock, 1.0) as watched:
        await clock.sleep(0.55)
        watched.state = 1
        await clock.sleep(0.95)

    assert watched.causes == [FIRST, CHANGE]


async def test_a_slow_reader_gets_the_newest_state_and_nothing_is_kept_for_it(
    clock: LoopClock,
) -> None:
    async with watching(clock, 0.5) as watched:
        await clock.sleep(0.05)
        watched.reads.clear()
        for number in range(1, 50):
            watched.state = number
            await clock.sleep(0.11)
        built_meanwhile = watched.built
        watched.reads.set()
        await clock.sleep(0.15)

    # One was on its way when the reader stopped to read.
    assert built_meanwhile == 2
    assert watched.states == [0, 1, 49]


async def test_a_watch_ends_with_the_process_and_its_last_state_says_why(
    clock: LoopClock,
) -> None:
    watched = Watched(clock)
    watching = asyncio.ensure_future(watched.watchers.serve(10.0, watched.send))
    await clock.sleep(0.05)

    watched.draining, watched.state = True, 9
    await asyncio.wait_for(watching, 0.2)

    assert watched.states == [0, 9]
    assert watched.watchers.count == 0


async def test_a_watch_of_a_process_that_drains_has_one_state(clock: LoopClock) -> None:
    watched = Watched(clock)
    watched.draining = True

    await asyncio.wait_for(watched.watchers.serve(10.0, watched.send), 0.1)

    assert watched.causes == [FIRST]


async def test_only_so_many_may_watch_and_the_next_one_is_told_when_to_come_back(
    clock: LoopClock,
) -> None:
    watched = Watched(clock)
    running = [
        asyncio.ensure_future(watched.watchers.serve(10.0, watched.send))
        for _ in range(MAX_WATCHERS)
    ]
    await clock.sleep(0.05)

    with pytest.raises(LoadShedError, match="GetSnapshot") as caught:
        await watched.watchers.serve(10.0, watched.send)
    running[0].cancel()
    await asyncio.wait({running[0]})
    replaced = asyncio.ensure_future(watched.watchers.serve(10.0, watched.send))
    await clock.sleep(0.05)

    assert (caught.value.cause, caught.value.retry_after_s) == ("watchers", 5.0)
    assert watched.watchers.count == MAX_WATCHERS
    assert not replaced.done()
    for task in [*running, replaced]:
        task.cancel()
    await asyncio.wait([*running, replaced])
    assert watched.watchers.count == 0


async def test_who_never_reads_loses_the_place(clock: LoopClock) -> None:
    watched = Watched(clock)
    watched.reads.clear()
    began = clock.now()

    with pytest.raises(LoadShedError, match="read faster") as caught:
        await watched.watchers.serve(10.0, watched.send)

    assert caught.value.cause == "slow_reader"
    assert clock.now() - began == pytest.approx(READ_TIMEOUT_S)
    assert watched.watchers.count == 0


@pytest.mark.parametrize("wanted_s", [0.2, 5.0, 60.0])
def test_an_interval_in_range_is_taken(wanted_s: float) -> None:
    assert checked_interval_s(wanted_s) == wanted_s


def test_no_interval_is_the_default() -> None:
    assert checked_interval_s(None) == DEFAULT_INTERVAL_S


@pytest.mark.parametrize("wanted_s", [-1.0, 0.0, 0.19, 60.1, 1e9])
def test_an_interval_out_of_range_is_refused_with_the_range(wanted_s: float) -> None:
    with pytest.raises(InvalidArgumentError, match=r"between 0\.2 and 60 s") as caught:
        checked_interval_s(wanted_s)

    assert caught.value.field == "max_interval_duration"
