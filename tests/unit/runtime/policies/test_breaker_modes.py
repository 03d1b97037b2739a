"""Tests how far a breaker goes: to refusing, to telling, or not at all."""

from dataclasses import replace

import pytest

from services.runtime.call import Mode
from services.runtime.circuit import BreakerChange, BreakerConfig, BreakerState
from services.runtime.clock import ManualClock
from services.runtime.policies.breaker import Breakers
from tests.unit.runtime.policies.client_samples import failed, one, refused, silent, sql_call

KEY = "tool/sql"
CLOSED, OPEN, HALF_OPEN = BreakerState.CLOSED, BreakerState.OPEN, BreakerState.HALF_OPEN
OBSERVE = BreakerConfig(mode=Mode.OBSERVE)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


async def tripped(config: BreakerConfig, clock: ManualClock) -> Breakers:
    """Return breakers after ten failures."""
    breakers = Breakers(config, clock)
    for _ in range(10):
        await one(breakers, clock, 0.0, failed())
    return breakers


async def test_one_that_observes_opens_and_lets_every_call_pass(clock: ManualClock) -> None:
    changes: list[BreakerChange] = []
    breakers = Breakers(OBSERVE, clock, changes.append)
    for _ in range(20):
        await one(breakers, clock, 0.0, failed())

    assert breakers.state(KEY) is OPEN
    assert [change.new for change in changes] == [OPEN]
    # Who asks whether calls may be repeated or timeouts learned is told that they pass.
    assert breakers.closed(KEY)


async def test_what_would_have_been_refused_says_nothing(clock: ManualClock) -> None:
    breakers = await tripped(OBSERVE, clock)
    for _ in range(50):
        await one(breakers, clock, 0.0)

    seen = breakers.snapshot()[KEY]
    assert (seen.state, seen.call_count, seen.probes, seen.overdue) == (OPEN, 0, 0, 0)


async def test_one_that_observes_probes_with_as_many_calls_as_it_would(clock: ManualClock) -> None:
    breakers = await tripped(OBSERVE, clock)
    clock.advance(30.0)
    guards = [breakers(sql_call()) for _ in range(5)]
    for guard in guards:
        await guard.__aenter__()

    during = breakers.snapshot()[KEY]
    # The two that would have been refused decide nothing, whatever comes of them.
    await guards[4].__aexit__(None, None, None)
    await guards[3].__aexit__(type(silent()), silent(), None)
    undecided = breakers.state(KEY)
    await guards[0].__aexit__(None, None, None)

    assert (during.state, during.probes) == (HALF_OPEN, 3)
    assert undecided is HALF_OPEN
    assert breakers.state(KEY) is CLOSED


async def test_one_that_is_off_knows_nobody(clock: ManualClock) -> None:
    breakers = await tripped(BreakerConfig(mode=Mode.OFF), clock)
    breakers.first_event(sql_call())

    assert breakers.snapshot() == {}
    assert breakers.closed(KEY)


async def test_a_call_that_began_while_it_was_off_ends_in_peace(clock: ManualClock) -> None:
    breakers = Breakers(BreakerConfig(mode=Mode.OFF), clock)
    call = sql_call(streaming=True)
    guard = breakers(call)
    await guard.__aenter__()

    breakers.reconfigure(BreakerConfig())
    breakers.first_event(call)
    await guard.__aexit__(None, None, None)

    assert breakers.snapshot() == {}


async def test_one_that_has_observed_refuses_once_it_is_told_to(clock: ManualClock) -> None:
    breakers = await tripped(OBSERVE, clock)

    breakers.reconfigure(replace(OBSERVE, mode=Mode.ENFORCE))

    assert "known to be sick" in str(await refused(breakers))
    assert not breakers.closed(KEY)
