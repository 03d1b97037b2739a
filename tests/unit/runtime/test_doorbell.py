"""Holds a doorbell to waking in time, and to leaving no timer behind."""

import asyncio

import pytest

from services.runtime.doorbell import Doorbell
from tests.unit.runtime.fake_time import START, FakeTimeLoop, LoopClock, in_no_time

CLOCK = LoopClock()


async def ring_after(bell: Doorbell, *lengths_s: float) -> None:
    """Ring several times."""
    for length_s in lengths_s:
        await CLOCK.sleep(length_s)
        bell.ring()


@pytest.mark.parametrize(
    ("rings_s", "rung", "after_s"),
    [((2.0,), True, 2.0), ((2.0, 1.0), True, 2.0), ((9.0,), False, 5.0), ((), False, 5.0)],
)
def test_a_wait_ends_with_the_first_ring_or_with_its_time(
    rings_s: tuple[float, ...], rung: bool, after_s: float
) -> None:
    async def scenario() -> tuple[bool, float, int]:
        bell = Doorbell()
        ringing = asyncio.create_task(ring_after(bell, *rings_s))
        found, at = await bell.wait(5.0), CLOCK.now() - START
        ringing.cancel()
        await asyncio.wait({ringing})
        loop = asyncio.get_running_loop()
        assert isinstance(loop, FakeTimeLoop)
        return found, at, loop.timer_count()

    assert in_no_time(scenario()) == (rung, after_s, 0)


def test_a_ring_that_nobody_waits_for_is_lost_and_the_next_wait_is_whole() -> None:
    async def scenario() -> list[bool]:
        bell = Doorbell()
        bell.ring()
        first = await bell.wait(1.0)
        bell.ring()
        return [first, await bell.wait(1.0)]

    assert in_no_time(scenario()) == [False, False]


def test_a_cancelled_wait_leaves_a_bell_that_can_be_rung() -> None:
    async def scenario() -> bool:
        bell = Doorbell()
        waiting = asyncio.create_task(bell.wait(5.0))
        await CLOCK.sleep(1.0)
        waiting.cancel()
        await asyncio.wait({waiting})
        bell.ring()
        ringing = asyncio.create_task(ring_after(bell, 1.0))
        rung = await bell.wait(5.0)
        await ringing
        return rung and waiting.cancelled()

    assert in_no_time(scenario())
