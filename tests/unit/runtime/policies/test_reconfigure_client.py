"""Holds the client's policies to keeping what they have learned when their settings change."""

import asyncio
import random
from dataclasses import replace
from functools import partial

import pytest

from services.runtime.call import Alternative, Callee, Fallback, Group, Mode
from services.runtime.circuit import BreakerConfig, BreakerState
from services.runtime.clock import Clock, ManualClock
from services.runtime.errors import SixhopError
from services.runtime.policies.adaptive import AdaptiveConfig, AdaptiveTimeouts
from services.runtime.policies.breaker import Breakers
from services.runtime.policies.bulkhead import Bulkhead, GroupSize
from services.runtime.policies.fallback import FallbackConfig, FallbackDriver
from services.runtime.policies.hedge import Hedge, HedgeConfig
from services.runtime.policies.retry import Retry, RetryConfig
from services.runtime.recent import RecentCalls
from services.runtime.stack import ClientStack
from services.runtime.topology import LLM
from tests.unit.runtime.policies.bulkheads import (
    SMALL,
    attempt,
    hold_until,
    holding,
    inflight,
    queued,
    refused,
    settle,
)
from tests.unit.runtime.policies.client_samples import SQL, failed, one, script, sql_call
from tests.unit.runtime.policies.client_samples import refused as turned_away

KEY = SQL.key


def always_closed(key: str) -> bool:
    """Return that a breaker is closed."""
    return True


async def tripped(clock: ManualClock, config: BreakerConfig) -> Breakers:
    """Return breakers of which one has opened."""
    breakers = Breakers(config, clock)
    for _ in range(config.min_calls):
        await one(breakers, clock, error=failed())
    assert breakers.state(KEY) is BreakerState.OPEN
    return breakers


async def test_an_open_breaker_stays_open_and_probes_when_the_new_rules_say(
    manual: ManualClock,
) -> None:
    breakers = await tripped(manual, BreakerConfig())
    trips = breakers.snapshot()[KEY].trip_count

    manual.advance(4.0)
    breakers.reconfigure(BreakerConfig(open_duration_s=5.0))
    still = breakers.state(KEY)
    manual.advance(1.0)

    assert still is BreakerState.OPEN
    assert breakers.state(KEY) is BreakerState.HALF_OPEN
    assert breakers.snapshot()[KEY].trip_count == trips


async def test_calls_in_the_window_count_under_the_new_rules(manual: ManualClock) -> None:
    breakers = Breakers(BreakerConfig(min_calls=100), manual)
    for _ in range(8):
        await one(breakers, manual, 0.01, failed())

    breakers.reconfigure(BreakerConfig(min_calls=9, window_s=30))
    kept = breakers.snapshot()[KEY].call_count
    await one(breakers, manual, 0.01, failed())

    assert kept == 8
    assert breakers.state(KEY) is BreakerState.OPEN


async def test_a_breaker_that_an_operator_holds_is_held_after_a_reload(
    manual: ManualClock,
) -> None:
    breakers = Breakers(BreakerConfig(), manual)
    breakers.force_open(KEY)

    breakers.reconfigure(BreakerConfig(open_duration_s=1.0))
    manual.advance(100.0)

    assert breakers.state(KEY) is BreakerState.OPEN


async def test_fewer_probes_cut_none_and_a_probe_under_way_still_counts(
    manual: ManualClock,
) -> None:
    breakers = await tripped(manual, BreakerConfig(open_duration_s=1.0))
    manual.advance(1.0)
    probes = [breakers(sql_call()) for _ in range(3)]
    for probe in probes:
        await probe.__aenter__()

    breakers.reconfigure(BreakerConfig(open_duration_s=1.0, max_probes=1))
    cancel = asyncio.CancelledError()
    for probe in probes[:2]:
        await probe.__aexit__(type(cancel), cancel, None)
    refusal = await turned_away(breakers)
    await probes[2].__aexit__(None, None, None)

    assert refusal is not None
    assert breakers.state(KEY) is BreakerState.CLOSED
    assert breakers.snapshot()[KEY].probes == 0


