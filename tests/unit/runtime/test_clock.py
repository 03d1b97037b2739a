"""Holds the clock of tests to moving only when told."""

import asyncio

from services.runtime.clock import ManualClock, MonotonicClock, busy_s


async def test_a_sleeper_wakes_when_its_time_has_come_and_not_before() -> None:
    clock = ManualClock()
    async with asyncio.TaskGroup() as group:
        sleeper = group.create_task(clock.sleep(2.0))
        await asyncio.sleep(0)

        clock.advance(1.999)
        await asyncio.sleep(0)
        early = sleeper.done()
        clock.advance(0.001)

    assert not early
    assert clock.now() == 1002.0


async def test_a_cancelled_sleeper_is_forgotten() -> None:
    clock = ManualClock()
    sleeper = asyncio.create_task(clock.sleep(2.0))
    await asyncio.sleep(0)

    sleeper.cancel()
    await asyncio.wait({sleeper})
    clock.advance(5.0)

    assert sleeper.cancelled()


async def test_a_length_that_is_over_is_one_turn_of_the_loop() -> None:
    for clock in (ManualClock(), MonotonicClock()):
        await asyncio.wait_for(clock.sleep(-1.0), 5)


def test_the_real_clock_never_goes_back() -> None:
    clock = MonotonicClock()

    instants = [clock.now() for _ in range(100)]

    assert instants == sorted(instants)
    assert clock.utc().tzinfo is not None


def test_who_computes_is_busy() -> None:
    before = busy_s()

    while busy_s() < before + 0.02:
        sum(range(1000))

    assert busy_s() >= before + 0.02
