"""Holds the fast-fail switch to its orders, to its own rule, and to going back by itself."""

import asyncio
from dataclasses import replace

import pytest

from services.runtime.call import Criticality, Mode
from services.runtime.clock import ManualClock
from services.runtime.errors import (
    BulkheadFullError,
    Code,
    DependencyFailedError,
    DependencyOverloadedError,
    InvalidArgumentError,
    LoadShedError,
    Origin,
    QuotaExceededError,
    SelfBugError,
)
from services.runtime.policies.shed import ShedChange, ShedConfig, ShedSwitch
from tests.unit.runtime.policies.shedding import (
    CONFIG,
    LATE,
    LEVELS,
    arriving,
    ended_by,
    let_in,
    load,
)


@pytest.fixture
def clock() -> ManualClock:
    """Return a clock that only the test moves."""
    return ManualClock()


@pytest.mark.parametrize(
    "wrong",
    [
        {"calm_ratio": 0.5},
        {"calm_ratio": -0.1},
        {"shed_ratio": 1.1},
        {"min_calls": 0},
        {"window_s": 0.0},
        {"sustain_s": -1.0},
        {"hold_s": 0.0},
    ],
)
def test_a_rule_that_cannot_work_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} = .*: write"):
        ShedConfig(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("for_s", [0.0, -1.0, float("inf"), float("nan")])
def test_an_order_without_an_end_is_refused(clock: ManualClock, for_s: float) -> None:
    with pytest.raises(ValueError, match="ends by itself"):
        ShedSwitch(CONFIG, clock).order("maintenance", for_s)


async def test_without_an_order_and_without_load_everybody_is_let_in(clock: ManualClock) -> None:
    switch = ShedSwitch(CONFIG, clock)

    assert await let_in(switch, clock) == [True] * 4


async def test_an_order_refuses_everybody_until_its_end(clock: ManualClock) -> None:
    switch = ShedSwitch(CONFIG, clock)

    switch.order("the database moves", 60.0)
    during = await let_in(switch, clock)
    clock.advance(59.9)
    still = await let_in(switch, clock)
    clock.advance(0.1)

    assert during == still == [False] * 4
    assert await let_in(switch, clock) == [True] * 4
    assert switch.snapshot().order is None


async def test_a_refusal_says_who_closed_the_door_why_and_for_how_long(
    clock: ManualClock,
) -> None:
    switch = ShedSwitch(CONFIG, clock)
    switch.order("the database moves", 30.0)
    clock.advance(10.0)

    with pytest.raises(LoadShedError) as caught:
        await switch(arriving(clock)).__aenter__()

    assert caught.value.code is Code.RESOURCE_EXHAUSTED
    assert caught.value.cause == "operator"
    assert caught.value.retry_after_s == pytest.approx(20.0)
    assert "the database moves" in caught.value.message
    assert switch.snapshot().refused == {"operator/CRITICAL": 1}


async def test_an_order_may_spare_the_higher_levels(clock: ManualClock) -> None:
    switch = ShedSwitch(CONFIG, clock)

    switch.order("too much", 60.0, up_to=Criticality.SHEDDABLE_PLUS)

    assert await let_in(switch, clock) == [False, False, True, True]


async def test_a_new_order_takes_the_place_of_the_old_one(clock: ManualClock) -> None:
    switch = ShedSwitch(CONFIG, clock)

    switch.order("first", 60.0)
    switch.order("second", 10.0, up_to=Criticality.SHEDDABLE)

    assert await let_in(switch, clock) == [False, True, True, True]
    order = switch.snapshot().order
    assert order is not None
    assert order.until == clock.now() + 10.0


async def test_an_order_can_be_withdrawn(clock: ManualClock) -> None:
    switch = ShedSwitch(CONFIG, clock)
    switch.order("mistake", 60.0)

    switch.withdraw()
    switch.withdraw()

    assert await let_in(switch, clock) == [True] * 4


def test_every_change_of_an_order_is_announced_once(clock: ManualClock) -> None:
    told: list[ShedChange] = []
    switch = ShedSwitch(CONFIG, clock, told.append)

    order = switch.order("one", 5.0)
    clock.advance(5.0)
    switch.tick()
    switch.tick()
    switch.order("two", 5.0)
    switch.withdraw()

    assert [(change.by, change.reason, change.up_to) for change in told] == [
        ("operator", "one", Criticality.CRITICAL_PLUS),
        ("operator", "over", None),
        ("operator", "two", Criticality.CRITICAL_PLUS),
        ("operator", "withdrawn", None),
    ]
    assert told[0].until == order.until


async def test_an_order_is_obeyed_when_the_own_rule_is_off(clock: ManualClock) -> None:
    switch = ShedSwitch(replace(CONFIG, mode=Mode.OFF), clock)

    switch.order("now", 1.0)

    assert await let_in(switch, clock) == [False] * 4


async def test_overload_refuses_the_lowest_level_after_a_while(clock: ManualClock) -> None:
    switch = ShedSwitch(CONFIG, clock)

    await load(switch, clock, 3.5, failing=1.0)
    early = await let_in(switch, clock)
    await load(switch, clock, 1.5, failing=1.0)

    assert early == [True] * 4
    assert await let_in(switch, clock) == [False, True, True, True]


async def test_lasting_overload_refuses_one_level_more_at_a_time_and_the_highest_never(
    clock: ManualClock,
) -> None:
    told: list[ShedChange] = []
    switch = ShedSwitch(CONFIG, clock, told.append)

    await load(switch, clock, 60.0, failing=1.0)

    assert await let_in(switch, clock) == [False, False, False, True]
    assert [change.up_to for change in told] == LEVELS[:3]
    assert all(change.by == "overload" and change.enforced for change in told)


async def test_between_the_two_ratios_nothing_changes(clock: ManualClock) -> None:
    switch = ShedSwitch(CONFIG, clock)
    await load(switch, clock, 5.0, failing=1.0)

    await load(switch, clock, 60.0, failing=0.35)

    assert await let_in(switch, clock) == [False, True, True, True]


async def test_calm_lets_one_level_in_at_a_time(clock: ManualClock) -> None:
    switch = ShedSwitch(CONFIG, clock)
    await load(switch, clock, 10.5, failing=1.0)
    before = await let_in(switch, clock)

    await load(switch, clock, 5.5, failing=0.0)
    first = await let_in(switch, clock)
    await load(switch, clock, 5.5, failing=0.0)

    assert before == [False, False, True, True]
    assert first == [False, True, True, True]
    assert await let_in(switch, clock) == [True] * 4


async def test_silence_lets_everybody_in_again(clock: ManualClock) -> None:
    told: list[ShedChange] = []
    switch = ShedSwitch(CONFIG, clock, told.append)
    await load(switch, clock, 5.0, failing=1.0)

    for _ in range(60):
        clock.advance(0.5)
        switch.tick()

    assert await let_in(switch, clock) == [True] * 4
    assert told[-1].up_to is None


async def test_a_few_failures_say_nothing(clock: ManualClock) -> None:
    switch = ShedSwitch(CONFIG, clock)

    await load(switch, clock, 60.0, failing=1.0, rate=1)

    assert await let_in(switch, clock) == [True] * 4


async def test_a_short_burst_of_failures_says_nothing(clock: ManualClock) -> None:
    switch = ShedSwitch(CONFIG, clock)

    for _ in range(20):
        await load(switch, clock, 2.0, failing=1.0)
        await load(switch, clock, 4.0, failing=0.0)

    assert await let_in(switch, clock) == [True] * 4


async def test_an_observing_rule_refuses_nobody_and_counts(clock: ManualClock) -> None:
    told: list[ShedChange] = []
    switch = ShedSwitch(replace(CONFIG, mode=Mode.OBSERVE), clock, told.append)

    await load(switch, clock, 5.0, failing=1.0)

    assert await let_in(switch, clock) == [True] * 4
    assert switch.snapshot().would_refuse == {"overload/SHEDDABLE": 1}
    assert [change.enforced for change in told] == [False]


async def test_what_is_refused_at_the_door_does_not_count_as_overload(
    clock: ManualClock,
) -> None:
    switch = ShedSwitch(CONFIG, clock)
    switch.order("now", 60.0)

    for _ in range(100):
        await let_in(switch, clock)

    assert switch.snapshot().call_count == 0


@pytest.mark.parametrize(
    ("error", "counted"),
    [
        (None, (1, 0.0)),
        (LATE, (1, 1.0)),
        (LoadShedError("full", cause="limit"), (1, 1.0)),
        (LoadShedError("full", cause="fair_share"), (0, 0.0)),
        (BulkheadFullError("full", cause="group_full"), (1, 1.0)),
        (BulkheadFullError("full", cause="tenant_full"), (0, 0.0)),
        (DependencyOverloadedError("tool", "full", cause="limit", origin=Origin("tool")), (1, 1)),
        (DependencyOverloadedError("t", "full", cause="fair_share", origin=Origin("t")), (0, 0)),
        (
            DependencyFailedError(
                "tool", "silence", cause="x", origin=Origin("llm", code="DEADLINE_EXCEEDED")
            ),
            (1, 1.0),
        ),
        (
            DependencyFailedError("tool", "broken", cause="x", origin=Origin("t", code="INTERNAL")),
            (1, 0.0),
        ),
        (SelfBugError("defect"), (1, 0.0)),
        (InvalidArgumentError("question", "say something"), (1, 0.0)),
        (QuotaExceededError("enough for today"), (1, 0.0)),
        (asyncio.CancelledError(), (0, 0.0)),
    ],
)
async def test_overload_and_the_deadline_are_told_from_the_rest(
    clock: ManualClock, error: BaseException | None, counted: tuple[int, float]
) -> None:
    switch = ShedSwitch(CONFIG, clock)

    await ended_by(switch, arriving(clock), error)

    seen = switch.snapshot()
    assert (seen.call_count, seen.failed_ratio) == counted


async def test_a_cancel_at_the_deadline_is_the_deadline(clock: ManualClock) -> None:
    switch = ShedSwitch(CONFIG, clock)
    call = arriving(clock)
    entry = switch(call)

    await entry.__aenter__()
    clock.advance(9.0)
    await entry.__aexit__(asyncio.CancelledError, asyncio.CancelledError(), None)

    assert switch.snapshot().failed_ratio == 1.0


async def test_calls_are_forgotten_after_the_window(clock: ManualClock) -> None:
    switch = ShedSwitch(CONFIG, clock)
    await load(switch, clock, 3.0, failing=1.0)

    clock.advance(2.5)
    some = switch.snapshot().call_count
    clock.advance(10.0)

    assert 0 < some < 30
    assert switch.snapshot().call_count == 0


async def test_a_new_rule_keeps_the_order_and_what_is_refused(clock: ManualClock) -> None:
    switch = ShedSwitch(CONFIG, clock)
    await load(switch, clock, 5.0, failing=1.0)
    switch.order("now", 60.0, up_to=Criticality.SHEDDABLE)
    before = switch.snapshot()

    switch.reconfigure(replace(CONFIG, shed_ratio=0.9, window_s=2 * CONFIG.window_s))

    after = switch.snapshot()
    assert before.overload_up_to is not None
    assert (after.order, after.overload_up_to) == (before.order, before.overload_up_to)
    assert (after.call_count, after.failed_ratio) == (before.call_count, before.failed_ratio)


async def test_a_rule_that_is_switched_off_lets_everybody_in_and_says_so(
    clock: ManualClock,
) -> None:
    told: list[ShedChange] = []
    switch = ShedSwitch(CONFIG, clock, told.append)
    await load(switch, clock, 5.0, failing=1.0)

    switch.reconfigure(replace(CONFIG, mode=Mode.OFF))

    assert switch.snapshot().overload_up_to is None
    assert told[-1].up_to is None