async def test_a_new_breaker_has_the_new_rules(manual: ManualClock) -> None:
    breakers = Breakers(BreakerConfig(min_calls=100), manual)
    breakers.reconfigure(BreakerConfig(min_calls=2))

    for _ in range(2):
        await one(breakers, manual, 0.01, failed())

    assert breakers.state(KEY) is BreakerState.OPEN


def test_a_longer_window_keeps_what_is_known_and_a_shorter_one_what_is_new() -> None:
    window = RecentCalls(4)
    for second in range(100, 104):
        window.add(float(second), 1.0, failed=second == 103)

    window.resize(10)
    long = (window.call_count, window.failure_count, window.total_s)
    window.move(109.0)
    later = window.call_count
    window.resize(8)

    assert long == (4, 1, 4.0)
    assert later == 4
    assert (window.call_count, window.failure_count, window.total_s) == (2, 1, 2.0)
    window.move(111.0)
    assert window.call_count == 0


@pytest.mark.parametrize(("max_tokens", "left"), [(20.0, 16.0), (5.0, 4.0)])
async def test_a_retry_budget_keeps_the_part_that_is_left(
    clock: Clock, max_tokens: float, left: float
) -> None:
    retry = Retry(RetryConfig(max_tokens=10.0), clock, random.Random(7), always_closed)
    work, _ = script(clock, (0.1, failed()))
    with pytest.raises(SixhopError):
        await retry(sql_call(), work)

    retry.reconfigure(RetryConfig(max_tokens=max_tokens))

    assert retry.snapshot()[KEY].tokens == left


async def test_the_attempts_of_a_call_under_way_follow_the_new_rules(clock: Clock) -> None:
    retry = Retry(RetryConfig(), clock, random.Random(7), always_closed)
    work, starts = script(clock, (1.0, failed()))
    calling = asyncio.create_task(_run(retry, work))
    await clock.sleep(0.5)

    retry.reconfigure(RetryConfig(max_attempts=1))
    await asyncio.wait({calling})

    assert isinstance(calling.exception(), SixhopError)
    assert len(starts) == 1


async def _run(retry: Retry, work: object) -> object:
    return await retry(sql_call(), work)  # type: ignore[arg-type]


async def test_hedges_that_were_saved_up_are_there_still(clock: Clock) -> None:
    keys = frozenset({KEY})
    hedge = Hedge(HedgeConfig(keys=keys), clock, always_closed)
    work, _ = script(clock, (0.1, None))
    for _ in range(40):
        await hedge(sql_call(), work)
    before = hedge.snapshot()[KEY]

    hedge.reconfigure(HedgeConfig(keys=keys, percentile=0.9))

    assert before.tokens > 0
    assert hedge.snapshot()[KEY] == before


async def test_a_mechanism_that_is_taken_away_is_not_given_any_more(clock: Clock) -> None:
    fallback = FallbackDriver(FallbackConfig(), clock)
    work, _ = script(clock, (0.1, failed()))
    default = Alternative(mechanism=Fallback.DEFAULT, run=_nothing)
    given = await fallback(sql_call(alternatives=[default]), work)

    fallback.reconfigure(FallbackConfig(mechanisms=frozenset({Fallback.CACHE})))

    assert given == "nothing"
    with pytest.raises(SixhopError):
        await fallback(sql_call(alternatives=[default]), work)


async def _nothing() -> str:
    return "nothing"


