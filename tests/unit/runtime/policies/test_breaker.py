"""Holds the breaker to when it opens, and to what does not open it."""

import asyncio

import pytest

from services.runtime.call import Call, Callee
from services.runtime.circuit import BreakerChange, BreakerConfig, BreakerState, Reason
from services.runtime.clock import ManualClock
from services.runtime.errors import BulkheadFullError, CircuitOpenError, InvalidArgumentError
from services.runtime.policies.breaker import Breakers
from tests.unit.runtime.policies.client_samples import (
    failed,
    one,
    overloaded,
    refused,
    silent,
    sql_call,
)

KEY = "tool/sql"
CLOSED, OPEN = BreakerState.CLOSED, BreakerState.OPEN


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def changes() -> list[BreakerChange]:
    return []


@pytest.fixture
def breakers(clock: ManualClock, changes: list[BreakerChange]) -> Breakers:
    return Breakers(BreakerConfig(), clock, changes.append)


@pytest.mark.parametrize(
    ("calls", "failures", "state"),
    [(10, 2, CLOSED), (10, 3, OPEN), (25, 5, CLOSED), (24, 5, OPEN)],
)
async def test_more_than_a_fifth_of_ten_failures_open_it(
    breakers: Breakers, clock: ManualClock, calls: int, failures: int, state: BreakerState
) -> None:
    for number in range(calls, 0, -1):
        await one(breakers, clock, 0.1, failed() if number <= failures else None)

    assert breakers.state(KEY) is state


async def test_nine_failures_are_too_few_to_say_anything(
    breakers: Breakers, clock: ManualClock
) -> None:
    for _ in range(9):
        await one(breakers, clock, 0.1, failed())

    assert breakers.state(KEY) is CLOSED
    await one(breakers, clock, 0.1, failed())
    assert breakers.state(KEY) is OPEN


@pytest.mark.parametrize(("failures", "state"), [(2, CLOSED), (3, OPEN)])
async def test_where_something_stands_in_three_failures_of_the_last_five_open_it(
    breakers: Breakers,
    clock: ManualClock,
    changes: list[BreakerChange],
    failures: int,
    state: BreakerState,
) -> None:
    """A question every two seconds is too little for a ratio over ten."""
    replaced = Callee(key=KEY, has_stand_in=True)
    for number in range(4):
        error = failed() if 1 <= number <= failures else None
        await one(breakers, clock, 0.1, error, sql_call(callee=replaced))
        clock.advance(2.0)

    assert breakers.state(KEY) is state
    assert [change.reason for change in changes] == [Reason.FEW_CALLS] * (state is OPEN)


async def test_failures_older_than_the_window_are_forgotten(
    breakers: Breakers, clock: ManualClock
) -> None:
    for _ in range(9):
        await one(breakers, clock, 0.0, failed())
    clock.advance(10.0)

    await one(breakers, clock, 0.0, failed())

    assert breakers.state(KEY) is CLOSED
    assert breakers.snapshot()[KEY].call_count == 1


async def test_a_change_is_told_with_its_reason_and_its_numbers(
    breakers: Breakers, clock: ManualClock, changes: list[BreakerChange]
) -> None:
    for number in range(10):
        await one(breakers, clock, 0.1, failed() if number > 5 else None)

    (change,) = changes
    assert (change.key, change.old, change.new) == (KEY, CLOSED, OPEN)
    assert change.reason is Reason.FAILURE_RATIO
    assert change.numbers.call_count == 10
    assert change.numbers.failure_ratio == pytest.approx(0.4)
    assert change.numbers.mean_latency_s == pytest.approx(0.1)


async def test_an_open_breaker_refuses_and_says_when_to_come_back(
    breakers: Breakers, clock: ManualClock
) -> None:
    for _ in range(10):
        await one(breakers, clock, 0.0, failed())
    clock.advance(12.0)

    error = await refused(breakers)

    assert isinstance(error, CircuitOpenError)
    assert error.retry_after_s == pytest.approx(18.0)
    assert error.cause == "failure_ratio"
    assert error.details["dependency"] == KEY


