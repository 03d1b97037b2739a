"""Holds the bulkhead to its fairness: between callees, between tenants, in the queue."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest

from services.runtime.call import Call, Group
from services.runtime.clock import Clock, ManualClock
from services.runtime.errors import BulkheadFullError
from services.runtime.policies.bulkhead import (
    Bulkhead,
    GroupSize,
)
from tests.unit.runtime.policies.bulkheads import (
    SHARED,
    SMALL,
    attempt,
    hold_until,
    holding,
    inflight,
    queued,
    refused,
    settle,
)


async def test_groups_do_not_share_permits(clock: Clock) -> None:
    bulkhead = Bulkhead(SMALL, clock)

    async with holding(bulkhead, *(attempt(clock) for _ in range(4))):
        async with bulkhead(attempt(clock, group=Group.DATA)):
            took = inflight(bulkhead, Group.DATA)

    assert took == 1


async def test_a_slow_callee_fills_its_own_permits_only(clock: Clock) -> None:
    bulkhead = Bulkhead(SMALL, clock)
    slow = [attempt(clock, key="tool/slow", limit=2) for _ in range(2)]

    async with holding(bulkhead, *slow):
        cause = await refused(bulkhead, attempt(clock, key="tool/slow", limit=2))
        async with bulkhead(attempt(clock, key="tool/quick", limit=2)):
            both = inflight(bulkhead)

    assert cause == "callee_full"
    assert both == 3


async def test_the_limit_of_a_callee_holds_for_all_tenants_together(clock: Clock) -> None:
    bulkhead = Bulkhead(replace(SHARED, core=GroupSize(permits=64, max_queued=0)), clock)

    async with holding(bulkhead, *(attempt(clock, limit=4, tenant=name) for name in "abcd")):
        assert await refused(bulkhead, attempt(clock, limit=4, tenant="e")) == "queue_full"


async def test_nobody_waits_behind_a_callee_that_it_does_not_call(clock: Clock) -> None:
    bulkhead = Bulkhead(SMALL, clock)
    done = asyncio.Event()
    log: list[str] = []

    async with (
        holding(bulkhead, attempt(clock, key="tool/slow", limit=1)),
        AsyncExitStack() as others,
        asyncio.TaskGroup() as group,
    ):
        for _ in range(3):
            await others.enter_async_context(bulkhead(attempt(clock)))
        slow = attempt(clock, key="tool/slow", limit=1)
        stuck = group.create_task(refused(bulkhead, slow))
        await settle()
        quick = attempt(clock, key="tool/quick", limit=1)
        quick.note = " quick"
        group.create_task(hold_until(bulkhead, quick, done, log))
        await settle()
        await others.aclose()
        await settle()
        entered = list(log)
        done.set()

    assert entered == ["a quick"]
    assert stuck.result() == "callee_full"


async def test_a_slow_callee_takes_its_part_of_the_queue_only(clock: Clock) -> None:
    bulkhead = Bulkhead(replace(SMALL, callee_queue_ratio=0.5), clock)

    async with (
        holding(bulkhead, *(attempt(clock) for _ in range(4))),
        asyncio.TaskGroup() as waiters,
    ):
        for _ in range(4):
            waiters.create_task(refused(bulkhead, attempt(clock, key="tool/slow")))
        await settle()
        began = clock.now()
        cause = await refused(bulkhead, attempt(clock, key="tool/slow"))
        refused_after_s = clock.now() - began
        other = waiters.create_task(refused(bulkhead, attempt(clock, key="tool/quick")))
        await settle()
        waiting = queued(bulkhead)

    assert (cause, refused_after_s) == ("callee_full", 0.0)
    assert waiting == 5
    assert other.result() == "group_full"


async def test_a_hot_tenant_takes_its_share_and_no_more_while_others_are_about(
    clock: Clock,
) -> None:
    bulkhead = Bulkhead(SHARED, clock)

    async with holding(bulkhead, attempt(clock, tenant="cold")):
        async with holding(bulkhead, *(attempt(clock, tenant="hot") for _ in range(2))):
            cause = await refused(bulkhead, attempt(clock, tenant="hot"))
            async with bulkhead(attempt(clock, tenant="cold")):
                took = inflight(bulkhead)

    assert cause == "tenant_full"
    assert took == 4


async def test_a_lone_tenant_leaves_room_for_whoever_comes_next(clock: Clock) -> None:
    bulkhead = Bulkhead(SHARED, clock)

    async with holding(bulkhead, *(attempt(clock, tenant="hot") for _ in range(3))):
        cause = await refused(bulkhead, attempt(clock, tenant="hot"))
        async with bulkhead(attempt(clock, tenant="cold")):
            took = inflight(bulkhead)

    assert cause == "tenant_full"
    assert took == 4


async def test_a_tenant_is_alone_again_after_a_while(clock: Clock) -> None:
    bulkhead = Bulkhead(SHARED, clock)
    async with bulkhead(attempt(clock, tenant="cold")):
        pass

    async with holding(bulkhead, *(attempt(clock, tenant="hot") for _ in range(2))):
        soon = await refused(bulkhead, attempt(clock, tenant="hot"))
        await clock.sleep(60.0)
        async with bulkhead(attempt(clock, tenant="hot")):
            took = inflight(bulkhead)

    assert soon == "tenant_full"
    assert took == 3


async def test_without_names_there_are_no_tenants_and_one_may_take_all(clock: Clock) -> None:
    bulkhead = Bulkhead(SHARED, clock)

    async with holding(bulkhead, *(attempt(clock, tenant="") for _ in range(4))):
        took = inflight(bulkhead)

    assert took == 4


async def test_the_queue_is_first_come_first_served(clock: Clock) -> None:
    bulkhead = Bulkhead(SMALL, clock)
    done = asyncio.Event()
    log: list[str] = []

    async with asyncio.TaskGroup() as group:
        async with holding(bulkhead, *(attempt(clock) for _ in range(4))):
            for number in range(6):
                call = attempt(clock, key=f"tool/{number % 2}")
                call.note = str(number)
                group.create_task(hold_until(bulkhead, call, done, log))
            await settle()
        await settle()
        first = list(log)
        done.set()

    assert first == ["a0", "a1", "a2", "a3"]
    assert log[4:] == ["a4", "a5"]


async def test_the_queue_is_first_come_first_served_beyond_the_share_as_well(
    clock: Clock,
) -> None:
    bulkhead = Bulkhead(SMALL, clock)
    done = asyncio.Event()
    log: list[str] = []

    async with asyncio.TaskGroup() as group:
        # Of two tenants that share four permits this one has two, and gets a third.
        async with holding(bulkhead, attempt(clock, tenant="b"), attempt(clock), attempt(clock)):
            async with holding(bulkhead, attempt(clock)):
                for number in range(2):
                    call = attempt(clock, key=f"tool/{number}")
                    call.note = str(number)
                    group.create_task(hold_until(bulkhead, call, done, log))
                await settle()
            await settle()
            first = list(log)
        done.set()

    assert first == ["a0"]


async def test_who_waits_goes_first_when_time_alone_has_made_room(clock: Clock) -> None:
    bulkhead = Bulkhead(replace(SHARED, lone_after_s=0.1), clock)
    done = asyncio.Event()
    log: list[str] = []

    async with asyncio.TaskGroup() as group:
        async with holding(bulkhead, attempt(clock, tenant="b")):
            pass
        async with holding(bulkhead, attempt(clock), attempt(clock)):
            for number in range(2):
                call = attempt(clock)
                call.note = str(number)
                group.create_task(hold_until(bulkhead, call, done, log))
                # By now it has been alone for long enough to hold a third one.
                await clock.sleep(0.15)
            first = list(log)
        done.set()

    assert first == ["a0"]


async def test_tenants_take_turns_in_the_queue(clock: Clock) -> None:
    bulkhead = Bulkhead(SMALL, clock)
    log: list[str] = []
    done = asyncio.Event()
    done.set()

    async with asyncio.TaskGroup() as group:
        async with AsyncExitStack() as holders:
            for _ in range(4):
                await holders.enter_async_context(bulkhead(attempt(clock, tenant="x")))
            for tenant in "aaaaabbc":
                call = attempt(clock, tenant=tenant)
                group.create_task(hold_until(bulkhead, call, done, log))
            await settle()

    assert log == list("abcabaaa")


async def test_what_was_held_and_waited_for_leaves_no_tenant_behind(clock: Clock) -> None:
    bulkhead = Bulkhead(SHARED, clock)

    for number in range(100):
        async with bulkhead(attempt(clock, tenant=f"t{number}")):
            pass
    async with holding(bulkhead, *(attempt(clock, tenant="x") for _ in range(2))):
        async with holding(bulkhead, *(attempt(clock, tenant="y") for _ in range(2))):
            await refused(bulkhead, attempt(clock, tenant="z"))

    assert bulkhead.snapshot().groups[Group.CORE].tenants == {}


def test_a_refused_tenant_of_a_full_queue_is_forgotten(clock: Clock) -> None:
    config = replace(SMALL, core=GroupSize(permits=1, max_queued=0))

    async def run() -> dict[str, int]:
        bulkhead = Bulkhead(config, ManualClock())
        async with bulkhead(attempt(ManualClock())):
            await refused(bulkhead, attempt(ManualClock(), tenant="z"))
            return dict(bulkhead.snapshot().groups[Group.CORE].tenants)

    assert asyncio.run(run()) == {"a": 1}


@pytest.mark.parametrize("limit", [4, 16])
async def test_a_hot_tenant_takes_its_part_of_a_callee_while_others_are_about(
    clock: Clock, limit: int
) -> None:
    bulkhead = Bulkhead(replace(SHARED, core=GroupSize(permits=64, max_queued=8)), clock)
    half = limit // 2

    def called(tenant: str) -> Call:
        return attempt(clock, key="tool/one", limit=limit, tenant=tenant)

    async with holding(bulkhead, called("cold"), *(called("hot") for _ in range(half))):
        cause = await refused(bulkhead, called("hot"))
        async with bulkhead(attempt(clock, key="tool/other", limit=limit, tenant="hot")):
            took = inflight(bulkhead)
        async with holding(bulkhead, *(called("cold") for _ in range(half - 1))):
            all_of_it = inflight(bulkhead)

    assert cause == "tenant_full"
    assert (took, all_of_it) == (half + 2, limit)


async def test_who_has_its_share_leaves_room_for_those_that_do_not(clock: Clock) -> None:
    config = replace(SHARED, core=GroupSize(permits=8, max_queued=8), tenant_ratio=0.75)
    bulkhead = Bulkhead(config, clock)
    others = [attempt(clock, tenant=name) for name in "abc"]

    async with holding(bulkhead, *others, *(attempt(clock, tenant="hot") for _ in range(3))):
        cause = await refused(bulkhead, attempt(clock, tenant="hot"))
        async with bulkhead(attempt(clock, tenant="a")), bulkhead(attempt(clock, tenant="b")):
            took = inflight(bulkhead)

    assert cause == "tenant_full"
    assert took == 8


@pytest.mark.parametrize("limit", [None, 4], ids=["group", "callee"])
async def test_a_tenant_below_its_share_finds_a_place_in_a_full_queue_and_goes_first(
    clock: Clock, limit: int | None
) -> None:
    bulkhead = Bulkhead(replace(SMALL, core=GroupSize(permits=4, max_queued=2)), clock)
    done, log = asyncio.Event(), list[str]()

    def called(tenant: str) -> Call:
        return attempt(clock, tenant=tenant, limit=limit)

    async with asyncio.TaskGroup() as calls:
        async with holding(bulkhead, *(called("hot") for _ in range(4))) as flood:
            for tenant in ("hot", "hot", "cold", "cold"):
                calls.create_task(hold_until(bulkhead, called(tenant), done, log))
                await settle()
            waiting = queued(bulkhead)
            cause = await refused(bulkhead, called("hot"))
            await flood.aclose()
            await settle()
        done.set()

    assert waiting == 4
    assert cause == "queue_full"
    assert log[:2] == ["cold", "cold"]


async def test_a_tenant_waits_for_its_share_and_for_no_more(clock: Clock) -> None:
    bulkhead = Bulkhead(replace(SMALL, core=GroupSize(permits=4, max_queued=1)), clock)

    async with (
        holding(bulkhead, *(attempt(clock, tenant="hot") for _ in range(4))),
        asyncio.TaskGroup() as waiters,
    ):
        waits = [
            waiters.create_task(refused(bulkhead, attempt(clock, tenant="cold"))) for _ in range(3)
        ]

    assert [task.result() for task in waits] == ["group_full", "group_full", "queue_full"]


async def test_one_pool_for_all_is_filled_by_one_slow_callee(clock: Clock) -> None:
    pool = Bulkhead(replace(SMALL, shared=True), clock)
    async with AsyncExitStack() as held:
        for _ in range(4):
            # Its own limit does not count: that is what a pool that all share comes to.
            slow = attempt(clock, key="tool/slow", group=Group.AUXILIARY, limit=1)
            await held.enter_async_context(pool(slow))

        assert list(pool.snapshot().groups) == [Group.CORE]
        assert inflight(pool) == 4
        with pytest.raises(BulkheadFullError):
            await held.enter_async_context(pool(attempt(clock, key="model")))

    assert inflight(pool) == 0


async def test_one_pool_for_all_follows_the_size_of_core(clock: Clock) -> None:
    config = replace(SMALL, shared=True)
    pool = Bulkhead(config, clock)

    pool.reconfigure(replace(config, core=GroupSize(permits=9, max_queued=1)))

    assert pool.snapshot().groups[Group.CORE].permits == 9
    assert config.size(Group.EXTERNAL) == config.core
