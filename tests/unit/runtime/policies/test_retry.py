"""Holds the retry driver to its one rule, clause by clause."""

import asyncio
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.runtime.call import Alternative, Callee, Fallback
from services.runtime.errors import (
    BulkheadFullError,
    CircuitOpenError,
    DependencyFailedError,
    InvalidArgumentError,
    SixhopError,
)
from services.runtime.policies.retry import Retry, RetryConfig
from tests.requirements import requirement
from tests.unit.runtime.fake_time import START, LoopClock, run_in_fake_time
from tests.unit.runtime.policies.client_samples import (
    SQL,
    failed,
    overloaded,
    script,
    silent,
    sql_call,
)
from tests.unit.runtime.policies.retries import NO_JITTER, attempts_of, retry

KEY = "tool/sql"
STEADY = Callee(key=KEY, idempotent=True, slow_call_s=30.0)
"""Declares nothing that is less than a step."""


async def test_a_failure_that_passes_is_repeated_once(clock: LoopClock) -> None:
    attempt, starts = script(clock, (0.1, failed()), (0.1, None))

    assert await retry(clock)(sql_call(), attempt) == "answer 2"
    assert starts == pytest.approx([START, START + 0.3])


async def test_two_attempts_in_all_and_the_last_failure_is_told(clock: LoopClock) -> None:
    first, last = failed(), silent()
    attempt, starts = script(clock, (0.1, first), (0.1, last), (0.1, None))

    with pytest.raises(DependencyFailedError) as caught:
        await retry(clock)(sql_call(), attempt)

    assert caught.value is last
    assert len(starts) == 2


async def test_waits_double_and_are_spread(clock: LoopClock) -> None:
    driver = retry(clock, RetryConfig(max_attempts=3, max_tokens=100.0))
    firsts, seconds = [], []
    for _ in range(40):
        attempt, starts = script(clock, (0.0, failed()))
        with pytest.raises(SixhopError):
            await driver(sql_call(arrived_at=clock.now()), attempt)
        if len(starts) == 3:
            firsts.append(starts[1] - starts[0])
            seconds.append(starts[2] - starts[1])

    assert min(firsts) >= 0.2
    assert max(firsts) <= 0.3
    assert min(seconds) >= 0.4
    assert max(seconds) <= 0.6
    assert len(set(firsts)) > 5


async def test_what_may_not_be_sent_twice_is_sent_once(clock: LoopClock) -> None:
    """istio#13851, #27340, #50506: a default retry re-sent POSTs, and money was paid twice."""
    call = sql_call(callee=Callee(key="tool/pay", idempotent=False))

    assert await attempts_of(retry(clock), call, clock, failed()) == 1


async def test_a_stream_that_has_delivered_is_never_run_again(clock: LoopClock) -> None:
    call = sql_call(streaming=True, delivered=True)

    assert await attempts_of(retry(clock), call, clock, failed()) == 1


async def test_a_stream_that_has_not_begun_may_be_opened_again(clock: LoopClock) -> None:
    assert await attempts_of(retry(clock), sql_call(streaming=True), clock, failed()) == 2


async def test_a_stream_that_is_late_has_used_the_time_of_those_who_wait_for_ours(
    clock: LoopClock,
) -> None:
    assert await attempts_of(retry(clock), sql_call(streaming=True), clock, silent()) == 1


@pytest.mark.parametrize(
    ("error", "attempts"),
    [
        (failed("UNREACHABLE"), 2),
        (failed("SELF_TIMEOUT", cause="step_timeout"), 2),
        (failed("SELF_TIMEOUT", cause="deadline"), 1),
        (silent(), 2),
        (silent("deadline_share"), 1),
        (overloaded(0.5), 2),
        (overloaded(None), 1),
        (overloaded(-1.0), 1),
        (overloaded(0.5, hop="model"), 1),
        (failed("SELF_BUG"), 1),
        (failed("SELF_UNAVAILABLE", hop="model"), 1),
        (failed("NO_SUCH_REASON"), 1),
        (InvalidArgumentError("sql", "no"), 1),
        (CircuitOpenError("open"), 1),
        (BulkheadFullError("full"), 1),
    ],
    ids=lambda value: getattr(value, "message", str(value)),
)
async def test_only_what_passes_and_is_the_callees_own_is_repeated(
    clock: LoopClock, error: SixhopError, attempts: int
) -> None:
    assert await attempts_of(retry(clock), sql_call(), clock, error) == attempts