async def test_a_mean_above_the_limit_opens_it_although_nothing_failed(
    breakers: Breakers, clock: ManualClock, changes: list[BreakerChange]
) -> None:
    """resilience4j-like counts are blind to it: every call ends well, and far too late."""
    starts = [breakers(sql_call()) for _ in range(2)]
    for guarded in starts:
        await guarded.__aenter__()
    clock.advance(9.0)
    for _ in range(8):
        await one(breakers, clock, 0.0)
    assert breakers.state(KEY) is CLOSED

    clock.advance(1.9)
    for guarded in starts:
        await guarded.__aexit__(None, None, None)

    assert [change.reason for change in changes] == [Reason.MEAN_LATENCY]


async def test_calls_that_hang_count_in_the_mean_with_their_age(
    breakers: Breakers, clock: ManualClock, changes: list[BreakerChange]
) -> None:
    for _ in range(2):
        await breakers(sql_call()).__aenter__()
    clock.advance(12.0)

    for _ in range(8):
        assert breakers.state(KEY) is CLOSED
        await one(breakers, clock, 0.0)

    assert [change.reason for change in changes] == [Reason.MEAN_LATENCY]
    assert changes[0].numbers.call_count == 8


async def test_a_very_slow_call_that_has_ended_is_in_the_mean_of_those_after_it(
    breakers: Breakers, clock: ManualClock, changes: list[BreakerChange]
) -> None:
    await one(breakers, clock, 21.0)

    for _ in range(9):
        assert breakers.state(KEY) is CLOSED
        await one(breakers, clock, 0.0)

    assert [change.reason for change in changes] == [Reason.MEAN_LATENCY]


async def test_three_slow_calls_of_the_last_five_open_it(
    breakers: Breakers, clock: ManualClock, changes: list[BreakerChange]
) -> None:
    for length_s in (2.1, 0.1, 2.1, 0.1):
        await one(breakers, clock, length_s)
    assert breakers.state(KEY) is CLOSED

    await one(breakers, clock, 2.1)

    assert breakers.state(KEY) is OPEN
    assert changes[0].reason is Reason.SLOW_CALLS


async def test_two_slow_calls_of_the_last_five_do_not_open_it(
    breakers: Breakers, clock: ManualClock
) -> None:
    for length_s in (2.1, 0.1, 0.1, 2.1, 0.1, 2.1):
        await one(breakers, clock, length_s)

    assert breakers.state(KEY) is CLOSED


async def test_slow_calls_of_the_last_hour_do_not_add_up(
    breakers: Breakers, clock: ManualClock
) -> None:
    for _ in range(4):
        await one(breakers, clock, 2.1)
        clock.advance(900.0)

    assert breakers.state(KEY) is CLOSED


async def test_a_model_may_take_longer_than_a_tool(breakers: Breakers, clock: ManualClock) -> None:
    model = sql_call(callee=Callee(key="model", slow_call_s=5.0))

    for _ in range(5):
        await one(breakers, clock, 4.9, call=model)
    assert breakers.state("model") is CLOSED

    for _ in range(3):
        await one(breakers, clock, 5.1, call=model)
    assert breakers.state("model") is OPEN


async def test_twenty_calls_that_hang_open_it_before_any_of_them_ends(
    breakers: Breakers, clock: ManualClock, changes: list[BreakerChange]
) -> None:
    """resilience4j#1597: a breaker that counts ends is blind to what never ends."""
    for _ in range(20):
        await breakers(sql_call()).__aenter__()
    clock.advance(1.9)
    assert await refused(breakers) is None

    clock.advance(0.2)
    error = await refused(breakers)

    assert isinstance(error, CircuitOpenError)
    assert changes[0].reason is Reason.SLOW_CALLS
    assert changes[0].numbers.overdue == 20


async def test_calls_that_hang_are_seen_by_who_looks_without_calling(
    breakers: Breakers, clock: ManualClock
) -> None:
    for _ in range(3):
        await breakers(sql_call()).__aenter__()
    clock.advance(2.1)

    assert not breakers.closed(KEY)


