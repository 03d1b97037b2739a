"""Tests retries that are blind, and those that are off."""

import pytest

from services.runtime.call import Callee
from services.runtime.errors import SixhopError
from services.runtime.policies.retry import RetryConfig
from tests.unit.runtime.fake_time import START, LoopClock
from tests.unit.runtime.policies.client_samples import (
    failed,
    overloaded,
    script,
    silent,
    sql_call,
)
from tests.unit.runtime.policies.retries import NO_JITTER, attempts_of, retry

BLIND = RetryConfig(mode="blind", max_attempts=4, initial_backoff_s=0.1)


@pytest.mark.parametrize(
    "error",
    [failed(), failed("SELF_BUG"), failed(hop="model"), silent("deadline_share"), overloaded()],
)
async def test_blind_retries_repeat_every_failure_after_the_same_wait(
    clock: LoopClock, error: SixhopError
) -> None:
    # Its effect may happen four times, its time is up, and its breaker is open.
    call = sql_call(callee=Callee(key="tool/pay"), remaining_s=0.05)
    attempt, starts = script(clock, (0.0, error))

    with pytest.raises(SixhopError) as caught:
        await retry(clock, BLIND, closed=False)(call, attempt)

    assert caught.value is error
    assert starts == pytest.approx([START, START + 0.1, START + 0.2, START + 0.3])


async def test_only_blind_retries_lead_calls_that_must_not_be_sent_twice(clock: LoopClock) -> None:
    call, driver = sql_call(callee=Callee(key="tool/pay")), retry(clock)
    led = [driver.applies(call), retry(clock, BLIND).applies(call)]
    for config in (BLIND, NO_JITTER):
        driver.reconfigure(config)
        led.append(driver.applies(call))

    assert led == [False, True, True, False]


async def test_blind_retries_do_not_end_with_the_retry_budget(clock: LoopClock) -> None:
    driver = retry(clock, BLIND)

    counts = [await attempts_of(driver, sql_call(), clock, failed()) for _ in range(20)]

    assert set(counts) == {4}


async def test_blind_retries_ask_of_a_stream_no_more_time_than_of_a_call(clock: LoopClock) -> None:
    call = sql_call(streaming=True, remaining_s=0.05)

    assert await attempts_of(retry(clock, BLIND), call, clock, silent("deadline_share")) == 4


async def test_not_even_a_blind_retry_runs_a_stream_again_that_has_delivered(
    clock: LoopClock,
) -> None:
    call = sql_call(streaming=True, delivered=True)

    assert await attempts_of(retry(clock, BLIND), call, clock, failed()) == 1


async def test_retries_that_are_off_repeat_nothing(clock: LoopClock) -> None:
    driver = retry(clock, RetryConfig(mode="off"))

    assert not driver.applies(sql_call())
    assert await attempts_of(driver, sql_call(), clock, failed()) == 1
