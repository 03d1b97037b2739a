"""Defines what the permits of a group are given out by, and to whom."""

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

UNLIMITED = sys.maxsize


def places_for(load: float, each: float) -> int:
    """Return how many places a load takes when each carries so much: `ceil(load / each)`.

    1 at least.

    Args:
        load: what is to be carried, such as the calls in flight on average (Little's law).
        each: what one place carries, above 0; for a permit the part of the time in which it may be
            in use.
    """
    # The rounding keeps 8 / 0.8 at ten places: in floats it may be a little more.
    return max(1, math.ceil(round(load / each, 9)))


@dataclass(frozen=True, slots=True, kw_only=True)
class PermitRules:
    """Sets the sizes of one group."""

    permits: int
    """Calls under way at once."""
    max_queued: int
    """Calls waiting at once."""
    callee_queue_ratio: float
    """The part of the queue that the calls to one callee may take."""
    tenant_ratio: float
    """The part of permits and queue that one tenant may take while others are about."""
    lone_tenant_ratio: float
    """The part that a named tenant may take while it is alone."""
    lone_after_s: float
    """How long nobody else must have called for a tenant to count as alone."""

    least_tenant_ratio: float = field(init=False)
    """The part that a tenant may take whoever else is about."""

    def __post_init__(self) -> None:
        """Compute what follows from the others."""
        least = min(self.tenant_ratio, self.lone_tenant_ratio)
        object.__setattr__(self, "least_tenant_ratio", least)


@dataclass(frozen=True, slots=True, kw_only=True)
class PermitsSnapshot:
    """Describes one group; the counts are since the start."""

    group: str
    permits: int
    inflight: int
    peak_inflight: int
    """The most permits that were in use at once."""
    max_queued: int
    queued: int
    admitted_count: int
    waited_count: int
    """Calls that waited before they were admitted."""
    wait_total_s: float
    """What these waited, all together."""
    refused: Mapping[str, int]
    """Refusals by what was full: `group`, `callee`, `tenant`, `queue`."""
    average_hold_s: float
    """How long a permit is held."""
    callees: Mapping[str, int]
    """Permits in use, by callee."""
    tenants: Mapping[str, int]
    """Permits in use, by tenant."""


class Place:
    """Is one call's place: outside, in the queue, or inside with its permits."""

    __slots__ = ("callee", "held", "limit", "number", "since", "tenant", "waiting")

    def __init__(self, callee: str, limit: int | None, tenant: str) -> None:
        """Take who is called, how often at once it may be, and for whom."""
        self.callee = callee
        self.limit = UNLIMITED if limit is None else limit
        self.tenant = tenant
        self.number = 0
        """Its place in the order of arrival, among those that wait."""
        self.since = 0.0
        """When it came; from the moment it has its permits, when it got them."""
        self.held = False
        self.waiting = False

    def wake(self) -> None:
        """Learn that the permits were handed over."""
