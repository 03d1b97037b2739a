"""Counts the permits of one group of dependencies, with those who wait for them.

Nothing here waits or reads time, so that nothing can come between a check and its effect.
"""

import math

from services.runtime.places import UNLIMITED, PermitRules, PermitsSnapshot, Place

_KEPT_TENANTS = 64
_HOLD_WEIGHT = 0.05
"""How much the newest hold counts in the average: about the last twenty matter."""


class _Use:
    __slots__ = ("inflight", "queued")

    def __init__(self) -> None:
        self.inflight = 0
        self.queued = 0

    @property
    def idle(self) -> bool:
        """Return whether it neither holds nor waits."""
        return not self.inflight and not self.queued


class _Tenant(_Use):
    __slots__ = ("callees", "lanes")

    def __init__(self) -> None:
        super().__init__()
        self.callees: dict[str, int] = {}
        """Its permits in use, by callee."""
        self.lanes: dict[str, dict[Place, None]] = {}
        """Who waits, by callee, in the order of arrival."""


class Permits:
    """Gives a call the permits of group, callee and tenant at once, or none of them."""

    def __init__(self, group: str, rules: PermitRules) -> None:
        """Take the group's name and its sizes."""
        self.group = group
        self.rules = rules
        self.inflight = 0
        self.queued = 0
        self._peak = self._admitted = self._waited = self._arrivals = 0
        self._wait_total_s = self._hold_s = 0.0
        self._refused = {"group": 0, "callee": 0, "tenant": 0, "queue": 0}
        self._callees: dict[str, _Use] = {}
        """Grows with what is declared, not with what is asked."""
        self._tenants: dict[str, _Tenant] = {}
        """Those that hold or wait, and a few others: most come again at once."""
        self._active = 0
        """How many tenants hold or wait."""
        self._turns: dict[str, _Tenant] = {}
        """Those that wait; the first one's turn is next."""
        self._latest = ""
        self._latest_at = self._other_at = -math.inf

    def take(self, place: Place, now: float) -> str:
        """Take all permits and return nothing, or take none and return what is full."""
        self._note_arrival(place.tenant, now)
        if self.queued:
            # Who waits goes first, should a rule have loosened with time alone.
            self.hand_out(now)
        blocker = self.blocker(place, now)
        if not blocker:
            tenant = self._tenants.setdefault(place.tenant, _Tenant())
            self._active += tenant.idle
            self._hold(place, now)
        return blocker

    def take_at_once(
        self, callee_key: str, limit: int | None, tenant_name: str, now: float
    ) -> bool:
        """Take all permits without a place, when nobody waits and nothing is nearly full.

        This is the way of almost every call, at a third of the cost. Whoever is told False comes
        with a place; whoever is told True gives back.
        """
        rules = self.rules
        kept_free = rules.lone_tenant_ratio
        if self.queued or self.inflight > kept_free * rules.permits - 1:
            return False
        callee = self._callees.get(callee_key)
        if callee is None:
            callee = self._callees[callee_key] = _Use()
        if limit is not None and callee.inflight > kept_free * limit - 1:
            return False
        tenant = self._tenants.get(tenant_name)
        if tenant is None:
            tenant = self._tenants[tenant_name] = _Tenant()
        elif tenant.inflight >= rules.least_tenant_ratio * rules.permits - 1:
            return False
        held = tenant.callees.get(callee_key, 0)
        if limit is not None and held > rules.least_tenant_ratio * limit - 1:
            return False
        if tenant_name == self._latest:
            self._latest_at = now
        else:
            self._note_arrival(tenant_name, now)
        if not tenant.inflight and not tenant.queued:
            self._active += 1
        self.inflight += 1
        callee.inflight += 1
        tenant.inflight += 1
        tenant.callees[callee_key] = held + 1
        self._admitted += 1
        if self.inflight > self._peak:
            self._peak = self.inflight
        return True

    def give_back(self, callee_key: str, tenant_name: str, since: float, now: float) -> None:
        """Take back what was taken at once at an instant, and hand it on."""
        self.inflight -= 1
        self._callees[callee_key].inflight -= 1
        tenant = self._tenants[tenant_name]
        tenant.inflight -= 1
        if tenant.callees[callee_key] == 1:
            del tenant.callees[callee_key]
        else:
            tenant.callees[callee_key] -= 1
        self._hold_s += _HOLD_WEIGHT * (now - since - self._hold_s)
        if not tenant.inflight and not tenant.queued:
            self._active -= 1
        if self.queued:
            self.hand_out(now)
        if len(self._tenants) > _KEPT_TENANTS:
            self._forget(tenant_name, tenant)

    def blocker(self, place: Place, now: float) -> str:
        """Return what keeps a place from its permits; nothing when they are free."""
        if self.inflight >= self.rules.permits:
            return "group"
        callee = self._callees.get(place.callee)
        if callee is not None and callee.inflight >= place.limit:
            return "callee"
        tenant = self._tenants.get(place.tenant)
        if tenant is not None:
            ratio = self._tenant_ratio(place.tenant, tenant, now)
            if not self._may_hold_more(place, tenant, ratio):
                return "tenant"
        return ""

    def join(self, place: Place, now: float) -> str:
        """Queue up and return nothing, or return what has no room for it."""
        rules = self.rules
        callee = self._callees.setdefault(place.callee, _Use())
        tenant = self._tenants.setdefault(place.tenant, _Tenant())
        full = ""
        if self._waits_for_its_share(place, tenant):
            pass
        elif self.queued >= rules.max_queued:
            full = "queue"
        elif callee.queued >= math.ceil(rules.callee_queue_ratio * rules.max_queued):
            full = "callee"
        elif tenant.queued >= math.ceil(
            self._tenant_ratio(place.tenant, tenant, now) * rules.max_queued
        ):
            full = "tenant"
        if full:
            self._forget(place.tenant, tenant)
            return full
        self._active += tenant.idle
        self._arrivals += 1
        place.number = self._arrivals
        place.waiting = True
        self.queued += 1
        callee.queued += 1
        tenant.queued += 1
        tenant.lanes.setdefault(place.callee, {})[place] = None
        self._turns.setdefault(place.tenant, tenant)
        return ""

    def withdraw(self, place: Place) -> None:
        """Take a place out of the queue."""
        tenant = self._unqueue(place)
        self._active -= tenant.idle
        self._forget(place.tenant, tenant)

    def hand_out(self, now: float) -> None:
        """Give free permits to those that wait and may have them."""
        while self.queued and self.inflight < self.rules.permits:
            place = self._next(now)
            if place is None:
                return
            # Its tenant is neither idle nor forgotten between waiting and holding.
            self._unqueue(place)
            tenant = self._turns.pop(place.tenant, None)
            if tenant is not None:
                # Its next turn comes after everybody else's.
                self._turns[place.tenant] = tenant
            self._waited += 1
            self._wait_total_s += now - place.since
            self._hold(place, now)
            place.wake()

    def release(self, place: Place, now: float) -> None:
        """Take all permits of a place back and hand them on."""
        place.held = False
        self.give_back(place.callee, place.tenant, place.since, now)

    def note_refused(self, blocker: str) -> None:
        """Count a refusal under what was full."""
        self._refused[blocker] += 1

    def free_after_s(self) -> float:
        """Return when one more may expect a permit, from what holds took lately."""
        return self._hold_s * (self.queued + 1) / self.rules.permits

    def describe(self, place: Place, blocker: str) -> str:
        """Return what is full and what to do about it, for people."""
        rules = self.rules
        if blocker == "callee":
            callee = self._callees[place.callee]
            return (
                f"{place.callee} is full ({callee.inflight} of {place.limit} in use, "
                f"{callee.queued} waiting); call it less at once, or raise its max_concurrency"
                if place.limit < UNLIMITED
                else f"{place.callee} has its share of the queue of the {self.group} group "
                f"({callee.queued} of {rules.max_queued}); come back later"
            )
        if blocker == "tenant":
            tenant = self._tenants.get(place.tenant) or _Tenant()
            return (
                f"tenant {place.tenant!r} has its share of the {self.group} group "
                f"({tenant.inflight} of {rules.permits} in use, {tenant.queued} waiting); "
                "call less at once"
            )
        return (
            f"the {self.group} group is full ({self.inflight} of {rules.permits} in use, "
            f"{self.queued} of {rules.max_queued} waiting); come back later"
        )

    def snapshot(self) -> PermitsSnapshot:
        """Return the state now."""
        return PermitsSnapshot(
            group=self.group,
            permits=self.rules.permits,
            inflight=self.inflight,
            peak_inflight=self._peak,
            max_queued=self.rules.max_queued,
            queued=self.queued,
            admitted_count=self._admitted,
            waited_count=self._waited,
            wait_total_s=self._wait_total_s,
            refused=dict(self._refused),
            average_hold_s=self._hold_s,
            callees={key: use.inflight for key, use in self._callees.items()},
            tenants={
                name: use.inflight
                for name, use in self._tenants.items()
                if use.inflight or use.queued
            },
        )

    def _unqueue(self, place: Place) -> _Tenant:
        place.waiting = False
        tenant = self._tenants[place.tenant]
        lane = tenant.lanes[place.callee]
        del lane[place]
        if not lane:
            del tenant.lanes[place.callee]
        self.queued -= 1
        self._callees[place.callee].queued -= 1
        tenant.queued -= 1
        if not tenant.queued:
            del self._turns[place.tenant]
        return tenant

    def _hold(self, place: Place, now: float) -> None:
        callee = self._callees.get(place.callee)
        if callee is None:
            callee = self._callees[place.callee] = _Use()
        tenant = self._tenants[place.tenant]
        self.inflight += 1
        callee.inflight += 1
        tenant.inflight += 1
        tenant.callees[place.callee] = tenant.callees.get(place.callee, 0) + 1
        self._admitted += 1
        if self.inflight > self._peak:
            self._peak = self.inflight
        place.since = now
        place.held = True

    def _next(self, now: float) -> Place | None:
        """Return who is next: of the first tenant that may, the oldest call that may.

        Those that hold less than their share of group and callee go before all others.
        """
        count = max(1, self._active)
        second: Place | None = None
        for name, tenant in self._turns.items():
            ratio = self._tenant_ratio(name, tenant, now)
            may = [
                head
                for callee, lane in tenant.lanes.items()
                if self._callees[callee].inflight < (head := next(iter(lane))).limit
                and self._may_hold_more(head, tenant, ratio)
            ]
            below = [
                place
                for place in may
                if tenant.inflight * count < self.rules.permits
                and tenant.callees.get(place.callee, 0) * count < place.limit
            ]
            if below:
                return min(below, key=_number)
            if may and second is None:
                second = min(may, key=_number)
        return second

    def _waits_for_its_share(self, place: Place, tenant: _Tenant) -> bool:
        """Say whether a tenant waits for less than its share, whatever others do.

        So the queue grows beyond its bound, by not more than there are permits.
        """
        count = self._active + tenant.idle
        if count < 2 or not self.rules.max_queued:
            return False
        at_callee = tenant.callees.get(place.callee, 0) + len(tenant.lanes.get(place.callee, ()))
        return (
            tenant.inflight + tenant.queued
        ) * count < self.rules.permits and at_callee * count < place.limit

    def _forget(self, name: str, tenant: _Tenant) -> None:
        if not tenant.inflight and not tenant.queued and len(self._tenants) > _KEPT_TENANTS:
            self._tenants.pop(name, None)

    def _note_arrival(self, tenant: str, now: float) -> None:
        if tenant != self._latest:
            self._latest, self._other_at = tenant, self._latest_at
        self._latest_at = now

    def _may_hold_more(self, place: Place, tenant: _Tenant, ratio: float) -> bool:
        """Say whether a tenant has less than its part of the group and of the callee."""
        rules, count = self.rules, max(1, self._active)
        if tenant.inflight >= max(1, math.floor(ratio * rules.permits + 1e-9)):
            return False
        if ratio != rules.tenant_ratio:
            return True
        # Whoever has its share already leaves room for those that do not.
        room = rules.lone_tenant_ratio * rules.permits
        if tenant.inflight * count >= rules.permits and self.inflight >= room:
            return False
        if place.limit == UNLIMITED:
            return True
        held = tenant.callees.get(place.callee, 0)
        if held >= max(1, math.floor(ratio * place.limit + 1e-9)):
            return False
        if held * count < place.limit:
            return True
        return self._callees[place.callee].inflight < rules.lone_tenant_ratio * place.limit

    def _tenant_ratio(self, name: str, tenant: _Tenant, now: float) -> float:
        own = tenant.inflight + tenant.queued
        seen_at = self._other_at if name == self._latest else self._latest_at
        if self.inflight + self.queued > own or now - seen_at <= self.rules.lone_after_s:
            return self.rules.tenant_ratio
        # Without a name there are no tenants, and nobody to leave room for.
        return self.rules.lone_tenant_ratio if name else 1.0


def _number(place: Place) -> int:
    return place.number
