"""Holds tenants to their share, and refusals to saying when to come back."""

import asyncio

import pytest

from services.runtime.call import Inbound
from services.runtime.clock import ManualClock
from services.runtime.errors import QuotaExceededError
from services.runtime.guarding import Guards
from services.runtime.metering import LocalMeter
from services.runtime.policies.quota import Quota
from services.runtime.tenants import TenantLimits
from tests.requirements import requirement
from tests.unit.runtime.policies.samples import inbound


class Gate:
    """Is the guard, and what goes through it."""

    def __init__(self, **limits: int) -> None:
        self.clock = ManualClock(6_000.0)
        self.quota = Quota(LocalMeter(self.clock))
        self._guards = Guards([self.quota])
        self._limits = TenantLimits(**limits)  # type: ignore[arg-type]

    async def enter(self, tenant: str = "acme") -> Inbound:
        """Return a call that was let in."""
        call = inbound(30.0, hop="gateway")
        call.identity = call.identity._replace(tenant=tenant)
        call.limits = self._limits
        waiting = self._guards.enter(call)
        if waiting is not None:
            await waiting
        return call

    def leave(self, call: Inbound, token_count: int = 0) -> None:
        """End a call."""
        call.token_count = token_count
        self._guards.leave(call)

    async def refused(self, tenant: str = "acme") -> QuotaExceededError:
        """Return the refusal of a call."""
        with pytest.raises(QuotaExceededError) as caught:
            await self.enter(tenant)
        return caught.value


@requirement("tenants:limits-named")
async def test_the_requests_of_a_minute_are_counted_by_tenant() -> None:
    gate = Gate(requests_per_minute=2)
    for _ in range(2):
        gate.leave(await gate.enter())

    error = await gate.refused()

    assert error.cause == error.details["limit"] == "requests_per_minute"
    assert "requests_per_minute in [tenants.acme]" in error.message
    gate.leave(await gate.enter("other"))


@requirement("tenants:limits-named")
async def test_whoever_comes_back_when_told_is_let_in_and_not_before() -> None:
    gate = Gate(requests_per_minute=2)
    for _ in range(2):
        gate.leave(await gate.enter())
    wait_s = (await gate.refused()).retry_after_s
    assert wait_s is not None

    gate.clock.advance(wait_s - 0.1)
    left_s = (await gate.refused()).retry_after_s
    gate.clock.advance(0.1)

    assert left_s == pytest.approx(0.1)
    await gate.enter()


@requirement("tenants:tokens-are-a-debt")
async def test_a_tenant_in_debt_is_refused_until_the_minute_has_moved_on() -> None:
    gate = Gate(tokens_per_minute=100)
    gate.leave(await gate.enter(), token_count=400)

    error = await gate.refused()
    assert (error.cause, error.details["tenant"]) == ("tokens_per_minute", "acme")
    gate.leave(await gate.enter("other"))
    assert error.retry_after_s is not None
    # Four times the limit: three quarters of the minute after this one have to pass.
    assert error.retry_after_s == pytest.approx(60 + 45, abs=0.01)
    gate.clock.advance(error.retry_after_s - 0.1)
    assert (await gate.refused()).cause == "tokens_per_minute"
    gate.clock.advance(0.1)
    await gate.enter()


@requirement("tenants:tokens-are-a-debt")
async def test_what_is_in_debt_does_not_pay_for_asking() -> None:
    gate = Gate(tokens_per_minute=100, requests_per_minute=2)
    gate.leave(await gate.enter(), token_count=100)

    for _ in range(5):
        assert (await gate.refused()).cause == "tokens_per_minute"
    gate.clock.advance(60.1)
    gate.leave(await gate.enter())


@requirement("tenants:limits-named")
async def test_a_run_holds_its_place_until_it_ends_however_it_ends() -> None:
    gate = Gate(max_concurrent_runs=2)
    first, second = await gate.enter(), await gate.enter()

    error = await gate.refused()
    assert (error.cause, error.retry_after_s) == ("max_concurrent_runs", 1.0)
    gate.leave(first)
    third = await gate.enter()
    with pytest.raises(QuotaExceededError):
        await gate.enter()
    for call in (second, third):
        gate._guards.leave(call, asyncio.CancelledError())

    assert gate.quota.inflight() == {}


class Slow:
    """Waits for ever."""

    async def take_request(self, tenant: str, limit: int) -> float:
        """Wait."""
        await asyncio.get_running_loop().create_future()
        return 0.0

    async def token_wait_s(self, tenant: str, limit: int) -> float:
        """Find nothing."""
        return 0.0

    def note_tokens(self, tenant: str, count: int) -> None:
        """Forget it."""


async def test_a_call_that_is_cancelled_while_it_is_counted_gives_its_place_back() -> None:
    gate = Gate(requests_per_minute=1, max_concurrent_runs=1)
    gate.quota.meter = Slow()
    entering = asyncio.ensure_future(gate.enter())
    await asyncio.sleep(0)
    assert gate.quota.inflight() == {"acme": 1}

    entering.cancel()
    await asyncio.wait({entering})

    assert gate.quota.inflight() == {}


@requirement("tenants:limits-named")
async def test_a_refusal_gives_its_place_back_and_costs_nothing() -> None:
    gate = Gate(requests_per_minute=1, max_concurrent_runs=3)
    call = await gate.enter()

    for _ in range(5):
        assert (await gate.refused()).cause == "requests_per_minute"

    assert gate.quota.inflight() == {"acme": 1}
    gate.leave(call)


async def test_without_limits_nothing_is_waited_for() -> None:
    gate = Gate()
    call = inbound(30.0, hop="gateway")
    call.limits = TenantLimits()

    assert gate.quota.before(call) is None
    assert gate.quota.before(inbound(30.0)) is None
