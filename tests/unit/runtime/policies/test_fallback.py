"""Holds the fallback driver to its order, its time, and the truth about what it gives."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from services.runtime.call import Alternative, Degradation, Fallback
from services.runtime.clock import ManualClock
from services.runtime.errors import (
    BudgetTooSmallError,
    BulkheadFullError,
    CircuitOpenError,
    DeadlineMissingError,
    DependencyFailedError,
    InvalidArgumentError,
    SelfBugError,
    SixhopError,
)
from services.runtime.policies.fallback import (
    AlternativeMissingError,
    AnswerCache,
    FallbackConfig,
    FallbackDriver,
)
from tests.unit.runtime.fake_time import LoopClock
from tests.unit.runtime.policies.client_samples import failed, overloaded, script, sql_call


def giving(
    clock: LoopClock,
    mechanism: Fallback,
    length_s: float = 0.0,
    error: BaseException | None = None,
    **others: Any,
) -> Alternative:
    """Return an alternative that takes and ends so, and answers with its own name."""

    async def run() -> str:
        await clock.sleep(length_s)
        if error is not None:
            raise error
        return mechanism.value

    return Alternative(mechanism=mechanism, run=run, **others)


def failing(
    clock: LoopClock, error: BaseException, after_s: float = 0.1
) -> Callable[[], Awaitable[Any]]:
    """Return a call that ends so."""

    async def attempt() -> str:
        await clock.sleep(after_s)
        raise error

    return attempt


async def test_an_answer_needs_no_alternative(clock: LoopClock) -> None:
    attempt, _ = script(clock, (0.1, None))
    call = sql_call(alternatives=(giving(clock, Fallback.DEFAULT),))

    assert await FallbackDriver(FallbackConfig(), clock)(call, attempt) == "answer 1"
    assert call.degradation is None


@pytest.mark.parametrize(
    "error",
    [
        failed(),
        failed(hop="model"),
        overloaded(1.0),
        CircuitOpenError("open"),
        BulkheadFullError("full"),
        BudgetTooSmallError("small"),
    ],
    ids=lambda error: error.reason,
)
async def test_the_first_alternative_that_fits_is_given_and_told(
    clock: LoopClock, error: SixhopError
) -> None:
    call = sql_call(alternatives=(giving(clock, Fallback.DEFAULT), giving(clock, Fallback.SKIP)))

    answer = await FallbackDriver(FallbackConfig(), clock)(call, failing(clock, error))

    assert answer == "default"
    assert call.degradation is not None
    assert call.degradation.mechanism is Fallback.DEFAULT
    assert (call.degradation.reason, call.degradation.message) == (error.reason, error.message)
    assert call.degradation.age_s == 0.0


async def test_only_what_is_given_is_told_to_who_made_it(clock: LoopClock) -> None:
    told: list[Degradation] = []
    missing = giving(
        clock, Fallback.CACHE, error=AlternativeMissingError(), tell=lambda each: 1 / 0
    )
    call = sql_call(
        alternatives=(missing, giving(clock, Fallback.DEFAULT, tell=told.append)),
    )

    await FallbackDriver(FallbackConfig(), clock)(call, failing(clock, failed()))

    assert told == [call.degradation]


async def test_alternatives_are_tried_in_the_order_declared_until_one_fits(
    clock: LoopClock,
) -> None:
    call = sql_call(
        alternatives=(
            giving(clock, Fallback.CACHE, error=AlternativeMissingError()),
            giving(clock, Fallback.BACKUP, 0.5, failed("UNREACHABLE")),
            giving(clock, Fallback.PARTIAL),
            giving(clock, Fallback.SKIP),
        )
    )

    answer = await FallbackDriver(FallbackConfig(), clock)(call, failing(clock, failed()))

    assert answer == "partial"


async def test_when_nothing_fits_the_original_error_is_told(clock: LoopClock) -> None:
    original = failed()
    call = sql_call(
        alternatives=(
            giving(clock, Fallback.CACHE, error=AlternativeMissingError()),
            giving(clock, Fallback.BACKUP, error=failed("UNREACHABLE")),
        )
    )

    with pytest.raises(DependencyFailedError) as caught:
        await FallbackDriver(FallbackConfig(), clock)(call, failing(clock, original))

    assert caught.value is original
    assert call.degradation is None


@pytest.mark.parametrize(
    "error",
    [
        InvalidArgumentError("sql", "no"),
        DeadlineMissingError("none"),
        SelfBugError("ours"),
        asyncio.CancelledError(),
        KeyError("a defect"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_mistakes_defects_and_cancels_are_told_as_they_are(
    clock: LoopClock, error: BaseException
) -> None:
    call = sql_call(alternatives=(giving(clock, Fallback.DEFAULT),))

    with pytest.raises(type(error)):
        await FallbackDriver(FallbackConfig(), clock)(call, failing(clock, error))


async def test_an_alternative_is_not_begun_without_the_time_it_takes(clock: LoopClock) -> None:
    """Sibling of backoff not counted in the budget: a backup that cannot answer in time."""
    call = sql_call(
        remaining_s=10.0,
        alternatives=(
            giving(clock, Fallback.BACKUP, 3.0, expected_s=3.0),
            giving(clock, Fallback.DEFAULT),
        ),
    )

    driver = FallbackDriver(FallbackConfig(), clock)

    assert await driver(call, failing(clock, failed(), 6.1)) == "default"
    assert clock.now() < call.inbound.self_deadline


async def test_an_alternative_that_outlives_the_time_is_cut_off(clock: LoopClock) -> None:
    original = failed()
    call = sql_call(remaining_s=10.0, alternatives=(giving(clock, Fallback.BACKUP, 60.0),))

    with pytest.raises(DependencyFailedError) as caught:
        await FallbackDriver(FallbackConfig(), clock)(call, failing(clock, original))

    assert caught.value is original
    assert clock.now() == pytest.approx(call.inbound.self_deadline)


async def test_after_the_deadline_nothing_is_given(clock: LoopClock) -> None:
    call = sql_call(remaining_s=1.0, alternatives=(giving(clock, Fallback.DEFAULT),))

    with pytest.raises(DependencyFailedError):
        await FallbackDriver(FallbackConfig(), clock)(call, failing(clock, failed(), 1.0))


async def test_a_stream_that_has_delivered_gets_no_other_answer(clock: LoopClock) -> None:
    call = sql_call(streaming=True, delivered=True, alternatives=(giving(clock, Fallback.DEFAULT),))

    with pytest.raises(DependencyFailedError):
        await FallbackDriver(FallbackConfig(), clock)(call, failing(clock, failed()))


@pytest.mark.parametrize(
    "config",
    [FallbackConfig(enabled=False), FallbackConfig(mechanisms=frozenset({Fallback.CACHE}))],
    ids=["off", "not this kind"],
)
async def test_what_is_turned_off_is_not_given(clock: LoopClock, config: FallbackConfig) -> None:
    call = sql_call(alternatives=(giving(clock, Fallback.DEFAULT),))

    with pytest.raises(DependencyFailedError):
        await FallbackDriver(config, clock)(call, failing(clock, failed()))


async def test_a_cancel_during_an_alternative_ends_the_call(clock: LoopClock) -> None:
    call = sql_call(alternatives=(giving(clock, Fallback.BACKUP, 9.0),))
    driver = FallbackDriver(FallbackConfig(), clock)
    waiter = asyncio.create_task(driver(call, failing(clock, failed())))
    await clock.sleep(1.0)

    waiter.cancel()
    await asyncio.wait({waiter})

    assert waiter.cancelled()
    assert call.degradation is None


async def test_a_stale_answer_is_marked_with_its_age_when_given(clock: LoopClock) -> None:
    cache = AnswerCache(clock)
    cache.keep("tool/sql", "q1", ["rows"], size_bytes=100)
    await clock.sleep(60.0)
    stale = cache.alternative("tool/sql", "q1", max_age_s=300.0)
    assert stale is not None
    call = sql_call(arrived_at=clock.now(), alternatives=(stale,))

    answer = await FallbackDriver(FallbackConfig(), clock)(call, failing(clock, failed(), 4.0))

    assert answer == ["rows"]
    assert call.degradation is not None
    assert call.degradation.mechanism is Fallback.CACHE
    assert call.degradation.age_s == pytest.approx(64.0)


@pytest.mark.parametrize(("age_s", "found"), [(300.0, True), (300.1, False)])
def test_an_answer_older_than_declared_is_not_found(
    manual: ManualClock, age_s: float, found: bool
) -> None:
    cache = AnswerCache(manual)
    cache.keep("tool/sql", "q1", "rows", size_bytes=1)
    manual.advance(age_s)

    assert (cache.find("tool/sql", "q1", max_age_s=300.0) is not None) is found
    assert (cache.alternative("tool/sql", "q1", max_age_s=300.0) is not None) is found
    # What is too old to be given takes no room either.
    assert (len(cache), cache.size_bytes) == ((1, 1) if found else (0, 0))


def test_an_answer_is_found_by_callee_and_request(manual: ManualClock) -> None:
    cache = AnswerCache(manual)
    cache.keep("tool/sql", "q1", "rows", size_bytes=1)

    assert cache.find("tool/sql", "q2", max_age_s=9.0) is None
    assert cache.find("tool/chart", "q1", max_age_s=9.0) is None


def test_a_new_answer_takes_the_place_of_the_old(manual: ManualClock) -> None:
    cache = AnswerCache(manual)
    cache.keep("tool/sql", "q1", "old", size_bytes=50)
    manual.advance(5.0)
    cache.keep("tool/sql", "q1", "new", size_bytes=70)

    found = cache.find("tool/sql", "q1", max_age_s=9.0)

    assert found is not None
    assert (found.answer, found.age_s) == ("new", 0.0)
    assert (len(cache), cache.size_bytes) == (1, 70)


def test_the_cache_stays_within_both_of_its_bounds(manual: ManualClock) -> None:
    cache = AnswerCache(manual, max_count=3, max_bytes=100)
    for number in range(6):
        cache.keep("tool/sql", f"q{number}", number, size_bytes=10)
    assert len(cache) == 3

    cache.keep("tool/sql", "big", "big", size_bytes=85)
    assert (len(cache), cache.size_bytes) == (2, 95)

    cache.keep("tool/sql", "bigger than all", "x", size_bytes=101)
    assert (len(cache), cache.size_bytes) == (2, 95)


def test_a_cache_that_is_made_smaller_drops_what_does_not_fit_any_more(
    manual: ManualClock,
) -> None:
    driver = FallbackDriver(FallbackConfig(), manual)
    for number in range(6):
        driver.answers.keep("tool/sql", f"q{number}", number, size_bytes=10)

    driver.reconfigure(FallbackConfig(max_cached_count=4, max_cached_bytes=35))

    assert (len(driver.answers), driver.answers.size_bytes) == (3, 30)
    assert driver.answers.find("tool/sql", "q5", max_age_s=9.0) is not None


def test_an_answer_in_use_outlives_an_idle_one(manual: ManualClock) -> None:
    cache = AnswerCache(manual, max_count=2)
    cache.keep("tool/sql", "used", 1, size_bytes=1)
    cache.keep("tool/sql", "idle", 2, size_bytes=1)
    cache.find("tool/sql", "used", max_age_s=9.0)

    cache.keep("tool/sql", "new", 3, size_bytes=1)

    assert cache.find("tool/sql", "used", max_age_s=9.0) is not None
    assert cache.find("tool/sql", "idle", max_age_s=9.0) is None
