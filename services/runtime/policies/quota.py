"""Keeps each tenant to its share: so many calls and tokens a minute, so many runs at a time.

What a run costs is known only when it is over. So tokens are a debt: they are noted when the run
ends, and while more have been used within the last minute than are allowed, the tenant's next call
is refused.

Put it inside the identification, which says whose call it is, and outside of what sheds load: what
is refused here says nothing about the load of all.
"""

from collections.abc import Awaitable
from typing import Protocol

from services.runtime.call import Inbound
from services.runtime.errors import QuotaExceededError
from services.runtime.guarding import Guard
from services.runtime.tenants import SECTION, TenantLimits

FULL_RETRY_AFTER_S = 1.0
"""When to come back if as many runs are under way as may be: nobody knows when one ends."""


class Meter(Protocol):
    """Counts what tenants use within a minute that slides."""

    async def take_request(self, tenant: str, limit: int) -> float:
        """Count one call, unless that would exceed a limit.

        Returns:
            0 when it was counted, else how long until there will be room for one, seconds.
        """
        ...

    async def token_wait_s(self, tenant: str, limit: int) -> float:
        """Return how long until fewer tokens than the limit count, seconds; 0 when it is so now."""
        ...

    def note_tokens(self, tenant: str, count: int) -> None:
        """Count tokens that were used."""
        ...


class Quota(Guard[Inbound]):
    """Refuses what exceeds the limits of a tenant."""

    def __init__(self, meter: Meter) -> None:
        """Take what counts."""
        self.meter = meter
        """Counts; whoever shares with other processes puts another in its place."""
        self._inflight: dict[str, int] = {}

    def inflight(self) -> dict[str, int]:
        """Return how many calls are under way, by tenant; those without any are left out."""
        return dict(self._inflight)

    def before(self, inbound: Inbound) -> Awaitable[None] | None:
        """Count the call.

        Raises:
            QuotaExceededError: the tenant has used up a limit; names it, and when to come back.
        """
        limits, tenant = inbound.limits, inbound.identity.tenant
        if limits is None:
            return None
        under_way, most = self._inflight.get(tenant, 0), limits.max_concurrent_runs
        if most is not None and under_way >= most:
            raise _exceeded(
                tenant,
                "max_concurrent_runs",
                f"has {under_way} runs under way, and may have {most}; wait until one has ended",
                FULL_RETRY_AFTER_S,
            )
        # No await between the check and this.
        self._inflight[tenant] = under_way + 1
        if limits.requests_per_minute is None and limits.tokens_per_minute is None:
            return None
        return self._count(inbound, limits)

    def after(self, inbound: Inbound, error: BaseException | None) -> None:
        """Note what the call has cost."""
        if inbound.limits is None:
            return
        tenant = inbound.identity.tenant
        left = self._inflight[tenant] - 1
        if left:
            self._inflight[tenant] = left
        else:
            del self._inflight[tenant]
        if inbound.token_count:
            self.meter.note_tokens(tenant, inbound.token_count)

    async def _count(self, inbound: Inbound, limits: TenantLimits) -> None:
        tenant = inbound.identity.tenant
        try:
            if limits.tokens_per_minute is not None:
                # First, because whoever is in debt is not to pay for asking.
                await self._check_tokens(tenant, limits.tokens_per_minute)
            if limits.requests_per_minute is not None:
                await self._take_request(tenant, limits.requests_per_minute)
        except BaseException as error:
            self.after(inbound, error)
            raise

    async def _check_tokens(self, tenant: str, limit: int) -> None:
        wait_s = await self.meter.token_wait_s(tenant, limit)
        if wait_s > 0:
            raise _exceeded(
                tenant,
                "tokens_per_minute",
                f"has used its {limit:,} tokens of this minute; come back in {wait_s:.1f} s",
                wait_s,
            )

    async def _take_request(self, tenant: str, limit: int) -> None:
        wait_s = await self.meter.take_request(tenant, limit)
        if wait_s > 0:
            raise _exceeded(
                tenant,
                "requests_per_minute",
                f"has made its {limit:,} requests of this minute; come back in {wait_s:.1f} s",
                wait_s,
            )


def _exceeded(tenant: str, limit: str, problem: str, retry_after_s: float) -> QuotaExceededError:
    who = f"tenant {tenant}" if tenant else "everybody without a key, together,"
    return QuotaExceededError(
        f"{who} {problem} ({limit} in [{SECTION}.{tenant or 'default'}])",
        cause=limit,
        details={"tenant": tenant, "limit": limit},
        retry_after_s=retry_after_s,
    )