async def test_never_on_outdoes_retry_on(clock: LoopClock) -> None:
    config = RetryConfig(never_on=frozenset({"SELF_UNAVAILABLE"}))

    assert await attempts_of(retry(clock, config), sql_call(), clock, failed()) == 1


async def test_the_callees_pushback_is_waited_for(clock: LoopClock) -> None:
    attempt, starts = script(clock, (0.1, overloaded(2.5)), (0.1, None))

    await retry(clock)(sql_call(), attempt)

    assert starts == pytest.approx([START, START + 2.6])


@requirement("failover:at-once")
@pytest.mark.parametrize(("pushback_s", "attempts"), [(2.5, 1), (0.1, 2)])
async def test_a_long_pushback_is_not_waited_for_where_something_stands_in(
    clock: LoopClock, pushback_s: float, attempts: int
) -> None:
    call = sql_call()
    call.callee = replace(call.callee, has_stand_in=True)

    assert await attempts_of(retry(clock), call, clock, overloaded(pushback_s)) == attempts


async def test_an_open_breaker_ends_it(clock: LoopClock) -> None:
    assert await attempts_of(retry(clock, closed=False), sql_call(), clock, failed()) == 1


async def test_a_breaker_that_opens_during_the_wait_ends_it(clock: LoopClock) -> None:
    answers = iter([True, False])
    driver = Retry(NO_JITTER, clock, random.Random(7), lambda key: next(answers))
    error = failed()
    attempt, starts = script(clock, (0.1, error))

    with pytest.raises(DependencyFailedError) as caught:
        await driver(sql_call(), attempt)

    assert caught.value is error
    assert len(starts) == 1


async def test_when_the_repetition_is_refused_the_failure_is_told(clock: LoopClock) -> None:
    error = failed()
    attempt, starts = script(clock, (0.1, error), (0.0, BulkheadFullError("full")))

    with pytest.raises(DependencyFailedError) as caught:
        await retry(clock)(sql_call(), attempt)

    assert caught.value is error
    assert len(starts) == 2


@pytest.mark.parametrize(
    ("declared", "enough_s"),
    [
        ({"timeout_s": 3.0, "slow_call_s": 30.0}, 5.455),
        ({"timeout_s": 8.0, "slow_call_s": 2.0}, 3.75),
        ({"timeout_s": 30.0, "slow_call_s": 30.0}, 8.8),
        ({"slow_call_s": 30.0}, 8.8),
    ],
)
async def test_an_unknown_callee_is_expected_to_take_the_least_that_is_declared_for_it(
    clock: LoopClock, declared: dict[str, float], enough_s: float
) -> None:
    """1.5 times that, or the step's 5 s, the backoff of 0.2 s, 0.1 s spent, and the margin."""
    callee = Callee(key=KEY, idempotent=True, **declared)  # type: ignore[arg-type]

    for remaining_s, attempts in ((enough_s + 0.01, 2), (enough_s - 0.01, 1)):
        call = sql_call(remaining_s=remaining_s, arrived_at=clock.now(), callee=callee)
        assert await attempts_of(retry(clock), call, clock, failed()) == attempts


async def test_a_fresh_tool_is_repeated_in_a_short_run_whatever_its_hop_may_take(
    clock: LoopClock,
) -> None:
    """A hop's step timeout of 20 s let nobody with less than 30 s see a failure repeated."""
    callee = Callee(key=KEY, idempotent=True, timeout_s=3.0)
    call = sql_call(remaining_s=8.0, step_timeout_s=20.0, callee=callee)

    assert await attempts_of(retry(clock), call, clock, failed()) == 2


