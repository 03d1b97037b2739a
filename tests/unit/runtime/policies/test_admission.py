"""Holds admission to its rules: who is refused, by which, how often, and what the limit learns."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

import pytest

from services.runtime.call import Criticality, Inbound, Mode
from services.runtime.clock import ManualClock
from services.runtime.errors import (
    BudgetTooSmallError,
    Code,
    DependencyFailedError,
    InvalidArgumentError,
    LoadShedError,
    Origin,
    SelfTimeoutError,
)
from services.runtime.policies.admission import Admission, AdmissionConfig
from services.runtime.policies.limit import Fixed, LimitConfig
from tests.unit.runtime.policies.admissions import admitted, served

CONFIG = AdmissionConfig(estimate=Mode.ENFORCE)
NO_ANSWER = DependencyFailedError(
    "tool", "silence", cause="deadline", origin=Origin("tool", reason="NO_ANSWER")
)


class Recording(Fixed):
    """Is a limit that remembers what it was told."""

    learns = True

    def __init__(self, value: int) -> None:
        super().__init__(value)
        self.told: list[tuple[str, float, int]] = []

    def record(self, now: float, latency_s: float, inflight: int) -> None:
        self.told.append(("ok", round(latency_s, 6), inflight))

    def record_overload(self, now: float, inflight: int) -> None:
        self.told.append(("overload", 0.0, inflight))


@pytest.fixture
def clock() -> ManualClock:
    """Return a clock that only the test moves."""
    return ManualClock()


@asynccontextmanager
async def holding(admission: Admission, *calls: Inbound) -> AsyncIterator[None]:
    """Serve some calls while the block runs."""
    async with AsyncExitStack() as stack:
        for call in calls:
            await stack.enter_async_context(admission(call))
        yield


async def ended_by(
    admission: Admission, call: Inbound, error: BaseException, clock: ManualClock, after_s: float
) -> None:
    """Serve a call that an error ends after some time."""
    entry = admission(call)
    await entry.__aenter__()
    clock.advance(after_s)
    await entry.__aexit__(type(error), error, None)


@pytest.mark.parametrize("ratio", [0.0, 1.0, -1.0])
def test_a_rule_that_might_refuse_everybody_is_refused(ratio: float) -> None:
    with pytest.raises(ValueError, match="max_reject_ratio"):
        AdmissionConfig(max_reject_ratio=ratio)


@pytest.mark.parametrize(
    ("path_s", "late_s", "lets_in"),
    [(None, 0.0, True), (8.9, 0.0, True), (9.1, 0.0, False), (8.9, 0.2, False)],
    ids=["unknown", "fits", "no", "no more"],
)
async def test_a_call_whose_path_takes_longer_than_what_is_left_is_refused_on_arrival(
    clock: ManualClock, path_s: float | None, late_s: float, lets_in: bool
) -> None:
    admission = Admission(CONFIG, Fixed(9), clock, lambda _: path_s)
    call = served(clock, remaining_s=10.0)
    clock.advance(late_s)

    assert await admitted(admission, call) is lets_in


async def test_a_refusal_by_estimate_says_what_is_needed_and_what_is_left(
    clock: ManualClock,
) -> None:
    admission = Admission(CONFIG, Fixed(9), clock, lambda _: 12.5)

    with pytest.raises(BudgetTooSmallError) as caught:
        await admission(served(clock, remaining_s=10.0)).__aenter__()

    assert caught.value.code is Code.FAILED_PRECONDITION
    assert caught.value.cause == "path_estimate"
    assert caught.value.details == {"estimateMs": "12500"}
    assert "12.50 s" in caught.value.message
    assert "9.00 s are left" in caught.value.message


async def test_an_estimate_refuses_four_of_five_so_that_it_can_heal(clock: ManualClock) -> None:
    admission = Admission(CONFIG, Fixed(9), clock, lambda _: 100.0)

    let_in = [await admitted(admission, served(clock)) for _ in range(100)]

    assert let_in.count(True) == 20
    assert admission.snapshot().spared_count == 20
    assert admission.snapshot().refused == {"estimate/CRITICAL_PLUS": 80}


async def test_reject_tokens_are_not_spent_on_calls_that_have_time(clock: ManualClock) -> None:
    """finagle#936: the filter withdrew tokens for requests that were not expired."""
    path_s = 1.0
    admission = Admission(CONFIG, Fixed(9), clock, lambda _: path_s)

    for _ in range(1000):
        assert await admitted(admission, served(clock))
    path_s = 100.0

    assert not await admitted(admission, served(clock))


