"""Holds the breaker to its probes: few, never lost, and always coming to an end."""

import asyncio
from contextlib import AbstractAsyncContextManager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.runtime.circuit import BreakerChange, BreakerConfig, BreakerState, Reason
from services.runtime.clock import ManualClock
from services.runtime.errors import CircuitOpenError
from services.runtime.policies.breaker import Breakers
from tests.unit.runtime.policies.client_samples import failed, one, refused, sql_call

KEY = "tool/sql"
CLOSED, OPEN, HALF_OPEN = BreakerState.CLOSED, BreakerState.OPEN, BreakerState.HALF_OPEN
Guarded = AbstractAsyncContextManager[None]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def changes() -> list[BreakerChange]:
    return []


@pytest.fixture
def breakers(clock: ManualClock, changes: list[BreakerChange]) -> Breakers:
    return Breakers(BreakerConfig(), clock, changes.append)


async def trip(breakers: Breakers, clock: ManualClock) -> None:
    """Open the breaker."""
    for _ in range(10):
        await one(breakers, clock, 0.0, failed())


async def probes(breakers: Breakers, count: int = 3) -> list[Guarded]:
    """Start attempts and leave them running."""
    started = [breakers(sql_call()) for _ in range(count)]
    for guarded in started:
        await guarded.__aenter__()
    return started


async def end(guarded: Guarded, error: BaseException | None = None) -> None:
    """End an attempt."""
    await guarded.__aexit__(None if error is None else type(error), error, None)


async def test_it_refuses_for_thirty_seconds_and_then_probes(
    breakers: Breakers, clock: ManualClock
) -> None:
    await trip(breakers, clock)
    clock.advance(29.9)
    assert await refused(breakers) is not None

    clock.advance(0.1)

    assert await refused(breakers) is None


async def test_three_probes_are_under_way_and_no_more(
    breakers: Breakers, clock: ManualClock
) -> None:
    """resilience4j#1090: more probes than permitted under load."""
    await trip(breakers, clock)
    clock.advance(30.0)
    await probes(breakers)

    refusals = [await refused(breakers) for _ in range(20)]

    assert all(isinstance(error, CircuitOpenError) for error in refusals)
    assert breakers.snapshot()[KEY].probes == 3


async def test_one_good_probe_closes_it_without_a_burst_of_traffic(
    breakers: Breakers, clock: ManualClock, changes: list[BreakerChange]
) -> None:
    await trip(breakers, clock)
    clock.advance(30.0)

    await one(breakers, clock)

    assert breakers.state(KEY) is CLOSED
    assert [change.new for change in changes] == [OPEN, HALF_OPEN, CLOSED]
    assert changes[-1].reason is Reason.PROBE_SUCCEEDED


async def test_a_failed_probe_opens_it_for_another_thirty_seconds(
    breakers: Breakers, clock: ManualClock
) -> None:
    await trip(breakers, clock)
    clock.advance(30.0)

    await one(breakers, clock, 0.5, failed())

    assert breakers.state(KEY) is OPEN
    assert breakers.snapshot()[KEY].retry_after_s == pytest.approx(30.0)


async def test_a_slow_probe_is_a_bad_one_even_before_it_ends(
    breakers: Breakers, clock: ManualClock, changes: list[BreakerChange]
) -> None:
    await trip(breakers, clock)
    clock.advance(30.0)
    (probe,) = await probes(breakers, 1)
    clock.advance(2.1)
    assert breakers.state(KEY) is OPEN
    assert changes[-1].reason is Reason.PROBE_SLOW

    await end(probe)

    assert breakers.state(KEY) is OPEN


async def test_a_cancelled_probe_gives_its_permit_back(
    breakers: Breakers, clock: ManualClock
) -> None:
    """resilience4j#903, #935: stuck half-open, a permit taken and never returned."""
    await trip(breakers, clock)
    clock.advance(30.0)
    for _ in range(10):
        for probe in await probes(breakers):
            await end(probe, asyncio.CancelledError())

    assert breakers.state(KEY) is HALF_OPEN
    assert breakers.snapshot()[KEY].probes == 0
    assert await refused(breakers) is None


async def test_a_late_success_of_an_earlier_time_does_not_close_it(
    breakers: Breakers, clock: ManualClock
) -> None:
    late = await probes(breakers, 1)
    await trip(breakers, clock)

    await end(late[0])
    assert breakers.state(KEY) is OPEN

    clock.advance(30.0)
    first, second, _ = await probes(breakers)
    await end(first, failed())
    await end(second)
    assert breakers.state(KEY) is OPEN


async def test_late_failures_of_an_earlier_time_do_not_open_it_for_longer(
    breakers: Breakers, clock: ManualClock
) -> None:
    late = await probes(breakers, 5)
    await trip(breakers, clock)
    clock.advance(1.5)
    for guarded in late:
        await end(guarded, failed())

    assert breakers.snapshot()[KEY].retry_after_s == pytest.approx(28.5)