@pytest.mark.parametrize(("remaining_s", "attempts"), [(2.5, 2), (1.9, 1)])
async def test_a_known_callee_is_expected_to_take_what_nine_of_ten_took(
    clock: LoopClock, remaining_s: float, attempts: int
) -> None:
    driver = retry(clock)
    for length_s in [1.0] * 3 + [0.1] * 17:
        attempt, _ = script(clock, (length_s, None))
        await driver(sql_call(arrived_at=clock.now()), attempt)
    call = sql_call(remaining_s=remaining_s, arrived_at=clock.now())

    assert driver.snapshot()[KEY].expected_s == pytest.approx(1.0)
    assert await attempts_of(driver, call, clock, failed()) == attempts


async def test_the_backoff_counts_inside_the_budget(clock: LoopClock) -> None:
    """Spring Cloud Netflix #2606: children and their waits added up to more than their parent."""
    call = sql_call(remaining_s=10.0, callee=STEADY)

    assert await attempts_of(retry(clock), call, clock, overloaded(3.0)) == 1
    assert clock.now() == pytest.approx(START + 0.1)


async def test_nothing_is_tried_after_the_deadline(clock: LoopClock) -> None:
    """linkerd#2369: retries went on for five hours with a total budget of five seconds."""
    driver = retry(clock, RetryConfig(max_attempts=5, max_tokens=1000.0))
    deadline = START + 30.0
    # Three of the five that it may make fit into the deadline.
    attempt, starts = script(clock, (8.0, failed()))

    with pytest.raises(SixhopError):
        await driver(sql_call(remaining_s=30.0, callee=STEADY), attempt)

    assert len(starts) == 3
    assert clock.now() <= deadline


async def test_a_wait_that_took_too_long_ends_it(clock: LoopClock) -> None:
    class Oversleeping(LoopClock):
        async def sleep(self, length_s: float) -> None:
            await super().sleep(length_s + 60.0)

    attempt, starts = script(clock, (0.1, failed()))
    with pytest.raises(DependencyFailedError):
        await retry(Oversleeping())(sql_call(), attempt)

    assert len(starts) == 1


async def test_a_callee_that_always_fails_is_hardly_called_more_often(clock: LoopClock) -> None:
    driver = retry(clock)
    attempts = 0
    for _ in range(50):
        call = sql_call(arrived_at=clock.now())
        attempts += await attempts_of(driver, call, clock, failed())

    # At half of the ten tokens, after two repetitions, there is none any more.
    assert attempts == 52
    assert driver.snapshot()[KEY].tokens == 0.0


async def test_successes_give_the_budget_back(clock: LoopClock) -> None:
    driver = retry(clock, RetryConfig(max_tokens=4.0, token_ratio=0.5))
    for _ in range(3):
        await attempts_of(driver, sql_call(arrived_at=clock.now()), clock, failed())
    assert await attempts_of(driver, sql_call(arrived_at=clock.now()), clock, failed()) == 1

    for _ in range(8):
        attempt, _ = script(clock, (0.0, None))
        await driver(sql_call(arrived_at=clock.now()), attempt)

    assert await attempts_of(driver, sql_call(arrived_at=clock.now()), clock, failed()) == 2


async def test_a_success_gives_a_tenth_of_a_token_back(clock: LoopClock) -> None:
    driver = retry(clock)
    for _ in range(10):
        await attempts_of(driver, sql_call(arrived_at=clock.now()), clock, failed())

    for _ in range(30):
        attempt, _ = script(clock, (0.0, None))
        await driver(sql_call(arrived_at=clock.now()), attempt)

    assert driver.snapshot()[KEY].tokens == pytest.approx(3.0)


async def test_one_callees_failures_do_not_use_anothers_budget(clock: LoopClock) -> None:
    driver = retry(clock)
    for _ in range(20):
        await attempts_of(driver, sql_call(arrived_at=clock.now()), clock, failed())
    other = sql_call(arrived_at=clock.now(), callee=Callee(key="tool/chart", idempotent=True))

    assert await attempts_of(driver, other, clock, failed()) == 2


