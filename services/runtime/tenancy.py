"""Holds what knows and limits tenants in a process at the edge: one of each."""

from collections.abc import Callable

from services.runtime.clock import Clock
from services.runtime.metering import LocalMeter
from services.runtime.policies.identification import Identification
from services.runtime.policies.quota import Quota
from services.runtime.tenants import Tenants


class Tenancy:
    """Says who comes in, and how much of it. It is on whether or not the policy engine is."""

    def __init__(self, tenants: Tenants, clock: Clock, margin: Callable[[float], float]) -> None:
        """Take the limits, the clock, and what returns the margin of a deadline, seconds.

        Until somebody says who knows the callers, everybody is nobody in particular.
        """
        self.identification = Identification(tenants, clock, margin)
        self.quota = Quota(LocalMeter(clock))
        self.tenants = tenants

    def reconfigure(self, tenants: Tenants) -> None:
        """Follow other limits; what was counted stays, and calls under way keep what they have."""
        self.tenants = tenants
        self.identification.reconfigure(tenants)
