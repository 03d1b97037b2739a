"""Measures which tenants have lately taken more than their fair share of a process."""

import math
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, PositiveFloat

from services.runtime.ranges import check_ranges

_MAX_KEPT_RATIO = 0.5
_BURST_DEVIATIONS = 4
"""How large a burst may be: of calls that come at random, one in 30,000 finds more in flight than
so many square roots above what is usual."""
_STEP_RATIO = 0.05
"""How much more is kept after a tenant within its share was refused."""
_RELAX_S = 20.0
"""How fast what is kept returns to where it began: two thirds of the way in this time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareRules:
    """Says what is more than fair."""

    memory_s: PositiveFloat = 1.0
    """How long use is remembered, seconds: two thirds of it are forgotten after this long, so that
    a burst is forgiven soon."""
    tolerance: Annotated[float, Field(ge=1)] = 1.1
    """How many times its share a tenant may have used lately: equals differ a little."""
    kept_ratio: Annotated[float, Field(ge=0, le=_MAX_KEPT_RATIO)] = 0.25
    """The part of the room that is kept for tenants within their share, to begin with."""
    burst_ratio: Annotated[float, Field(ge=0, le=1)] = 0.15
    """The part of the others' places that a tenant may have in flight beyond its share: a burst
    may pass, and a flood is caught before its recent use has grown."""

    def __post_init__(self) -> None:
        """Refuse what cannot work.

        Raises:
            SettingError: a number is outside of its range.
        """
        check_ranges(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareSnapshot:
    """Describes how the tenants of one level share its room."""

    inflight: int
    """Calls of the level in flight."""
    tenant_count: int
    """Tenants seen lately."""
    over_count: int
    """Of these, tenants that have more than their share."""
    kept_ratio: float
    """The part of the room that is kept for tenants within their share, 0–1."""


class _Meter:
    """Averages how many calls are in flight, weighing the newest moments most."""

    __slots__ = ("average", "inflight", "since", "touched_at", "waiting")

    def __init__(self, now: float) -> None:
        self.inflight = 0
        self.waiting = 0
        self.average = 0.0
        """As it was when it was touched last."""
        self.since = self.touched_at = now

    def use(self, now: float, memory_s: float) -> float:
        """Return the average now."""
        passed_s = now - self.touched_at
        if passed_s > 0:
            gap = self.average - self.inflight
            self.average = self.inflight + gap * math.exp(-passed_s / memory_s)
            self.touched_at = now
        return self.average


class Shares:
    """Watches the tenants of one level of criticality. Every question costs the same."""

    def __init__(self, rules: ShareRules) -> None:
        """Take the rules."""
        self.rules = rules
        self.inflight = 0
        """How many calls of the level are in flight."""
        self._tenants: dict[str, _Meter] = {}
        """Those seen lately, who was seen longest ago first."""
        self._kept = rules.kept_ratio
        self._relaxed_at = self._over_at = -math.inf
        self._latest: str | None = None
        self._forget_at = -math.inf
        """No later than the instant at which the tenant seen longest ago may be forgotten."""

    @property
    def tenant_count(self) -> int:
        """Return how many tenants share the level."""
        return len(self._tenants)

    def change(self, tenant: str, by: int, now: float) -> None:
        """Count a call that begins, by 1, or one that has ended, by -1."""
        if tenant != self._latest:
            meter = self._seen(tenant, now)
        else:
            # It is the last in the order already, as everyone is who calls alone.
            meter = self._tenants[tenant]
            # As _Meter.use, because every call comes here twice.
            passed_s = now - meter.touched_at
            if passed_s > 0:
                gap = meter.average - meter.inflight
                meter.average = meter.inflight + gap * math.exp(-passed_s / self.rules.memory_s)
                meter.touched_at = now
        meter.inflight += by
        self.inflight += by
        if now >= self._forget_at:
            self._forget(now)

    def begin_waiting(self, tenant: str, now: float) -> None:
        """Count a call that waits to begin."""
        self._seen(tenant, now).waiting += 1

    def end_waiting(self, tenant: str) -> None:
        """Count a call that waits no longer."""
        self._tenants[tenant].waiting -= 1

    def room_for_all(self, room: int, now: float) -> float:
        """Return how many of the places are for everybody; the rest is kept for fair shares."""
        passed_s = now - self._relaxed_at
        if passed_s > 0.1:
            began = self.rules.kept_ratio
            self._kept = began + (self._kept - began) * math.exp(-passed_s / _RELAX_S)
            self._relaxed_at = now
        return (1 - self._kept) * room

    def note_refused(self, tenant: str, available: float, now: float) -> None:
        """Learn that there was no room: keep more when it was for one within its share."""
        if len(self._tenants) > 1 and not self.is_over(tenant, available, now):
            self._kept = min(_MAX_KEPT_RATIO, self._kept + _STEP_RATIO)

    def is_within(self, tenant: str, available: float, now: float) -> bool:
        """Say whether a tenant stays within its share with one more call: an equal part.

        What it waits for counts. When a level has taken all its places, and one of its tenants has
        less than its share, then another one has more: to wait for a place is to wait for that.

        Args:
            tenant: who asks for one more.
            available: how many places the level has for all its tenants.
            now: the instant.
        """
        meter = self._tenants.get(tenant)
        if meter is None:
            return available >= 1
        return self._within(meter, available / len(self._tenants), now)

    def is_over(self, tenant: str, available: float, now: float) -> bool:
        """Say whether a tenant has more than its share; one that is alone never has.

        Args:
            tenant: who asks for one more.
            available: how many places the level has for all its tenants.
            now: the instant.
        """
        meter = self._tenants.get(tenant)
        count = len(self._tenants)
        if meter is None or count < 2:
            return False
        rules = self.rules
        share = max(available, self.inflight) / count
        if self._within(meter, share, now):
            return False
        # Small shares: whoever has one call more than its own is not over it.
        most = max(rules.tolerance * share, share + 1)
        flood = meter.inflight >= share * (1 + rules.burst_ratio * (count - 1))
        if not flood and meter.use(now, rules.memory_s) <= most:
            return False
        self._over_at = now
        return True

    def snapshot(self, available: float, now: float) -> ShareSnapshot:
        """Return the state now; `available` is what `is_over` wants."""
        return ShareSnapshot(
            inflight=self.inflight,
            tenant_count=len(self._tenants),
            over_count=sum(self.is_over(tenant, available, now) for tenant in self._tenants),
            kept_ratio=self._kept,
        )

    def _within(self, meter: _Meter, share: float, now: float) -> bool:
        share = max(0.0, share)
        wanted = meter.inflight + meter.waiting
        if wanted < share:
            return True
        # Without a tenant that is over its share, bursts are what all of them have too much of.
        memory_s = self.rules.memory_s
        flooded = now - self._over_at <= memory_s
        # Of one that has just come it is not known whether this is a burst or how it will go on.
        known = now - meter.since >= memory_s
        if not (flooded and known) or wanted >= share + _BURST_DEVIATIONS * math.sqrt(share):
            return False
        return meter.use(now, memory_s) <= share

    def _seen(self, tenant: str, now: float) -> _Meter:
        self._latest = tenant
        meter = self._tenants.pop(tenant, None)
        if meter is None:
            meter = _Meter(now)
        else:
            meter.use(now, self.rules.memory_s)
        self._tenants[tenant] = meter
        return meter

    def _forget(self, now: float) -> None:
        """Drop the tenant seen longest ago when it is gone; one step for each change is enough."""
        name, oldest = next(iter(self._tenants.items()))
        self._forget_at = oldest.touched_at + 3 * self.rules.memory_s
        if now < self._forget_at:
            return
        del self._tenants[name]
        self._latest = None
        if oldest.inflight or oldest.waiting:
            oldest.use(now, self.rules.memory_s)
            self._tenants[name] = oldest
