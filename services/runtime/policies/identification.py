"""Finds out whose call it is, and lets it have what that tenant may have.

Nobody behind this guard asks again: the tenant, the criticality and the deadline of a call are
those that it leaves. Put it inside the deadline policy, whose deadlines it cuts, and outside of all
that goes by tenant or criticality.
"""

from collections.abc import Awaitable, Callable

from services.runtime.call import Inbound
from services.runtime.clock import Clock
from services.runtime.credential import Authenticate, Credential
from services.runtime.guarding import Guard
from services.runtime.tenants import LEVELS, TenantLimits, Tenants

ANYBODY = ""
"""The tenant of callers whom nobody asks who they are."""


class Identification(Guard[Inbound]):
    """Names the tenant of every call, or refuses it."""

    def __init__(self, tenants: Tenants, clock: Clock, margin: Callable[[float], float]) -> None:
        """Take what each tenant may do.

        Args:
            tenants: the limits by tenant.
            clock: the clock.
            margin: returns how long before a deadline a hop answers by itself, from how long it
                was given, both in seconds.
        """
        self.authenticate: Authenticate | None = None
        """Knows the callers; None lets everybody in, as nobody in particular."""
        self._tenants = tenants
        self._clock = clock
        self._margin = margin

    def reconfigure(self, tenants: Tenants) -> None:
        """Change what tenants may do, for calls from now on."""
        self._tenants = tenants

    async def limits_of(self, credential: Credential, within_s: float) -> TenantLimits:
        """Return what a caller may do, without letting it in; raises as `authenticate` does."""
        if self.authenticate is None:
            return self._tenants.default
        tenant = await credential.tenant(self.authenticate, within_s, self._clock)
        return self._tenants.of(tenant)

    def before(self, inbound: Inbound) -> Awaitable[None] | None:
        """Set the call's tenant and its limits, and lower what exceeds them.

        Raises:
            UnauthenticatedError: nobody knows who calls.
            PermissionDeniedError: it is known, and is nobody's tenant.
        """
        # Not kept: from here on nobody needs it, and what is gone cannot be told by mistake.
        credential, inbound.credential = inbound.credential, None
        if self.authenticate is None:
            self._settle(inbound, ANYBODY, self._tenants.default)
            return None
        if credential is not None:
            known = credential.known(self._clock.now())
            if known is not None:
                self._settle(inbound, known, self._tenants.of(known))
                return None
        return self._identify(inbound, credential or Credential(), self.authenticate)

    async def _identify(
        self, inbound: Inbound, credential: Credential, authenticate: Authenticate
    ) -> None:
        within_s = max(0.0, inbound.self_deadline - self._clock.now())
        tenant = await credential.tenant(authenticate, within_s, self._clock)
        self._settle(inbound, tenant, self._tenants.of(tenant))

    def _settle(self, inbound: Inbound, tenant: str, limits: TenantLimits) -> None:
        inbound.limits = limits
        identity = inbound.identity
        level = min(identity.criticality, LEVELS[limits.max_criticality])
        if (tenant, level) != (identity.tenant, identity.criticality):
            inbound.identity = identity._replace(tenant=tenant, criticality=level)
        longest_s = limits.max_deadline_s
        if longest_s is not None and inbound.time_remaining_on_arrival_s > longest_s:
            inbound.deadline = inbound.arrived_at + longest_s
            inbound.margin_s = self._margin(longest_s)
