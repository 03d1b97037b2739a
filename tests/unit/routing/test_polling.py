"""Holds polls to their rhythm: seldom while all is well, soon for whom nobody finds."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise

import pytest

from services.routing.board import HealthBoard
from services.routing.config import BoardSettings
from services.routing.polling import JITTER_RATIO, LOOK_INTERVAL_S, MAX_BACKOFF, Poller
from services.routing.record import PolledState
from services.runtime.clock import ManualClock
from services.runtime.errors import DependencyFailedError, Origin
from tests.logged import logged
from tests.requirements import requirement
from tests.unit.routing.boards import A, B, polled

AWAY = DependencyFailedError(
    "domain", "cannot be reached", cause="unreachable", origin=Origin("domain")
)
SETTINGS = BoardSettings()


@dataclass(slots=True)
class Hop:
    """Answers polls as the test says, and notes when they came."""

    clock: ManualClock
    away: set[str] = field(default_factory=set)
    unready: set[str] = field(default_factory=set)
    hanging: set[str] = field(default_factory=set)
    asked: dict[str, list[float]] = field(default_factory=dict)
    board: HealthBoard = field(init=False)

    def __post_init__(self) -> None:
        self.board = HealthBoard((A, B), SETTINGS, self.clock, random.Random(3))

    async def ask(self, address: str) -> PolledState:
        """Answer one poll."""
        self.asked.setdefault(address, []).append(self.clock.now())
        if address in self.hanging:
            await asyncio.Event().wait()
        if address in self.away:
            raise AWAY
        return polled(pod=f"pod of {address}", ready=address not in self.unready, detail="starting")

    def pauses(self, address: str) -> list[float]:
        """Return the times between polls."""
        came = self.asked[address]
        return [later - sooner for sooner, later in pairwise(came)]

    @asynccontextmanager
    async def polling(self) -> AsyncIterator[None]:
        """Poll while the block runs."""
        poller = Poller(self.board, self.ask, SETTINGS, self.clock, random.Random(3))
        async with poller.polling():
            await self.wait(0.0)
            yield

    async def wait(self, length_s: float) -> None:
        """Let time pass in small steps, as it does."""
        step_s = LOOK_INTERVAL_S / 5
        for _ in range(round(length_s / step_s) + 1):
            for _ in range(4):
                await asyncio.sleep(0)
            self.clock.advance(step_s)


@requirement("board:polls")
async def test_well_replicas_are_asked_twice_a_minute_and_not_in_step(clock: ManualClock) -> None:
    hop = Hop(clock)

    async with hop.polling():
        await hop.wait(300)

    pauses = [*hop.pauses(A), *hop.pauses(B)]
    low, high = (SETTINGS.poll_interval_s * (1 + sign * JITTER_RATIO) for sign in (-1, 1))
    assert all(low <= pause <= high + LOOK_INTERVAL_S for pause in pauses), pauses
    assert hop.pauses(A) != hop.pauses(B)
    assert hop.board.records[A].pod == f"pod of {A}"


@requirement("board:polls")
@pytest.mark.parametrize("how", ["away", "unready"])
async def test_one_that_is_away_is_asked_soon_and_then_less_often(
    clock: ManualClock, how: str
) -> None:
    hop = Hop(clock)
    getattr(hop, how).add(B)

    async with hop.polling():
        await hop.wait(60)
        sick = hop.board.records[B].sick(clock.now())
        pauses = hop.pauses(B)
        hop.away.clear()
        hop.unready.clear()
        await hop.wait(MAX_BACKOFF * SETTINGS.recheck_interval_s * 1.5)
        back = hop.board.records[B].sick(clock.now())

    assert sick == ("cannot be reached" if how == "away" else "not ready: starting")
    assert pauses[0] <= 1.3 * SETTINGS.recheck_interval_s
    assert max(pauses) <= 1.3 * MAX_BACKOFF * SETTINGS.recheck_interval_s
    assert back == ""


async def test_a_run_that_finds_nobody_has_the_replica_asked_at_once(clock: ManualClock) -> None:
    hop = Hop(clock)

    async with hop.polling():
        await hop.wait(2)
        before = len(hop.asked[B])
        hop.board.records[B].take_silence("unreachable", clock.now())
        await hop.wait(2 * LOOK_INTERVAL_S)
        after = len(hop.asked[B])

    assert (before, after) == (1, 2)
    assert not hop.board.records[B].away


@requirement("board:polls")
async def test_one_that_hangs_keeps_no_other_from_being_asked_and_is_asked_once(
    clock: ManualClock,
) -> None:
    hop = Hop(clock)
    hop.hanging.add(B)

    async with hop.polling():
        await hop.wait(100)

    assert len(hop.asked[A]) >= 3
    assert len(hop.asked[B]) == 1


async def test_going_away_and_coming_back_are_told_once_each(clock: ManualClock) -> None:
    hop = Hop(clock)
    hop.away.add(B)

    with logged() as log:
        async with hop.polling():
            await hop.wait(30)
            hop.away.clear()
            await hop.wait(30)

    told = [(line["event"], line["replica"]) for line in log.lines()]
    assert told == [("replica_away", B), ("replica_back", B)]
