"""Holds the hedge driver to its price, and to leaving nothing behind."""

import asyncio
import gc
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from services.runtime.call import Call, Callee
from services.runtime.errors import (
    BulkheadFullError,
    DependencyFailedError,
    InvalidArgumentError,
    SixhopError,
)
from services.runtime.policies.hedge import Hedge, HedgeConfig
from tests.unit.runtime.fake_time import LoopClock
from tests.unit.runtime.policies.client_samples import failed, script, sql_call

KEY = "tool/sql"
ON = HedgeConfig(keys=frozenset({KEY}))


async def warm(
    clock: LoopClock, config: HedgeConfig = ON, *, calls: int = 60, closed: bool = True
) -> Hedge:
    """Return a driver that has seen calls of 0.1 s and saved a token."""
    driver = Hedge(config, clock, lambda key: closed)
    for number in range(calls):
        # No call is late from the fiftieth on, when the first token has been earned.
        attempt, _ = script(clock, (0.1 if number < 49 else 0.09, None))
        await driver(sql_call(arrived_at=clock.now()), attempt)
    return driver


def fresh(clock: LoopClock, remaining_s: float = 30.0, **changes: Any) -> Call:
    """Return a call that arrived just now."""
    return sql_call(arrived_at=clock.now(), remaining_s=remaining_s, **changes)


def recording(
    clock: LoopClock, steps: Sequence[tuple[float, BaseException | None]]
) -> tuple[Callable[[], Awaitable[str]], list[str]]:
    """Return an attempt that acts by its number, and writes down how it ended."""
    log: list[str] = []
    begun = 0

    async def attempt() -> str:
        nonlocal begun
        number = begun
        begun += 1
        length_s, error = steps[number]
        try:
            await clock.sleep(length_s)
        except asyncio.CancelledError:
            log.append(f"{number} cancelled")
            raise
        log.append(f"{number} ended")
        if error is not None:
            raise error
        return f"answer {number}"

    return attempt, log


async def test_a_late_call_is_hedged_and_the_faster_answer_taken(clock: LoopClock) -> None:
    driver = await warm(clock)
    began = clock.now()
    attempt, log = recording(clock, [(3.0, None), (0.1, None)])

    assert await driver(fresh(clock), attempt) == "answer 1"
    assert clock.now() - began == pytest.approx(0.2)
    assert log == ["1 ended", "0 cancelled"]
    assert driver.snapshot()[KEY].win_count == 1


async def test_a_call_in_time_is_not_hedged(clock: LoopClock) -> None:
    driver = await warm(clock)
    attempt, starts = script(clock, (0.09, None))

    await driver(fresh(clock), attempt)

    assert len(starts) == 1


@pytest.mark.parametrize(("slow_count", "delay_s"), [(5, 0.1), (6, 0.8)])
async def test_late_is_what_nineteen_of_twenty_are_not(
    clock: LoopClock, slow_count: int, delay_s: float
) -> None:
    # Without hedges, which would answer the slow ones sooner.
    driver = Hedge(ON, clock, lambda key: False)
    for length_s in [0.8] * slow_count + [0.1] * (100 - slow_count):
        attempt, _ = script(clock, (length_s, None))
        await driver(fresh(clock), attempt)

    assert driver.snapshot()[KEY].delay_s == pytest.approx(delay_s)


async def test_the_first_may_still_win(clock: LoopClock) -> None:
    driver = await warm(clock)
    attempt, log = recording(clock, [(0.15, None), (1.0, None)])

    assert await driver(fresh(clock), attempt) == "answer 0"
    assert log == ["0 ended", "1 cancelled"]


async def test_nothing_is_hedged_unless_it_is_named(clock: LoopClock) -> None:
    driver = await warm(clock, HedgeConfig())
    attempt, starts = script(clock, (3.0, None))

    await driver(fresh(clock), attempt)

    assert len(starts) == 1
    assert driver.snapshot() == {}


@pytest.mark.parametrize(
    "changes",
    [{"streaming": True}, {"callee": Callee(key=KEY, idempotent=False)}],
    ids=["a stream", "a write"],
)
async def test_only_unary_reads_are_hedged(clock: LoopClock, changes: dict[str, Any]) -> None:
    driver = await warm(clock)
    attempt, starts = script(clock, (3.0, None))

    await driver(fresh(clock, **changes), attempt)

    assert len(starts) == 1


async def test_an_open_breaker_keeps_a_callee_from_being_hedged(clock: LoopClock) -> None:
    driver = await warm(clock, closed=False)
    attempt, starts = script(clock, (3.0, None))

    await driver(fresh(clock), attempt)

    assert len(starts) == 1


async def test_without_time_for_another_answer_there_is_no_hedge(clock: LoopClock) -> None:
    driver = await warm(clock)
    attempt, starts = script(clock, (0.2, None))

    await driver(fresh(clock, remaining_s=0.22), attempt)

    assert len(starts) == 1


async def test_hedges_are_at_most_a_fiftieth_of_the_calls(clock: LoopClock) -> None:
    driver = await warm(clock)
    for number in range(500):
        attempt, _ = script(clock, (0.5 if number % 4 == 0 else 0.1, None), (0.1, None))
        await driver(fresh(clock), attempt)

    snapshot = driver.snapshot()[KEY]
    assert 0 < snapshot.hedge_count <= 0.02 * snapshot.call_count