async def test_an_observing_estimate_refuses_nobody_and_counts_the_same(
    clock: ManualClock,
) -> None:
    admission = Admission(replace(CONFIG, estimate=Mode.OBSERVE), Fixed(9), clock, lambda _: 100.0)

    let_in = [await admitted(admission, served(clock)) for _ in range(100)]

    assert all(let_in)
    assert admission.snapshot().would_refuse == {"estimate/CRITICAL_PLUS": 80}
    assert admission.snapshot().refused == {}


async def test_an_estimate_that_is_off_is_not_asked(clock: ManualClock) -> None:
    def never(call: Inbound) -> float:
        raise AssertionError("asked")

    admission = Admission(replace(CONFIG, estimate=Mode.OFF), Fixed(9), clock, never)

    assert await admitted(admission, served(clock))


async def test_the_limit_is_reached_and_never_exceeded(clock: ManualClock) -> None:
    admission = Admission(CONFIG, Fixed(10), clock)

    async with holding(admission, *(served(clock) for _ in range(10))):
        with pytest.raises(LoadShedError) as caught:
            await admission(served(clock)).__aenter__()

    assert caught.value.code is Code.RESOURCE_EXHAUSTED
    assert caught.value.cause == "limit"
    assert caught.value.retry_after_s == 0.1
    assert "10 calls are in flight" in caught.value.message
    assert admission.snapshot().peak_inflight == 10


@pytest.mark.parametrize(
    ("level", "room"),
    [
        (Criticality.SHEDDABLE, 10),
        (Criticality.SHEDDABLE_PLUS, 13),
        (Criticality.CRITICAL, 16),
        (Criticality.CRITICAL_PLUS, 20),
    ],
)
async def test_the_lowest_level_is_refused_first(
    clock: ManualClock, level: Criticality, room: int
) -> None:
    admission = Admission(CONFIG, Fixed(20), clock)

    async with holding(admission, *(served(clock) for _ in range(room - 1))):
        last = await admitted(admission, served(clock, level))
        async with holding(admission, served(clock)):
            beyond = await admitted(admission, served(clock, level))

    assert last
    assert not beyond


async def test_waves_of_refusals_never_raise_the_peak_above_the_limit(
    clock: ManualClock,
) -> None:
    """grpc#41531: after a counter went below zero, rejections disabled the limit."""
    admission = Admission(CONFIG, Fixed(2), clock)

    for _ in range(3):
        async with holding(admission, served(clock), served(clock)):
            wave = [await admitted(admission, served(clock)) for _ in range(50)]
            assert not any(wave)
        clock.advance(1.0)

    assert await admitted(admission, served(clock))
    assert admission.snapshot().peak_inflight == 2
    assert admission.snapshot().inflight == 0
    assert admission.snapshot().refused == {"limit/CRITICAL_PLUS": 150}


async def test_an_observing_limit_refuses_nobody_and_counts(clock: ManualClock) -> None:
    admission = Admission(replace(CONFIG, limit=Mode.OBSERVE), Fixed(2), clock)

    async with holding(admission, *(served(clock) for _ in range(5))):
        seen = admission.snapshot()

    assert seen.peak_inflight == 5
    assert seen.would_refuse == {"limit/CRITICAL_PLUS": 3}


async def test_a_limit_that_is_off_counts_nobody(clock: ManualClock) -> None:
    admission = Admission(replace(CONFIG, limit=Mode.OFF), Fixed(2), clock)

    async with holding(admission, *(served(clock) for _ in range(5))):
        seen = admission.snapshot()

    assert (seen.refused, seen.would_refuse) == ({}, {})


async def test_a_hot_tenant_is_refused_while_the_others_find_room(clock: ManualClock) -> None:
    admission = Admission(CONFIG, Fixed(20), clock)

    async with holding(admission, *(served(clock, tenant="cold") for _ in range(2))):
        async with holding(admission, *(served(clock, tenant="hot") for _ in range(13))):
            with pytest.raises(LoadShedError) as caught:
                await admission(served(clock, tenant="hot")).__aenter__()
            cold = await admitted(admission, served(clock, tenant="cold"))

    assert caught.value.cause == "fair_share"
    assert "tenant 'hot'" in caught.value.message
    assert cold


