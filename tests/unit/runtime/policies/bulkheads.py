"""Makes bulkheads and attempts for the tests of the policy."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

import pytest

from services.runtime.call import Call, Callee, Group, Identity
from services.runtime.clock import Clock
from services.runtime.errors import BulkheadFullError
from services.runtime.policies.bulkhead import (
    Bulkhead,
    BulkheadConfig,
    GroupSize,
)
from tests.unit.runtime.policies.samples import inbound, limits

SMALL = BulkheadConfig(
    core=GroupSize(permits=4, max_queued=8),
    auxiliary=GroupSize(permits=2, max_queued=4),
    tenant_ratio=1.0,
    lone_tenant_ratio=1.0,
    callee_queue_ratio=1.0,
)
"""Has no shares, so that a test of something else need not mind them."""
SHARED = replace(SMALL, tenant_ratio=0.5, lone_tenant_ratio=0.75)


def attempt(
    clock: Clock,
    *,
    key: str = "model",
    group: Group = Group.CORE,
    limit: int | None = None,
    tenant: str = "a",
    given_s: float = 5.0,
    remaining_s: float = 30.0,
) -> Call:
    """Return a call whose present attempt was given some time just now."""
    served = inbound(remaining_s, arrived_at=clock.now())
    served.identity = Identity(tenant=tenant)
    callee = Callee(key=key, group=group, max_concurrency=limit)
    call = Call("model", "Generate", False, served, limits(), callee=callee)
    call.attempt_timeout_s = given_s
    return call


def inflight(bulkhead: Bulkhead, group: Group = Group.CORE) -> int:
    """Return the permits in use."""
    return bulkhead.snapshot().groups[group].inflight


def queued(bulkhead: Bulkhead, group: Group = Group.CORE) -> int:
    """Return who waits."""
    return bulkhead.snapshot().groups[group].queued


@asynccontextmanager
async def holding(bulkhead: Bulkhead, *calls: Call) -> AsyncIterator[AsyncExitStack]:
    """Hold the permits of some calls while the block runs."""
    async with AsyncExitStack() as stack:
        for call in calls:
            await stack.enter_async_context(bulkhead(call))
        yield stack


async def hold_until(bulkhead: Bulkhead, call: Call, done: asyncio.Event, log: list[str]) -> None:
    """Note a call when it has its permits, and keep them until an event."""
    async with bulkhead(call):
        log.append(call.inbound.identity.tenant + call.note)
        await done.wait()


async def settle() -> None:
    """Let every task do what it can do now."""
    for _ in range(5):
        await asyncio.sleep(0)


async def refused(bulkhead: Bulkhead, call: Call) -> str:
    with pytest.raises(BulkheadFullError) as caught:
        await bulkhead(call).__aenter__()
    return caught.value.cause