async def test_no_more_than_three_hedges_are_saved_up_however_long_it_was_calm(
    clock: LoopClock,
) -> None:
    driver = await warm(clock, calls=200)

    assert driver.snapshot()[KEY].tokens == 3.0


async def test_there_is_no_hedge_to_begin_with(clock: LoopClock) -> None:
    """A floor under the budget is what lets every idle replica hedge at once."""
    driver = await warm(clock, calls=40)
    attempt, starts = script(clock, (3.0, None))

    await driver(fresh(clock), attempt)

    assert len(starts) == 1


async def test_an_exceeded_budget_does_not_fail_the_original(clock: LoopClock) -> None:
    """failsafe-go#141 and grpc-java#7222: a throttled hedge failed or hung the original call."""
    driver = await warm(clock)
    late, _ = script(clock, (3.0, None), (0.1, None))
    await driver(fresh(clock), late)
    assert driver.snapshot()[KEY].tokens < 1

    attempt, starts = script(clock, (3.0, None))

    assert await driver(fresh(clock), attempt) == "answer 1"
    assert len(starts) == 1


@pytest.mark.parametrize("refusal", [BulkheadFullError("full"), failed()])
async def test_a_hedge_that_fails_does_not_fail_the_original(
    clock: LoopClock, refusal: SixhopError
) -> None:
    driver = await warm(clock)
    attempt, log = recording(clock, [(1.0, None), (0.0, refusal)])

    assert await driver(fresh(clock), attempt) == "answer 0"
    assert log == ["1 ended", "0 ended"]


async def test_a_first_that_fails_late_leaves_the_answer_to_the_hedge(clock: LoopClock) -> None:
    driver = await warm(clock)
    attempt, _ = recording(clock, [(0.2, failed()), (0.5, None)])

    assert await driver(fresh(clock), attempt) == "answer 1"


async def test_when_both_fail_the_originals_error_is_told(clock: LoopClock) -> None:
    driver = await warm(clock)
    original = failed()
    attempt, _ = recording(clock, [(0.5, original), (0.1, failed("UNREACHABLE"))])

    with pytest.raises(DependencyFailedError) as caught:
        await driver(fresh(clock), attempt)

    assert caught.value is original


async def test_an_early_failure_is_told_at_once(clock: LoopClock) -> None:
    """Hedging is no retry: what fails before it is late fails."""
    driver = await warm(clock)
    attempt, starts = script(clock, (0.05, failed()))

    with pytest.raises(DependencyFailedError):
        await driver(fresh(clock), attempt)

    assert len(starts) == 1


async def test_a_callers_mistake_ends_it_at_once(clock: LoopClock) -> None:
    driver = await warm(clock)
    attempt, log = recording(clock, [(3.0, None), (0.1, InvalidArgumentError("sql", "no"))])

    with pytest.raises(InvalidArgumentError):
        await driver(fresh(clock), attempt)

    assert log == ["1 ended", "0 cancelled"]


async def test_a_loser_that_takes_its_time_does_not_hold_up_the_answer(clock: LoopClock) -> None:
    driver = await warm(clock)
    began, release = clock.now(), asyncio.Event()
    begun = []

    async def attempt() -> str:
        begun.append(clock.now())
        if len(begun) == 2:
            await clock.sleep(0.1)
            return "quick"
        try:
            await clock.sleep(3.0)
        finally:
            await release.wait()
        return "slow"

    assert await driver(fresh(clock), attempt) == "quick"
    assert clock.now() - began < 0.3

    release.set()
    await driver.wait_parted()


async def test_a_loser_that_fails_while_it_is_cancelled_is_no_news(clock: LoopClock) -> None:
    driver = await warm(clock)
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
    begun = 0

    async def attempt() -> str:
        nonlocal begun
        begun += 1
        if begun == 2:
            return "answer"
        try:
            await clock.sleep(3.0)
        except asyncio.CancelledError:
            raise failed() from None
        return "late"

    assert await driver(fresh(clock), attempt) == "answer"
    await driver.wait_parted()
    # A task whose error nobody has looked at tells of it when it goes.
    gc.collect()

    assert reported == []


async def test_a_cancelled_loser_does_not_cancel_its_call(clock: LoopClock) -> None:
    """grpc#29248: a handler that awaits a cancelled hedge sends no status, and its client hangs."""
    driver = await warm(clock)
    attempt, _ = recording(clock, [(3.0, None), (0.1, None)])
    waiter = asyncio.create_task(driver(fresh(clock), attempt))

    await asyncio.wait({waiter})

    assert waiter.result() == "answer 1"
    assert waiter.cancelling() == 0


@pytest.mark.parametrize("after_s", [0.05, 0.15], ids=["before the hedge", "after the hedge"])
async def test_a_cancel_ends_every_attempt(clock: LoopClock, after_s: float) -> None:
    driver = await warm(clock)
    attempt, log = recording(clock, [(3.0, None), (3.0, None)])
    waiter = asyncio.create_task(driver(fresh(clock), attempt))
    await clock.sleep(after_s)

    waiter.cancel()
    await asyncio.wait({waiter})

    assert waiter.cancelled()
    assert sorted(log) == [f"{number} cancelled" for number in range(1 + (after_s > 0.1))]


@pytest.mark.parametrize(
    "wrong",
    [{"percentile": 0.4}, {"max_extra_ratio": 0.03}, {"max_tokens": 0.5}, {"max_keys": 0}],
)
def test_settings_that_cannot_work_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} = .*: write"):
        HedgeConfig(**wrong)  # type: ignore[arg-type]