@pytest.mark.parametrize(
    "error",
    [
        asyncio.CancelledError(),
        GeneratorExit(),
        BulkheadFullError("full"),
        InvalidArgumentError("sql", "no"),
        overloaded(),
        failed(hop="model"),
        KeyError("a defect of ours"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_what_says_nothing_about_the_callee_is_not_counted(
    breakers: Breakers, clock: ManualClock, error: BaseException
) -> None:
    for _ in range(30):
        await one(breakers, clock, 0.01, error)

    snapshot = breakers.snapshot()[KEY]
    assert snapshot.state is CLOSED
    assert snapshot.call_count == 0


async def test_six_short_deadlines_leave_a_healthy_callee_alone(
    breakers: Breakers, clock: ManualClock
) -> None:
    """Takeaway of Envoy's users: a timeout that the caller made too short is the caller's."""
    call = sql_call(attempt_timeout_s=0.1, advertised_p90_s=0.3)

    for _ in range(20):
        await one(breakers, clock, 0.1, silent("deadline_share"), call)

    assert breakers.snapshot()[KEY].call_count == 0
    assert breakers.state(KEY) is CLOSED


async def test_silence_within_enough_time_counts(breakers: Breakers, clock: ManualClock) -> None:
    call = sql_call(attempt_timeout_s=0.5, advertised_p90_s=0.3)

    for _ in range(10):
        await one(breakers, clock, 0.5, silent(), call)

    assert breakers.state(KEY) is OPEN


async def test_a_stream_is_as_slow_as_its_first_event(
    breakers: Breakers, clock: ManualClock
) -> None:
    for _ in range(12):
        call = sql_call(streaming=True)
        guarded = breakers(call)
        await guarded.__aenter__()
        clock.advance(0.5)
        breakers.first_event(call)
        clock.advance(60.0)
        await guarded.__aexit__(None, None, None)

    assert breakers.state(KEY) is CLOSED
    assert breakers.snapshot()[KEY].mean_latency_s == pytest.approx(0.5)


async def test_a_late_first_event_is_slow(breakers: Breakers, clock: ManualClock) -> None:
    calls: list[Call] = [sql_call(streaming=True) for _ in range(3)]
    for call in calls:
        await breakers(call).__aenter__()
    clock.advance(2.1)

    breakers.first_event(calls[0])

    assert breakers.state(KEY) is OPEN


async def test_one_sick_tool_leaves_the_others_alone(
    breakers: Breakers, clock: ManualClock
) -> None:
    other = sql_call(callee=Callee(key="tool/chart"))
    for _ in range(10):
        await one(breakers, clock, 0.1, failed())

    assert await refused(breakers) is not None
    assert await refused(breakers, other) is None


async def test_the_number_of_breakers_is_bounded_and_sick_and_busy_ones_stay(
    clock: ManualClock,
) -> None:
    breakers = Breakers(BreakerConfig(max_keys=4), clock)
    for _ in range(10):
        await one(breakers, clock, 0.0, failed())

    for number in range(50):
        for key in (f"tool/{number}", "tool/busy"):
            await one(breakers, clock, 0.0, call=sql_call(callee=Callee(key=key)))

    assert len(breakers.snapshot()) == 4
    assert breakers.state(KEY) is OPEN
    assert breakers.snapshot()["tool/busy"].call_count == 50


async def test_an_operator_opens_and_releases(breakers: Breakers, clock: ManualClock) -> None:
    breakers.force_open(KEY)
    clock.advance(3600.0)
    error = await refused(breakers)
    assert isinstance(error, CircuitOpenError)
    assert error.retry_after_s is None
    assert breakers.snapshot()[KEY].forced

    breakers.release(KEY)

    assert await refused(breakers) is None
    assert not breakers.snapshot()[KEY].forced


async def test_what_an_operator_opens_for_a_minute_probes_after_it(
    breakers: Breakers, clock: ManualClock
) -> None:
    breakers.force_open(KEY, for_s=60.0)
    clock.advance(60.0)

    assert breakers.state(KEY) is BreakerState.HALF_OPEN


async def test_what_an_operator_holds_closed_stays_so_and_then_judges_anew(
    breakers: Breakers, clock: ManualClock
) -> None:
    breakers.force_closed(KEY, for_s=60.0)
    for _ in range(20):
        await one(breakers, clock, 2.5, failed())
    assert breakers.state(KEY) is CLOSED

    clock.advance(60.0)
    for _ in range(10):
        await one(breakers, clock, 0.0, failed())

    assert breakers.state(KEY) is OPEN


@pytest.mark.parametrize(
    "wrong",
    [
        {"window_s": 0},
        {"window_s": 301},
        {"max_probes": 0},
        {"slow_count": 6},
        {"max_failure_ratio": 1.0},
        {"open_duration_s": 0.0},
    ],
)
def test_settings_that_cannot_work_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} = .*: write"):
        BreakerConfig(**wrong)  # type: ignore[arg-type]


def test_an_unknown_callee_counts_as_well(breakers: Breakers) -> None:
    assert breakers.closed("tool/never-called")