async def test_what_is_not_the_callees_fault_costs_no_token(clock: LoopClock) -> None:
    driver = retry(clock)
    for error in (failed(hop="model"), InvalidArgumentError("sql", "no"), BulkheadFullError("x")):
        await attempts_of(driver, sql_call(), clock, error)

    assert driver.snapshot()[KEY].tokens == 10.0


@pytest.mark.parametrize("keeps", [False, True])
async def test_the_last_attempt_may_spend_all_unless_an_alternative_needs_it(
    clock: LoopClock, keeps: bool
) -> None:
    spare = Alternative(mechanism=Fallback.DEFAULT, run=lambda: asyncio.sleep(0))
    call = sql_call(alternatives=(spare,) if keeps else ())
    chances = []

    async def attempt() -> None:
        chances.append(call.last_chance)
        raise failed()

    with pytest.raises(SixhopError):
        await retry(clock)(call, attempt)

    assert chances == [False, not keeps]


async def test_a_cancel_during_the_wait_ends_it(clock: LoopClock) -> None:
    attempt, starts = script(clock, (0.1, failed()), (0.1, None))
    waiter = asyncio.create_task(retry(clock)(sql_call(), attempt))
    await clock.sleep(0.2)

    waiter.cancel()
    await asyncio.wait({waiter})

    assert waiter.cancelled()
    assert len(starts) == 1


@pytest.mark.parametrize(
    "wrong",
    [{"max_attempts": 0}, {"max_attempts": 6}, {"max_tokens": 0.0}, {"expected_factor": 0.5}],
)
def test_settings_that_cannot_work_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} = .*: write"):
        RetryConfig(**wrong)  # type: ignore[arg-type]


@settings(max_examples=50, deadline=None)
@given(
    remaining_s=st.floats(0.5, 60.0),
    step_timeout_s=st.floats(0.05, 10.0),
    max_attempts=st.integers(1, 5),
    lengths=st.lists(st.floats(0.0, 1.0), min_size=5, max_size=5),
    pushback_s=st.one_of(st.none(), st.floats(-1.0, 20.0)),
    known_s=st.one_of(st.none(), st.floats(0.0, 10.0)),
    seed=st.integers(0, 1000),
)
def test_attempts_and_waits_never_add_up_to_more_than_there_is(
    remaining_s: float,
    step_timeout_s: float,
    max_attempts: int,
    lengths: list[float],
    pushback_s: float | None,
    known_s: float | None,
    seed: int,
) -> None:
    async def play() -> None:
        clock = LoopClock()
        config = RetryConfig(max_attempts=max_attempts, max_tokens=100.0)
        driver = Retry(config, clock, random.Random(seed), lambda key: True)
        for _ in range(20 if known_s is not None else 0):
            attempt, _ = script(clock, (known_s or 0.0, None))
            await driver(sql_call(arrived_at=clock.now()), attempt)
        began = clock.now()
        call = sql_call(remaining_s=remaining_s, step_timeout_s=step_timeout_s, arrived_at=began)
        error = failed() if pushback_s is None else overloaded(pushback_s)
        starts: list[float] = []

        async def attempt_once() -> None:
            starts.append(clock.now())
            left_s = call.inbound.self_deadline - clock.now()
            await clock.sleep(lengths[len(starts) - 1] * min(step_timeout_s, 0.6 * left_s))
            raise error

        with pytest.raises(SixhopError):
            await driver(call, attempt_once)
        assert len(starts) <= max_attempts
        assert clock.now() <= call.inbound.self_deadline + 1e-6
        expected_s = min(step_timeout_s, SQL.slow_call_s) if known_s is None else known_s
        for start in starts[1:]:
            assert call.inbound.self_deadline - start >= 1.5 * expected_s - 1e-6

    run_in_fake_time(play())
