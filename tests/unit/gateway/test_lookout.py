"""Holds the watch of the suite to whom it watches, when, and what it makes of silence."""

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import pytest

from gateway.backoff import Backoff, BackoffConfig
from gateway.state import lookout as subject
from gateway.state.lookout import LINGER_S, MAX_LOOKS, Lookout, Process, UnheardError
from gateway.state.view import NOT_SERVING, SERVING, SILENT, UNKNOWN, UNREACHABLE
from services.runtime.background import background
from services.runtime.clock import ManualClock
from services.runtime.errors import LoadShedError
from services.runtime.telemetry import DEFECT
from sixhop.runtime.v1 import runtime_pb2
from tests.logged import logged
from tests.waiting import until

Told = runtime_pb2.GetSnapshotResponse | Exception | None


class Source:
    """Is a process that tells what a test wants it to."""

    def __init__(self, hop: str) -> None:
        """Take the hop."""
        self.hop = hop
        self.asked = 0
        self.open = 0
        self._told: asyncio.Queue[Told] = asyncio.Queue()

    def tell(self, *, ready: bool = True, inflight: int = 0) -> None:
        """Tell a state."""
        state = runtime_pb2.GetSnapshotResponse(hop=self.hop, ready=ready, inflight_count=inflight)
        self._told.put_nowait(state)

    def fail(self, error: Exception) -> None:
        """Be heard no more."""
        self._told.put_nowait(error)

    def drain(self) -> None:
        """End the stream."""
        self._told.put_nowait(None)

    async def states(self) -> AsyncGenerator[runtime_pb2.GetSnapshotResponse, None]:
        """Yield what is told."""
        self.asked += 1
        self.open += 1
        try:
            while (told := await self._told.get()) is not None:
                if isinstance(told, Exception):
                    raise told
                yield told
        finally:
            self.open -= 1


class Watched:
    """Is a suite of two processes with what watches it."""

    def __init__(self, clock: ManualClock) -> None:
        """Take the clock."""
        self.domain, self.tool = Source("domain"), Source("tool")
        self.clock = clock
        config = BackoffConfig(initial_s=0.5, max_s=5.0, jitter_ratio=0.0)
        self.lookout = Lookout(
            [
                Process(hop=each.hop, address=f"{each.hop}:1", states=each.states)
                for each in (self.domain, self.tool)
            ],
            clock,
            lambda: Backoff(config, random.Random(1)),
        )

    def states(self) -> list[str]:
        """Return how each process does."""
        return [view["state"] for view in self.lookout.views]

    async def shows(self, *states: str) -> None:
        """Wait until the processes do so."""
        await until(lambda: self.states() == list(states))


@asynccontextmanager
async def running(clock: ManualClock) -> AsyncIterator[Watched]:
    """Run the watch of a suite."""
    watched = Watched(clock)
    async with background(watched.lookout.run()):
        yield watched


async def test_nobody_is_asked_until_somebody_looks(clock: ManualClock) -> None:
    async with running(clock) as suite:
        await asyncio.sleep(0)
        before = suite.domain.asked
        async with suite.lookout.looking():
            await until(lambda: suite.domain.open + suite.tool.open == 2)

    assert before == 0
    assert suite.states() == [UNKNOWN, UNKNOWN]


async def test_who_looks_is_shown_everything_first_and_then_what_changes(
    clock: ManualClock,
) -> None:
    async with running(clock) as suite, suite.lookout.looking() as look:
        first = await look.next()
        suite.tool.tell(inflight=3)
        second = await look.next()
        suite.tool.tell(ready=False)
        third = await look.next()

    assert (first, second, third) == ([0, 1], [1], [1])


async def test_who_reads_slowly_is_shown_how_things_are_by_then(clock: ManualClock) -> None:
    async with running(clock) as suite, suite.lookout.looking() as look:
        await look.next()
        for count in range(5):
            suite.tool.tell(inflight=count)
        suite.domain.tell()
        await until(lambda: suite.lookout.views[1]["inflight"] == 4)
        await suite.shows(SERVING, SERVING)

        assert await look.next() == [0, 1]


