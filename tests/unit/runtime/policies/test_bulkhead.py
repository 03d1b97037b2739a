"""Holds the bulkhead to its permits and to the time that waiting for them may take."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest

from services.runtime.call import Group
from services.runtime.clock import Clock, ManualClock
from services.runtime.errors import BulkheadFullError, Code
from services.runtime.policies.bulkhead import (
    Bulkhead,
    BulkheadConfig,
    GroupSize,
    capacity,
)
from services.runtime.policies.deadline import ClientDeadline
from tests.requirements import requirement
from tests.unit.runtime.policies.bulkheads import (
    SMALL,
    attempt,
    holding,
    inflight,
    queued,
    refused,
    settle,
)
from tests.unit.runtime.policies.samples import limits


@pytest.mark.parametrize(
    ("qps", "latency_s", "permits"),
    [(10, 0.2, 3), (40, 0.2, 10), (8, 1.0, 10), (0.1, 0.1, 1), (0, 5, 1), (64, 0.8, 64)],
)
def test_a_size_follows_from_declared_capacity(qps: float, latency_s: float, permits: int) -> None:
    assert capacity(qps, latency_s) == permits


@pytest.mark.parametrize(("qps", "latency_s"), [(-1, 1), (1, -1)])
def test_a_negative_capacity_is_refused(qps: float, latency_s: float) -> None:
    with pytest.raises(ValueError, match="negative"):
        capacity(qps, latency_s)


def test_the_groups_have_the_sizes_of_the_post_mortem() -> None:
    groups = Bulkhead(BulkheadConfig(), ManualClock()).snapshot().groups

    sizes = [(groups[group].permits, groups[group].max_queued) for group in Group]
    assert sizes == [(64, 256), (32, 128), (8, 64), (8, 32), (32, 64)]


@pytest.mark.parametrize(
    "wrong",
    [
        {"tenant_ratio": 0.0},
        {"lone_tenant_ratio": 1.1},
        {"callee_queue_ratio": -0.5},
        {"max_wait_s": -0.1},
        {"lone_after_s": -1.0},
    ],
)
def test_a_size_that_cannot_work_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} = .*: write"):
        BulkheadConfig(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"permits": 0}, "of 1 or more"),
        ({"max_queued": -1}, "of 0 or more"),
        ({"expected_qps": -1.0}, "of 0 or more"),
        ({"expected_qps": 5.0}, "only together"),
        ({"expected_latency_s": 5.0}, "only together"),
    ],
)
def test_a_group_that_cannot_work_is_refused(wrong: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GroupSize(**({"permits": 1, "max_queued": 1} | wrong))  # type: ignore[arg-type]


def test_a_declared_capacity_makes_the_size_of_a_group() -> None:
    declared = GroupSize(permits=64, max_queued=1, expected_qps=40.0, expected_latency_s=0.2)

    assert declared.allowed == 10
    assert BulkheadConfig(core=declared).rules(Group.CORE).permits == 10
    assert GroupSize(permits=64, max_queued=1).allowed == 64


async def test_permits_are_held_until_the_block_is_left(clock: Clock) -> None:
    bulkhead = Bulkhead(SMALL, clock)

    async with bulkhead(attempt(clock)):
        during = inflight(bulkhead)
    with pytest.raises(LookupError):
        async with bulkhead(attempt(clock)):
            raise LookupError

    assert during == 1
    assert inflight(bulkhead) == 0


async def test_a_full_group_makes_the_next_wait_and_then_lets_it_in(clock: Clock) -> None:
    bulkhead = Bulkhead(SMALL, clock)
    late = attempt(clock)

    async with holding(bulkhead, *(attempt(clock) for _ in range(3))), AsyncExitStack() as last:
        await last.enter_async_context(bulkhead(attempt(clock)))
        task = asyncio.create_task(bulkhead(late).__aenter__())
        await clock.sleep(0.2)
        waiting = queued(bulkhead)
        await last.aclose()
        await task

    assert waiting == 1
    assert late.attempt_timeout_s == pytest.approx(4.8)
    assert late.inbound.wait_s == pytest.approx(0.2)
    assert bulkhead.snapshot().groups[Group.CORE].waited_count == 1
    assert bulkhead.snapshot().groups[Group.CORE].wait_total_s == pytest.approx(0.2)


@requirement("failover:at-once")
async def test_who_has_something_else_to_ask_does_not_wait(clock: Clock) -> None:
    bulkhead = Bulkhead(SMALL, clock)
    hasty = attempt(clock)
    hasty.callee = replace(hasty.callee, has_stand_in=True)

    async with holding(bulkhead, *(attempt(clock) for _ in range(4))):
        began = clock.now()
        with pytest.raises(BulkheadFullError):
            await bulkhead(hasty).__aenter__()

    assert clock.now() == began
    assert queued(bulkhead) == 0


async def test_nobody_waits_longer_than_the_longest_wait(clock: Clock) -> None:
    bulkhead = Bulkhead(SMALL, clock)

    async with holding(bulkhead, *(attempt(clock) for _ in range(4))):
        began = clock.now()
        with pytest.raises(BulkheadFullError) as caught:
            await bulkhead(attempt(clock)).__aenter__()

    assert clock.now() - began == pytest.approx(0.3)
    assert caught.value.code is Code.RESOURCE_EXHAUSTED
    assert caught.value.cause == "group_full"
    assert caught.value.retry_after_s is not None
    assert "after 0.30 s" in caught.value.message
    assert "core group is full (4 of 4 in use" in caught.value.message
    assert bulkhead.snapshot().groups[Group.CORE].refused["group"] == 1
    assert (inflight(bulkhead), queued(bulkhead)) == (0, 0)


@pytest.mark.parametrize(
    ("given_s", "remaining_s", "min_useful_s", "waits_s"),
    [
        (0.25, 30.0, 0.05, 0.2),
        (5.0, 0.3, 0.05, 0.2),
        (0.05, 30.0, 0.05, 0.0),
        (5.0, 0.05, 0.0, 0.0),
        (5.0, 30.0, 0.05, 0.3),
    ],
    ids=["the attempt", "the margin", "nothing useful left", "no time left", "the longest wait"],
)
async def test_a_wait_leaves_what_a_useful_attempt_needs(
    clock: Clock, given_s: float, remaining_s: float, min_useful_s: float, waits_s: float
) -> None:
    bulkhead = Bulkhead(SMALL, clock)
    call = attempt(clock, given_s=given_s, remaining_s=remaining_s)
    call.limits = limits(min_useful_s=min_useful_s)

    async with holding(bulkhead, *(attempt(clock) for _ in range(4))):
        began = clock.now()
        with pytest.raises(BulkheadFullError):
            await bulkhead(call).__aenter__()

    assert clock.now() - began == pytest.approx(waits_s)


async def test_a_stream_waits_no_longer_than_its_first_event_allows(clock: Clock) -> None:
    bulkhead = Bulkhead(SMALL, clock)
    call = attempt(clock)
    call.streaming = True
    call.limits = limits(0.2, min_useful_s=0.05)
    async with ClientDeadline(clock)(call):
        given_s = call.attempt_timeout_s

    async with holding(bulkhead, *(attempt(clock) for _ in range(4))):
        began = clock.now()
        with pytest.raises(BulkheadFullError):
            await bulkhead(call).__aenter__()

    assert given_s > 20
    assert clock.now() - began == pytest.approx(0.15)


async def test_wait_and_answer_together_stay_within_the_share(clock: Clock) -> None:
    bulkhead = Bulkhead(SMALL, clock)
    call = attempt(clock, remaining_s=2.0)

    async with AsyncExitStack() as stack:
        for _ in range(4):
            await stack.enter_async_context(bulkhead(attempt(clock)))
        async with ClientDeadline(clock)(call):
            task = asyncio.create_task(bulkhead(call).__aenter__())
            await clock.sleep(0.25)
            await stack.aclose()
            await task

    assert 0.25 + call.attempt_timeout_s <= 0.6 * 2.0
    assert call.attempt_timeout_s <= 0.6 * (2.0 - 0.25)


async def test_who_is_woken_too_late_to_be_useful_gives_its_permit_back(clock: Clock) -> None:
    bulkhead = Bulkhead(SMALL, clock)
    call = attempt(clock)

    async with AsyncExitStack() as stack:
        for _ in range(4):
            await stack.enter_async_context(bulkhead(attempt(clock)))
        task = asyncio.create_task(bulkhead(call).__aenter__())
        await settle()
        call.attempt_timeout_s = -1.0
        await stack.aclose()
        with pytest.raises(BulkheadFullError):
            await task

    assert (inflight(bulkhead), queued(bulkhead)) == (0, 0)


async def test_a_full_queue_refuses_at_once(clock: Clock) -> None:
    bulkhead = Bulkhead(SMALL, clock)

    async with (
        holding(bulkhead, *(attempt(clock, group=Group.AUXILIARY) for _ in range(2))),
        asyncio.TaskGroup() as waiters,
    ):
        tasks = [
            waiters.create_task(refused(bulkhead, attempt(clock, group=Group.AUXILIARY)))
            for _ in range(4)
        ]
        await settle()
        began = clock.now()
        with pytest.raises(BulkheadFullError, match="4 of 4 waiting") as caught:
            await bulkhead(attempt(clock, group=Group.AUXILIARY)).__aenter__()
        refused_at = clock.now()

    assert refused_at == began
    assert caught.value.cause == "queue_full"
    assert [task.result() for task in tasks] == ["group_full"] * 4


async def test_a_refusal_says_when_to_come_back(clock: Clock) -> None:
    bulkhead = Bulkhead(SMALL, clock)
    for _ in range(200):
        async with holding(bulkhead, *(attempt(clock) for _ in range(4))):
            await clock.sleep(2.0)

    async with holding(bulkhead, *(attempt(clock) for _ in range(4))):
        with pytest.raises(BulkheadFullError) as caught:
            await bulkhead(attempt(clock)).__aenter__()

    assert caught.value.retry_after_s == pytest.approx(2.0 / 4, rel=0.01)