async def test_measured_lengths_move_the_timeout_inside_the_new_bounds(
    manual: ManualClock,
) -> None:
    adaptive = AdaptiveTimeouts(AdaptiveConfig(min_timeout_s=1.0), manual, always_closed)
    call = sql_call(dependency=LLM, callee=Callee(key=KEY))
    for _ in range(110):
        await one(adaptive, manual, 0.5, call=call)
    before_s = adaptive.limits(call).step_timeout_s

    adaptive.reconfigure(AdaptiveConfig(min_timeout_s=2.0))

    assert (before_s, adaptive.limits(call).step_timeout_s) == (1.0, 2.0)
    assert adaptive.snapshot()[KEY].sample_count == 110


async def test_more_permits_wake_those_who_wait_in_the_order_of_their_coming(
    clock: Clock,
) -> None:
    bulkhead = Bulkhead(SMALL, clock)
    log: list[str] = []
    done = asyncio.Event()

    async with asyncio.TaskGroup() as tasks, holding(bulkhead, *(attempt(clock) for _ in range(4))):
        for number in range(3):
            waiting = attempt(clock, tenant=f"t{number}")
            tasks.create_task(hold_until(bulkhead, waiting, done, log))
            await settle()
        bulkhead.reconfigure(replace(SMALL, core=GroupSize(permits=6, max_queued=8)))
        await settle()
        entered, waits = list(log), queued(bulkhead)
        done.set()

    assert (entered, waits) == (["t0", "t1"], 1)
    assert (inflight(bulkhead), queued(bulkhead)) == (0, 0)


async def test_fewer_permits_than_in_use_cut_none_and_lose_none(clock: Clock) -> None:
    bulkhead = Bulkhead(SMALL, clock)
    held = [bulkhead(attempt(clock)) for _ in range(4)]
    for each in held:
        await each.__aenter__()

    bulkhead.reconfigure(replace(SMALL, core=GroupSize(permits=2, max_queued=0)))
    in_use = inflight(bulkhead)
    for each in held[:2]:
        await each.__aexit__(None, None, None)
    cause = await refused(bulkhead, attempt(clock))
    for each in held[2:]:
        await each.__aexit__(None, None, None)

    assert (in_use, cause) == (4, "queue_full")
    assert inflight(bulkhead) == 0
    async with holding(bulkhead, attempt(clock), attempt(clock)):
        assert bulkhead.snapshot().groups[Group.CORE].inflight == 2


async def test_who_waits_when_the_bulkhead_is_switched_off_leaves_nothing_behind(
    clock: Clock,
) -> None:
    bulkhead = Bulkhead(SMALL, clock)

    async with holding(bulkhead, *(attempt(clock) for _ in range(4))):
        waiting = asyncio.create_task(bulkhead(attempt(clock)).__aenter__())
        await settle()
        bulkhead.reconfigure(replace(SMALL, mode=Mode.OFF))
        async with bulkhead(attempt(clock)):
            passed = inflight(bulkhead)
        await asyncio.wait({waiting})

    assert passed == 4
    assert waiting.exception() is not None
    assert (inflight(bulkhead), queued(bulkhead)) == (0, 0)


def asked(stack: ClientStack) -> list[object]:
    """Return the drivers that lead a call, outermost first."""

    async def attempt() -> None:
        """Never begins."""

    found: list[object] = []
    led = stack.driven(sql_call(), attempt)
    while isinstance(led, partial):
        found.append(led.func)
        led = led.args[1]
    return found


async def test_who_was_idle_is_asked_again_once_the_rules_want_something(clock: Clock) -> None:
    retry = Retry(RetryConfig(mode="off"), clock, random.Random(7), always_closed)
    hedge = Hedge(HedgeConfig(), clock, always_closed)
    stack = ClientStack(drivers=[hedge, retry])
    assert asked(stack) == []

    retry.reconfigure(RetryConfig())
    hedge.reconfigure(HedgeConfig(keys=frozenset({KEY})))
    wanted = asked(stack)
    retry.reconfigure(RetryConfig(mode="off"))
    hedge.reconfigure(HedgeConfig())

    assert wanted == [hedge, retry]
    assert asked(stack) == []
