"""Holds the one timer of a stream to its waits."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from services.runtime.watch import Watch
from tests.requirements import requirement
from tests.unit.runtime.fake_time import START, LoopClock

pytestmark = requirement("deadline:stream-limits")


@dataclass(slots=True)
class GapLimit:
    """Gives each wait the same length."""

    gap_s: float

    def first_wait_until(self) -> tuple[float, str]:
        return START + self.gap_s, "step_timeout"

    def next_wait_until(self, now: float) -> tuple[float, str]:
        return now + self.gap_s, "read_timeout"

    def content_arrived(self) -> None:
        """Nothing changes."""


class Aborts:
    """Remembers when it was called."""

    def __init__(self) -> None:
        self.at: list[float] = []

    def __call__(self) -> None:
        self.at.append(asyncio.get_running_loop().time() - START)


def watching(clock: LoopClock, gap_s: float, abort: Callable[[], None]) -> Watch:
    """Return a watch of a stream whose gaps are limited."""
    return Watch(clock, GapLimit(gap_s), abort)


async def test_a_wait_that_outlives_its_limit_is_ended_and_named(clock: LoopClock) -> None:
    aborts = Aborts()
    watch = watching(clock, 2.0, aborts)

    watch.begin()
    await clock.sleep(10)

    assert aborts.at == [pytest.approx(2.0)]
    assert watch.fired_cause == "read_timeout"
    assert watch.waited_s == pytest.approx(2.0)


async def test_waits_inside_their_limit_never_fire(clock: LoopClock) -> None:
    aborts = Aborts()
    watch = watching(clock, 2.0, aborts)

    for _ in range(20):
        watch.begin()
        await clock.sleep(1.9)
        watch.waiting = False
    watch.close()

    assert aborts.at == []
    assert watch.fired_cause == ""


async def test_the_time_of_the_consumer_does_not_count(clock: LoopClock) -> None:
    aborts = Aborts()
    watch = watching(clock, 2.0, aborts)

    for _ in range(3):
        watch.begin()
        await clock.sleep(1.0)
        watch.waiting = False
        await clock.sleep(60)

    assert aborts.at == []


async def test_a_wait_after_a_long_pause_has_its_whole_limit(clock: LoopClock) -> None:
    aborts = Aborts()
    watch = watching(clock, 2.0, aborts)
    watch.begin()
    watch.waiting = False

    await clock.sleep(60)
    watch.begin()
    await clock.sleep(10)

    assert aborts.at == [pytest.approx(62.0)]
    assert watch.waited_s == pytest.approx(2.0)


async def test_a_closed_watch_fires_no_more(clock: LoopClock) -> None:
    aborts = Aborts()
    watch = watching(clock, 2.0, aborts)
    watch.begin()

    watch.close()
    await clock.sleep(10)

    assert aborts.at == []


async def test_many_events_need_one_timer_and_leave_none(clock: LoopClock) -> None:
    """An event costs a clock read, not a timer."""
    loop = asyncio.get_running_loop()
    made: list[asyncio.TimerHandle] = []
    call_later = loop.call_later

    def counted(delay_s: float, *rest: Any) -> asyncio.TimerHandle:
        made.append(call_later(delay_s, *rest))
        return made[-1]

    watch = watching(clock, 2.0, Aborts())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "call_later", counted)
        for _ in range(1000):
            watch.begin()
            watch.waiting = False

    pending = [timer.cancelled() for timer in made]
    watch.close()

    assert pending == [False]
    assert made[0].cancelled()
