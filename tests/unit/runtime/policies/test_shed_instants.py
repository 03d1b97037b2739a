"""Holds the fast-fail switch to changing at its instants, however seldom it looks."""

from dataclasses import replace

import pytest

from services.runtime.clock import ManualClock
from services.runtime.errors import SelfTimeoutError
from services.runtime.policies.shed import ShedSwitch
from tests.unit.runtime.policies.shedding import CONFIG, LATE, arriving, ended_by, let_in, load


@pytest.fixture
def clock() -> ManualClock:
    """Return a clock that only the test moves."""
    return ManualClock()


async def test_an_order_is_over_at_its_instant_however_quiet_it_was_before(
    clock: ManualClock,
) -> None:
    switch = ShedSwitch(CONFIG, clock)
    await let_in(switch, clock)

    switch.order("a moment", 0.125)
    during = await let_in(switch, clock)
    clock.advance(0.125)

    assert during == [False] * 4
    assert await let_in(switch, clock) == [True] * 4


@pytest.mark.parametrize("last", [LATE, None])
async def test_each_step_comes_at_its_instant_from_the_first_call_after_the_overload(
    clock: ManualClock, last: SelfTimeoutError | None
) -> None:
    switch = ShedSwitch(CONFIG, clock)
    clock.advance(0.25)
    for error in (None, *[LATE] * 8, last):
        await ended_by(switch, arriving(clock), error)
    await let_in(switch, clock)
    seen = []

    for wait_s in (CONFIG.sustain_s - 0.125, 0.125, CONFIG.hold_s - 0.125, 0.125):
        clock.advance(wait_s)
        seen.append(await let_in(switch, clock))

    lowest_refused = [False, True, True, True]
    assert seen == [[True] * 4, lowest_refused, lowest_refused, [True] * 4]


async def test_it_is_overload_when_only_failures_are_still_remembered(clock: ManualClock) -> None:
    switch = ShedSwitch(replace(CONFIG, sustain_s=0.0), clock)
    for _ in range(11):
        await ended_by(switch, arriving(clock), None)
    clock.advance(1.0)
    for _ in range(10):
        await ended_by(switch, arriving(clock), LATE)
    before = await let_in(switch, clock)

    clock.advance(CONFIG.window_s - 1.0)

    assert before == [True] * 4
    assert await let_in(switch, clock) == [False, True, True, True]


async def test_a_new_rule_is_looked_at_by_the_next_call(clock: ManualClock) -> None:
    switch = ShedSwitch(replace(CONFIG, sustain_s=0.0), clock)
    await load(switch, clock, 5.0, failing=0.4)
    before = await let_in(switch, clock)

    switch.reconfigure(replace(CONFIG, sustain_s=0.0, shed_ratio=0.3))

    assert before == [True] * 4
    assert await let_in(switch, clock) == [False, True, True, True]
