"""Opens streams again only in time, and sends nothing again that was refused for what it says."""

import pytest

from services.runtime.call import Callee
from services.runtime.errors import SixhopError
from services.runtime.policies.retry import RetryConfig
from tests.requirements import requirement
from tests.unit.runtime.fake_time import LoopClock
from tests.unit.runtime.policies.client_samples import failed, overloaded, script, silent, sql_call
from tests.unit.runtime.policies.retries import attempts_of, retry


@pytest.mark.parametrize(
    ("pushback_s", "attempts"), [(0.0, 2), (2.5, 2), (4.8, 2), (5.0, 1), (7.0, 1), (60.0, 1)]
)
async def test_a_stream_is_opened_again_only_while_its_beginning_is_waited_for(
    clock: LoopClock, pushback_s: float, attempts: int
) -> None:
    call = sql_call(streaming=True, step_timeout_s=5.0)

    assert await attempts_of(retry(clock), call, clock, overloaded(pushback_s)) == attempts


async def test_a_stream_that_takes_long_to_begin_leaves_less_time_for_another_attempt(
    clock: LoopClock,
) -> None:
    driver = retry(clock)
    for _ in range(20):
        attempt, _ = script(clock, (3.0, None))
        await driver(sql_call(arrived_at=clock.now()), attempt)
    call = sql_call(streaming=True, arrived_at=clock.now())

    assert await attempts_of(driver, call, clock, overloaded(2.5)) == 1


REFUSALS = (
    "CONTEXT_LENGTH",
    "CONTENT_FILTERED",
    "PROVIDER_REFUSED",
    "PROVIDER_KEY_REFUSED",
    "PROVIDER_NO_BALANCE",
    "PROVIDER_MODEL_UNKNOWN",
)


@pytest.mark.parametrize("reason", REFUSALS)
async def test_what_a_provider_refuses_is_not_sent_again_whatever_the_settings_repeat(
    clock: LoopClock, reason: str
) -> None:
    config = RetryConfig(retry_on=frozenset({reason, "DEPENDENCY_FAILED"}))
    call = sql_call(streaming=True)

    assert await attempts_of(retry(clock, config), call, clock, failed(reason)) == 1


@requirement("faults:few-attempts")
@pytest.mark.parametrize(
    ("error", "attempts"),
    [
        (failed("UNREACHABLE"), 2),
        (failed("SELF_UNAVAILABLE"), 2),
        (overloaded(0.5), 2),
        (failed("CONNECTION_LOST"), 1),
        (failed("STREAM_LOST"), 1),
        (failed("CANCELLED"), 1),
        (silent(), 1),
    ],
    ids=lambda value: getattr(value, "message", str(value)),
)
async def test_what_may_have_been_paid_for_is_sent_again_only_if_it_was_surely_not_begun(
    clock: LoopClock, error: SixhopError, attempts: int
) -> None:
    call = sql_call(callee=Callee(key="model", idempotent=True, paid=True))

    assert await attempts_of(retry(clock), call, clock, error) == attempts
