"""Holds the wait for a permit to being no time of the callee's, whoever measures that."""

import asyncio
from dataclasses import replace

import pytest

from services.runtime.circuit import BreakerState
from services.runtime.errors import SixhopError
from tests.unit.runtime.policies.client_samples import SQL
from tests.unit.runtime.scripted import Pause
from tests.unit.runtime.wired import KEY, MODEL, ONE_PERMIT, Tables, wired

FOUR_PERMITS: Tables = {"bulkhead": {"core": {"permits": 4, "max_queued": 8}}}


async def test_the_wait_for_a_permit_is_no_latency_of_the_callee() -> None:
    hop = wired((0.1, None), tables=[ONE_PERMIT])
    for _ in range(10):
        await asyncio.gather(hop.ask(), hop.ask(), hop.ask())

    adaptive = hop.policies.adaptive.snapshot()[KEY]
    assert adaptive.sample_count == 30
    assert adaptive.p99_s == pytest.approx(0.1)
    # The wait is a part of what the attempt was given, though.
    waited = max(hop.callee.sent, key=lambda sent: sent.at - hop.callee.sent[0].at)
    assert waited.given_s < hop.callee.sent[0].given_s


async def test_the_wait_for_a_permit_does_not_make_a_callee_slow() -> None:
    hop = wired((0.25, None), tables=[FOUR_PERMITS])
    quick = replace(SQL, slow_call_s=0.36)

    for _ in range(4):
        await asyncio.gather(*(hop.ask(callee=quick) for _ in range(8)))

    breaker = hop.policies.breakers.snapshot()[KEY]
    assert breaker.trip_count == 0
    assert breaker.mean_latency_s == pytest.approx(0.25)
    assert await hop.leftovers() == {}


async def test_nobody_is_slow_who_waits_for_a_permit_still() -> None:
    hop = wired((0.05, None), tables=[ONE_PERMIT])
    quick = replace(SQL, slow_call_s=0.1)

    async with hop.policies.bulkhead(hop.some_call()):
        calls = [asyncio.create_task(hop.ask(callee=quick)) for _ in range(2)]
        await hop.clock.sleep(0.15)
        seen = hop.policies.breakers.snapshot()[KEY]
    await asyncio.gather(*calls)

    assert (seen.overdue, seen.slow_count, seen.trip_count) == (0, 0, 0)
    assert hop.state() is BreakerState.CLOSED
    assert await hop.leftovers() == {}


async def test_what_hangs_after_its_wait_for_a_permit_is_seen_by_its_age() -> None:
    hop = wired((60.0, None), tables=[ONE_PERMIT, {"breaker": {"slow_count": 1, "slow_of": 1}}])
    breakers = hop.policies.breakers

    async with hop.policies.bulkhead(hop.some_call()):
        asking = asyncio.create_task(hop.ask())
        await hop.clock.sleep(0.1)
        # Somebody looks, and there is nothing that will be late some day.
        assert breakers.snapshot()[KEY].overdue == 0
    await hop.clock.sleep(1.95)
    before = breakers.closed(KEY)
    await hop.clock.sleep(0.1)

    assert (before, breakers.closed(KEY)) == (True, False)
    await asyncio.wait({asking})


async def test_who_waited_while_the_breaker_opened_says_nothing_of_the_time_after() -> None:
    hop = wired((0.2, None), (60.0, None), tables=[ONE_PERMIT])
    calls = [asyncio.create_task(hop.ask()) for _ in range(2)]
    await hop.clock.sleep(0.1)
    hop.policies.breakers.force_open(KEY, for_s=0.05)
    await hop.clock.sleep(0.06)
    assert hop.state() is BreakerState.HALF_OPEN

    await hop.clock.sleep(2.2)

    assert hop.state() is BreakerState.HALF_OPEN
    await asyncio.wait(calls)


async def test_a_stream_is_not_blamed_for_what_its_wait_for_a_permit_took() -> None:
    hop = wired((0.25, None), tables=[ONE_PERMIT])
    for _ in range(30):
        await hop.read([Pause(0.4), "one"])

    outcomes = []
    for others in (1, 0):
        taken = [asyncio.create_task(hop.ask()) for _ in range(others)]
        await asyncio.sleep(0)
        with pytest.raises(SixhopError):
            await hop.read([Pause(60.0), "one"], remaining_s=0.9)
        await asyncio.gather(*taken)
        outcomes.append(hop.policies.breakers.snapshot()[MODEL].failure_ratio > 0)

    # Of 0.54 s for the first event, 0.29 were left once; nine of ten begin within 0.4 s.
    assert outcomes == [False, True]