async def test_the_watch_goes_on_for_a_while_after_the_last_look_and_then_forgets(
    clock: ManualClock,
) -> None:
    async with running(clock) as suite:
        async with suite.lookout.looking():
            suite.domain.tell()
            await suite.shows(SERVING, UNKNOWN)
            clock.advance(LINGER_S * 3)
            await asyncio.sleep(0)
            kept = suite.domain.open
        clock.advance(LINGER_S / 2)
        await asyncio.sleep(0)
        lingering = suite.domain.open
        await until(lambda: _advanced_until_closed(clock, suite))
        await suite.shows(UNKNOWN, UNKNOWN)
        async with suite.lookout.looking():
            await until(lambda: suite.domain.open == 1)

    assert (kept, lingering, suite.domain.asked) == (1, 1, 2)


def _advanced_until_closed(clock: ManualClock, suite: Watched) -> bool:
    clock.advance(1.0)
    return suite.domain.open == 0


@pytest.mark.parametrize("state", [UNREACHABLE, SILENT])
async def test_a_process_that_is_not_heard_is_shown_so_and_asked_again_until_it_is(
    clock: ManualClock, state: str
) -> None:
    async with running(clock) as suite, suite.lookout.looking():
        suite.tool.tell()
        suite.domain.fail(UnheardError(state, "why"))
        await suite.shows(state, SERVING)
        detail = suite.lookout.views[0]["detail"]
        asked = suite.domain.asked
        clock.advance(0.5)
        await until(lambda: suite.domain.asked == 2)
        still = suite.states()
        suite.domain.tell()
        await suite.shows(SERVING, SERVING)

    assert (asked, detail, still) == (1, "why", [state, SERVING])


async def test_a_process_that_drains_is_shown_so(clock: ManualClock) -> None:
    async with running(clock) as suite, suite.lookout.looking():
        suite.domain.drain()
        await suite.shows(NOT_SERVING, UNKNOWN)

        assert suite.lookout.views[0]["detail"] == "it drains"


async def test_a_process_that_says_to_be_another_hop_does_not_serve(clock: ManualClock) -> None:
    async with running(clock) as suite, suite.lookout.looking():
        suite.domain.hop = "tool"
        suite.domain.tell()
        await suite.shows(NOT_SERVING, UNKNOWN)

        assert "this is the hop tool" in suite.lookout.views[0]["detail"]


async def test_what_one_process_sends_does_not_end_the_watch_of_the_others(
    clock: ManualClock,
) -> None:
    with logged() as log:
        async with running(clock) as suite, suite.lookout.looking():
            suite.domain.fail(ValueError("no number"))
            suite.tool.tell()
            await suite.shows(UNREACHABLE, SERVING)
        (line,) = log.lines()

    assert line["event"] == DEFECT


async def test_who_asks_once_waits_until_every_process_has_told(clock: ManualClock) -> None:
    async with running(clock) as suite:
        asking = asyncio.create_task(suite.lookout.glimpse())
        await until(lambda: suite.domain.open + suite.tool.open == 2)
        suite.domain.tell()
        suite.tool.fail(UnheardError(UNREACHABLE, "nobody listens there"))
        views = await asking

    assert [view["state"] for view in views] == [SERVING, UNREACHABLE]


async def test_who_asks_once_does_not_wait_for_long(
    clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subject, "GLIMPSE_S", 0.01)
    async with running(clock) as suite:
        suite.domain.tell()
        views = await suite.lookout.glimpse()

    assert [view["state"] for view in views] == [SERVING, UNKNOWN]


async def test_so_many_may_look_and_one_more_is_refused(clock: ManualClock) -> None:
    async with running(clock) as suite:
        opened = [suite.lookout.looking() for _ in range(MAX_LOOKS)]
        for each in opened:
            await each.__aenter__()
        with pytest.raises(LoadShedError, match="close one"):
            async with suite.lookout.looking():
                pass
        await opened[0].__aexit__(None, None, None)
        async with suite.lookout.looking():
            pass


async def test_when_the_gateway_drains_every_look_ends(clock: ManualClock) -> None:
    async with running(clock) as suite, suite.lookout.looking() as look:
        await look.next()
        suite.lookout.end()

        assert await look.next() is None
