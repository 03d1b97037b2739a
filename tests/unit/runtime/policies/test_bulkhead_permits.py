"""Holds the bulkhead to losing no permit, whatever is cancelled, watched or changed."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest

from services.runtime.call import Group, Mode
from services.runtime.clock import Clock
from services.runtime.policies.bulkhead import (
    Bulkhead,
    GroupSize,
)
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


async def test_a_cancelled_waiter_leaves_the_queue(clock: Clock) -> None:
    bulkhead = Bulkhead(SMALL, clock)

    async with holding(bulkhead, *(attempt(clock) for _ in range(4))):
        task = asyncio.create_task(bulkhead(attempt(clock)).__aenter__())
        await settle()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        waiting = queued(bulkhead)

    assert waiting == 0
    assert inflight(bulkhead) == 0


async def test_a_waiter_cancelled_in_the_turn_it_is_served_gives_its_permit_on(
    clock: Clock,
) -> None:
    """Hyx loses a place for good when a waiter is cancelled between its two acquisitions."""
    bulkhead = Bulkhead(SMALL, clock)
    log: list[str] = []
    done = asyncio.Event()

    async with asyncio.TaskGroup() as group, AsyncExitStack() as holders:
        for _ in range(3):
            await holders.enter_async_context(bulkhead(attempt(clock)))
        last = bulkhead(attempt(clock))
        await last.__aenter__()
        unlucky = asyncio.create_task(bulkhead(attempt(clock)).__aenter__())
        await settle()
        group.create_task(hold_until(bulkhead, attempt(clock, tenant="next"), done, log))
        await settle()
        await last.__aexit__(None, None, None)
        handed = inflight(bulkhead)
        unlucky.cancel()
        with pytest.raises(asyncio.CancelledError):
            await unlucky
        await settle()
        entered = list(log)
        done.set()

    assert handed == 4
    assert entered == ["next"]
    assert (inflight(bulkhead), queued(bulkhead)) == (0, 0)


async def test_a_permit_that_a_tenant_hands_to_itself_is_counted_and_comes_back(
    clock: Clock,
) -> None:
    bulkhead = Bulkhead(SMALL, clock)

    async with AsyncExitStack() as holders:
        only = attempt(clock, key="tool/a", limit=1)
        await holders.enter_async_context(bulkhead(only))
        waiting = bulkhead(attempt(clock, key="tool/a", limit=1))
        task = asyncio.create_task(waiting.__aenter__())
        await settle()
        await holders.aclose()
        await task
        seen = bulkhead.snapshot().groups[Group.CORE]
        await waiting.__aexit__(None, None, None)

    assert (seen.inflight, seen.tenants) == (1, {"a": 1})
    assert bulkhead.snapshot().groups[Group.CORE].tenants == {}


async def test_a_waiter_cancelled_before_it_is_served_takes_nothing(clock: Clock) -> None:
    bulkhead = Bulkhead(SMALL, clock)

    async with AsyncExitStack() as holders:
        for _ in range(4):
            await holders.enter_async_context(bulkhead(attempt(clock)))
        task = asyncio.create_task(bulkhead(attempt(clock)).__aenter__())
        await settle()
        task.cancel()
        await holders.aclose()
        with pytest.raises(asyncio.CancelledError):
            await task

    assert (inflight(bulkhead), queued(bulkhead)) == (0, 0)


async def test_a_waiter_that_is_closed_unrun_leaves_the_queue(clock: Clock) -> None:
    bulkhead = Bulkhead(SMALL, clock)

    async with holding(bulkhead, *(attempt(clock) for _ in range(4))):
        entering = bulkhead(attempt(clock)).__aenter__()
        entering.send(None)
        entering.close()
        waiting = queued(bulkhead)

    assert waiting == 0


async def test_observing_refuses_nobody_and_counts_what_would_have_been(clock: Clock) -> None:
    bulkhead = Bulkhead(replace(SMALL, mode=Mode.OBSERVE), clock)
    began = clock.now()

    async with holding(bulkhead, *(attempt(clock) for _ in range(3))):
        async with bulkhead(attempt(clock)):
            lucky = bulkhead(attempt(clock))
            await lucky.__aenter__()
            unlucky = bulkhead(attempt(clock, given_s=0.1))
            await unlucky.__aenter__()
            entered_after_s = clock.now() - began
            await clock.sleep(0.1)
        await clock.sleep(1.0)
    await lucky.__aexit__(None, None, None)
    await unlucky.__aexit__(None, None, None)

    seen = bulkhead.snapshot().groups[Group.CORE]
    assert entered_after_s == 0.0
    assert (seen.waited_count, seen.refused["group"]) == (1, 1)
    assert (seen.inflight, seen.queued, seen.peak_inflight) == (0, 0, 4)


async def test_observing_keeps_the_queue_bounded(clock: Clock) -> None:
    bulkhead = Bulkhead(replace(SMALL, mode=Mode.OBSERVE), clock)

    async with holding(bulkhead, *(attempt(clock, group=Group.AUXILIARY) for _ in range(9))):
        seen = bulkhead.snapshot().groups[Group.AUXILIARY]

    assert (seen.inflight, seen.queued, seen.refused["queue"]) == (2, 4, 3)
    assert queued(bulkhead, Group.AUXILIARY) == 0


async def test_a_bulkhead_that_is_off_counts_nothing(clock: Clock) -> None:
    bulkhead = Bulkhead(replace(SMALL, mode=Mode.OFF), clock)

    async with holding(bulkhead, *(attempt(clock) for _ in range(9))):
        took = inflight(bulkhead)

    assert took == 0


async def test_new_sizes_serve_who_waits_and_take_from_nobody(clock: Clock) -> None:
    bulkhead = Bulkhead(SMALL, clock)

    async with holding(bulkhead, *(attempt(clock) for _ in range(4))):
        task = asyncio.create_task(bulkhead(attempt(clock)).__aenter__())
        await settle()
        bulkhead.reconfigure(replace(SMALL, core=GroupSize(permits=5, max_queued=8)))
        await task
        bulkhead.reconfigure(replace(SMALL, core=GroupSize(permits=1, max_queued=8)))
        held = inflight(bulkhead)
        cause = await refused(bulkhead, attempt(clock))

    assert held == 5
    assert cause == "group_full"