async def test_late_failures_do_not_count_after_it_has_closed(
    breakers: Breakers, clock: ManualClock
) -> None:
    late = await probes(breakers, 50)
    await trip(breakers, clock)
    clock.advance(30.0)
    await one(breakers, clock)
    for guarded in late:
        await end(guarded, failed())

    assert breakers.snapshot()[KEY].call_count == 0
    assert breakers.state(KEY) is CLOSED


async def test_what_hung_in_an_earlier_time_is_not_counted_when_it_ends(
    breakers: Breakers, clock: ManualClock
) -> None:
    hanging = await probes(breakers)
    clock.advance(2.1)
    assert breakers.snapshot()[KEY].overdue == 0
    assert breakers.state(KEY) is OPEN
    clock.advance(30.0)
    await one(breakers, clock)

    for guarded in hanging:
        await end(guarded)

    assert breakers.snapshot()[KEY].overdue == 0
    assert breakers.snapshot()[KEY].call_count == 0


async def test_half_open_ends_without_any_traffic(
    breakers: Breakers, clock: ManualClock, changes: list[BreakerChange]
) -> None:
    """resilience4j#2028: no exit from half-open without traffic."""
    await trip(breakers, clock)
    clock.advance(30.0)
    assert breakers.state(KEY) is HALF_OPEN

    clock.advance(30.0)

    assert breakers.state(KEY) is CLOSED
    assert changes[-1].reason is Reason.HALF_OPEN_OVER


async def test_half_open_ends_although_every_probe_says_nothing(
    breakers: Breakers, clock: ManualClock
) -> None:
    """resilience4j#2093, #980: stuck open for hours."""
    await trip(breakers, clock)
    clock.advance(30.0)
    for _ in range(40):
        await refused(breakers)
        clock.advance(1.0)

    assert breakers.state(KEY) is CLOSED


async def test_long_streams_that_have_begun_well_do_not_keep_it_half_open(
    breakers: Breakers, clock: ManualClock
) -> None:
    await trip(breakers, clock)
    clock.advance(30.0)
    for _ in range(3):
        call = sql_call(streaming=True)
        await breakers(call).__aenter__()
        breakers.first_event(call)
    clock.advance(30.0)

    assert await refused(breakers) is None
    assert breakers.state(KEY) is CLOSED


async def test_probes_that_never_ended_count_with_those_of_the_next_time(
    breakers: Breakers, clock: ManualClock, changes: list[BreakerChange]
) -> None:
    await trip(breakers, clock)
    clock.advance(30.0)
    stuck = await probes(breakers)
    clock.advance(2.1)
    assert breakers.state(KEY) is OPEN
    clock.advance(30.0)

    assert isinstance(await refused(breakers), CircuitOpenError)
    clock.advance(30.0)
    assert breakers.state(KEY) is OPEN
    assert changes[-1].reason is Reason.PROBES_STUCK

    for guarded in stuck:
        await end(guarded, asyncio.CancelledError())
    clock.advance(30.0)
    assert await refused(breakers) is None


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("start"), st.just(0.0)),
        st.tuples(st.sampled_from(["good", "bad", "cancel"]), st.floats(0.0, 1.0)),
        st.tuples(st.just("wait"), st.sampled_from([0.0, 0.5, 2.5, 10.0, 31.0])),
    ),
    max_size=120,
)


@settings(max_examples=150, deadline=None)
@given(
    steps=STEPS,
    min_calls=st.integers(1, 5),
    max_probes=st.integers(1, 3),
    open_duration_s=st.sampled_from([1.0, 30.0]),
)
def test_whatever_happens_probes_stay_few_and_none_is_lost(
    steps: list[tuple[str, float]], min_calls: int, max_probes: int, open_duration_s: float
) -> None:
    config = BreakerConfig(
        min_calls=min_calls, max_probes=max_probes, open_duration_s=open_duration_s
    )

    async def play() -> None:
        clock = ManualClock()
        breakers = Breakers(config, clock)
        running: list[tuple[Guarded, bool]] = []
        for kind, number in steps:
            if kind == "wait":
                clock.advance(number)
            elif kind == "start":
                guarded = breakers(sql_call())
                try:
                    await guarded.__aenter__()
                except CircuitOpenError:
                    continue
                running.append((guarded, breakers.state(KEY) is HALF_OPEN))
            elif running:
                guarded, _ = running.pop(int(number * (len(running) - 1)))
                error = {"good": None, "bad": failed(), "cancel": asyncio.CancelledError()}[kind]
                await end(guarded, error)
            probing = sum(probe for _, probe in running)
            assert probing <= max_probes
            assert breakers.snapshot().get(KEY) is None or (
                breakers.snapshot()[KEY].probes == probing
            )
        for guarded, _ in running:
            await end(guarded, asyncio.CancelledError())
        clock.advance(1000.0)
        breakers.state(KEY)
        clock.advance(1000.0)
        assert breakers.closed(KEY)
        assert await refused(breakers) is None

    asyncio.run(play())
