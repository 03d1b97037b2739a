"""Shows that the loops of these tests jump, and that a test that would hang fails."""

import asyncio

import pytest

from tests.unit.runtime.fake_time import START, FakeTimeLoop, LoopClock, StuckError


async def test_an_hour_passes_at_once(clock: LoopClock) -> None:
    await clock.sleep(3600)

    assert clock.now() == START + 3600


async def test_the_nearest_timer_comes_first(clock: LoopClock) -> None:
    fired: list[str] = []
    loop = asyncio.get_running_loop()
    loop.call_later(2, fired.append, "later")
    loop.call_later(1, fired.append, "sooner")

    await clock.sleep(3)

    assert fired == ["sooner", "later"]


def test_a_wait_that_nobody_ends_is_an_error_and_not_a_hang() -> None:
    with asyncio.Runner(loop_factory=FakeTimeLoop) as runner, pytest.raises(StuckError):
        runner.run(_wait_for_ever())


async def _wait_for_ever() -> None:
    await asyncio.Event().wait()