async def test_a_tenant_that_is_alone_may_fill_the_limit(clock: ManualClock) -> None:
    admission = Admission(CONFIG, Fixed(20), clock)

    async with holding(admission, *(served(clock) for _ in range(20))):
        assert admission.snapshot().inflight == 20


@pytest.mark.parametrize(("mode", "counted"), [(Mode.OBSERVE, 5), (Mode.OFF, 0)])
async def test_a_fair_share_that_does_not_enforce_refuses_nobody(
    clock: ManualClock, mode: Mode, counted: int
) -> None:
    admission = Admission(replace(CONFIG, fair_share=mode), Fixed(20), clock)

    async with holding(admission, *(served(clock, tenant="cold") for _ in range(2))):
        async with holding(admission, *(served(clock, tenant="hot") for _ in range(18))):
            seen = admission.snapshot()

    assert seen.would_refuse.get("fair_share/CRITICAL_PLUS", 0) == counted
    assert seen.refused == {}


async def test_the_less_a_call_matters_the_later_it_is_told_to_come_back(
    clock: ManualClock,
) -> None:
    admission = Admission(CONFIG, Fixed(1), clock)
    for _ in range(200):
        async with admission(served(clock)):
            clock.advance(0.5)

    waits = []
    async with holding(admission, served(clock)):
        for level in Criticality:
            with pytest.raises(LoadShedError) as caught:
                await admission(served(clock, level)).__aenter__()
            waits.append(caught.value.retry_after_s)

    assert waits == pytest.approx([2.0, 1.5, 1.0, 0.5], rel=0.01)


async def test_the_limit_learns_from_work_and_not_from_waiting(clock: ManualClock) -> None:
    limit = Recording(5)
    admission = Admission(CONFIG, limit, clock)
    call = served(clock)

    async with admission(call):
        clock.advance(1.0)
        call.wait_s = 0.75

    assert limit.told == [("ok", 0.25, 1)]


async def test_where_the_dependency_is_the_engine_waiting_counts(clock: ManualClock) -> None:
    limit = Recording(5)
    admission = Admission(replace(CONFIG, limit_counts_wait=True), limit, clock)
    call = served(clock)

    async with admission(call):
        clock.advance(1.0)
        call.wait_s = 0.75
    await ended_by(admission, served(clock), NO_ANSWER, clock, 1.0)

    assert limit.told == [("ok", 1.0, 1), ("overload", 0.0, 1)]


@pytest.mark.parametrize(
    ("error", "after_s", "told"),
    [
        (SelfTimeoutError("late", cause="deadline"), 9.0, ["overload"]),
        (asyncio.CancelledError(), 9.0, ["overload"]),
        (asyncio.CancelledError(), 8.0, []),
        (NO_ANSWER, 9.0, []),
        (InvalidArgumentError("question", "say something"), 0.1, []),
        (LoadShedError("a child has enough to do"), 0.1, []),
        (LookupError(), 0.1, []),
    ],
    ids=["own time", "cut at the deadline", "caller gone", "child", "caller", "refused", "bug"],
)
async def test_only_own_overload_and_success_teach_the_limit(
    clock: ManualClock, error: BaseException, after_s: float, told: list[str]
) -> None:
    limit = Recording(5)
    admission = Admission(CONFIG, limit, clock)

    await ended_by(admission, served(clock, remaining_s=10.0), error, clock, after_s)

    assert [kind for kind, _, _ in limit.told] == told
    assert admission.snapshot().inflight == 0


async def test_a_call_cut_while_it_waited_for_another_hop_teaches_nothing(
    clock: ManualClock,
) -> None:
    limit = Recording(5)
    admission = Admission(CONFIG, limit, clock)
    call = served(clock, remaining_s=10.0)
    call.cut_wait = "tool"

    await ended_by(admission, call, asyncio.CancelledError(), clock, 9.0)

    assert limit.told == []


async def test_new_rules_keep_the_calls_in_flight(clock: ManualClock) -> None:
    admission = Admission(CONFIG, Fixed(5), clock)

    async with holding(admission, *(served(clock) for _ in range(5))):
        admission.reconfigure(replace(CONFIG, fair_share=Mode.OFF))
        admission.reconfigure_limit(LimitConfig(max_inflight=3))
        refused = not await admitted(admission, served(clock))

    assert refused
    assert await admitted(admission, served(clock))
    assert admission.snapshot().inflight == 0
