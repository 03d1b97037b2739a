"""Keeps one slow callee or one hot tenant from taking what the others need to call with.

One attempt takes three permits at once or none: its group's, its callee's, its tenant's. It holds
them until its block is left; for a stream that is its end. Whoever finds none waits a little in a
bounded queue: first come first served within a tenant, turn by turn between tenants, and nobody
waits behind a callee that it does not call. Tenants that hold less than their share, an equal part
of group and callee, go first.

The order around it is deadline, breaker, bulkhead. The deadline policy has said what the attempt
is given before the wait begins, and an open breaker refuses before anybody waits. The wait is part
of what the attempt was given: it is taken off `call.attempt_timeout_s`, and the limits of a stream
are instants, which no wait moves. So wait and answer together stay within the share, and the wire
is given what is left; nothing needs to be computed again. Whatever waits between the deadline
policy and the wire must do the same.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveInt

from services.runtime.call import OFF, Call, Group, Mode
from services.runtime.clock import Clock
from services.runtime.errors import BulkheadFullError
from services.runtime.guarding import Guard
from services.runtime.permits import Permits
from services.runtime.places import PermitRules, PermitsSnapshot, Place, places_for
from services.runtime.ranges import check_ranges
from services.runtime.setting_text import SettingError

MIN_RETRY_AFTER_S = 0.1
MAX_RETRY_AFTER_S = 5.0


def capacity(qps: float, latency_s: float) -> int:
    """Return the permits for an expected load: `ceil(qps · latency / 0.8)`, 1 at least.

    Args:
        qps: calls per second.
        latency_s: how long one takes, in seconds.

    Raises:
        ValueError: one of them is negative.
    """
    if qps < 0 or latency_s < 0:
        raise ValueError("neither a rate nor a latency is negative")
    return places_for(qps * latency_s, 0.8)


_CAPACITY = ("expected_qps", "expected_latency_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSize:
    """Says how many calls to a group may run and how many may wait."""

    permits: PositiveInt
    """Calls under way at once, 1 or more; not looked at when a capacity is declared."""
    max_queued: NonNegativeInt
    """Calls waiting at once; 0 refuses at once when the permits are taken."""
    expected_qps: NonNegativeFloat = 0.0
    """Calls per second that one process is to carry; 0 declares nothing, `permits` holds."""
    expected_latency_s: NonNegativeFloat = 0.0
    """How long one of them takes, seconds; with it the size is `ceil(qps · latency / 0.8)`."""

    def __post_init__(self) -> None:
        """Refuse what cannot work.

        Raises:
            SettingError: a number is outside of its range, or a capacity is declared by half.
        """
        check_ranges(self)
        for name, other in (_CAPACITY, _CAPACITY[::-1]):
            if getattr(self, name) > 0 and getattr(self, other) == 0:
                advice = f"it makes a size only together with {other}; set that as well"
                raise SettingError(name, getattr(self, name), advice)

    @property
    def allowed(self) -> int:
        """Return how many calls may be under way: by the declared capacity, else by `permits`."""
        if self.expected_qps > 0:
            return capacity(self.expected_qps, self.expected_latency_s)
        return self.permits


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkheadConfig:
    """Sets the sizes; those of the groups are what a post-mortem of a full platform arrived at."""

    mode: Mode = Mode.ENFORCE
    """Whether calls wait and are refused, or are only counted as if."""
    core: GroupSize = GroupSize(permits=64, max_queued=256)
    """What every run needs: the hops and the model."""
    data: GroupSize = GroupSize(permits=32, max_queued=128)
    """Databases and search: a query keeps a core of the database busy."""
    auxiliary: GroupSize = GroupSize(permits=8, max_queued=64)
    """What an answer can do without."""
    external: GroupSize = GroupSize(permits=8, max_queued=32)
    """Other people's services, slow in ways that nobody here can mend."""
    backup: GroupSize = GroupSize(permits=32, max_queued=64)
    """The model that stands in for the first one; half of core, because it is the smaller one."""
    shared: bool = False
    """Whether all groups use the permits of core as one pool, without limits of single callees. A
    pool that all share is what a slow callee fills for everybody: only to show that. Fixed with
    the start."""
    max_wait_s: NonNegativeFloat = 0.3
    """The longest wait for permits, seconds: longer than a hiccup, shorter than a person
    notices."""
    tenant_ratio: Annotated[float, Field(gt=0, le=1)] = 0.5
    """The part of a group, of each callee and of the queue that one tenant may take while others
    are about."""
    lone_tenant_ratio: Annotated[float, Field(gt=0, le=1)] = 0.875
    """The part of a group that a named tenant may take while it is alone, so that the next one
    finds room; and up to where those have to stay that hold their share of group or callee."""
    lone_after_s: NonNegativeFloat = 60.0
    """How long nobody else must have called for a tenant to count as alone, seconds; people come
    back within a minute."""
    callee_queue_ratio: Annotated[float, Field(gt=0, le=1)] = 0.5
    """The part of a queue that the calls to one callee may take, so that a slow one leaves room.
    A tenant that waits for no more than its share always finds a place to do so."""

    def __post_init__(self) -> None:
        """Refuse what cannot work.

        Raises:
            SettingError: a number is outside of its range.
        """
        check_ranges(self)

    def size(self, group: Group) -> GroupSize:
        """Return the size of one group; of the one pool when all share it."""
        size: GroupSize = self.core if self.shared else getattr(self, group.value)
        return size

    def rules(self, group: Group) -> PermitRules:
        """Return all that applies to one group."""
        size = self.size(group)
        return PermitRules(
            permits=size.allowed,
            max_queued=size.max_queued,
            callee_queue_ratio=self.callee_queue_ratio,
            tenant_ratio=self.tenant_ratio,
            lone_tenant_ratio=self.lone_tenant_ratio,
            lone_after_s=self.lone_after_s,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkheadSnapshot:
    """Describes all groups."""

    mode: Mode
    """In `observe`, waits and refusals are what would have been."""
    groups: Mapping[Group, PermitsSnapshot]


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """Tells others of waits: that time is not the callee's."""

    begins: Callable[[Call], None] = lambda call: None
    """Is told when a call begins to wait."""
    ends: Callable[[Call], None] = lambda call: None
    """Is told when it goes on, with its permits; of one that ends without it is not told."""


class Bulkhead(Guard[Call]):
    """Is the guard that takes permits before an attempt is sent."""

    def __init__(self, config: BulkheadConfig, clock: Clock, waits: Waits | None = None) -> None:
        """Take the sizes, the clock, and who is told of waits."""
        self.config = config
        self.waits = waits or Waits()
        """Who is told of waits."""
        self._clock = clock
        self._shared = config.shared
        own = {
            group: Permits(group.value, config.rules(group))
            for group in ((Group.CORE,) if config.shared else Group)
        }
        self._pools = own
        self._permits = {group: own.get(group, own[Group.CORE]) for group in Group}

    def before(self, call: Call) -> Awaitable[None] | None:
        """Take the permits of an attempt; return the wait for them when there is one.

        Raises:
            BulkheadFullError: none are free, and there is no room to wait for them.
        """
        if self.config.mode is OFF:
            call.place = None
            return None
        callee, now = call.callee, self._clock.now()
        permits = self._permits[callee.group]
        tenant = call.inbound.identity.tenant
        most = None if self._shared else callee.max_concurrency
        if permits.take_at_once(callee.key, most, tenant, now):
            call.place = now
            return None
        place = _Attempt(self, permits, call, self._clock, most)
        call.place = place
        return place.enter()

    def after(self, call: Call, error: BaseException | None) -> None:
        """Give the permits of an attempt back; a stream's when it is left."""
        place: _Attempt | float | None = call.place
        if isinstance(place, float):
            callee, tenant = call.callee, call.inbound.identity.tenant
            permits = self._permits[callee.group]
            permits.give_back(callee.key, tenant, place, self._clock.now())
        elif place is not None:
            place.leave()

    def reconfigure(self, config: BulkheadConfig) -> None:
        """Change the sizes: who holds a permit keeps it, who waits gets what is new in turn.

        With fewer permits than are in use nobody gets one until enough have come back.
        """
        self.config = config
        for group, permits in self._pools.items():
            permits.rules = config.rules(group)
            permits.hand_out(self._clock.now())

    @property
    def queued(self) -> int:
        """Return how many calls wait for permits, in all groups."""
        return sum(permits.queued for permits in self._pools.values())

    def snapshot(self) -> BulkheadSnapshot:
        """Return the state now."""
        groups = {group: permits.snapshot() for group, permits in self._pools.items()}
        return BulkheadSnapshot(mode=self.config.mode, groups=groups)


class _Attempt(Place):
    """Is the place of one attempt."""

    __slots__ = ("_blocker", "_call", "_clock", "_config", "_permits", "_timer", "_waits", "_woken")

    def __init__(
        self,
        bulkhead: Bulkhead,
        permits: Permits,
        call: Call,
        clock: Clock,
        most: int | None,
    ) -> None:
        super().__init__(call.callee.key, most, call.inbound.identity.tenant)
        self._config = bulkhead.config
        self._waits = bulkhead.waits
        self._permits = permits
        self._call = call
        self._clock = clock
        self._blocker = ""
        self._timer: asyncio.TimerHandle | None = None
        self._woken: asyncio.Future[None] | None = None

    def enter(self) -> Awaitable[None] | None:
        """Take the permits, or return the wait for them.

        Raises:
            BulkheadFullError: there is no room to wait.
        """
        self.since = now = self._clock.now()
        blocker = self._permits.take(self, now)
        if not blocker:
            return None
        wait_s = self._longest_wait_s(now)
        if wait_s > 0:
            blocker = self._permits.join(self, now)
        if self._config.mode is not Mode.ENFORCE:
            self._watch(blocker, wait_s)
            return None
        if not self.waiting:
            raise self._full(blocker, 0.0)
        return self._wait(now, wait_s)

    def leave(self) -> None:
        """Give the permits back, or the place in the queue."""
        if self._timer is not None:
            self._timer.cancel()
        if self.held:
            self._permits.release(self, self._clock.now())
        elif self.waiting:
            self._permits.withdraw(self)

    def wake(self) -> None:
        """Go on with the permits that were handed over."""
        if self._woken is not None and not self._woken.done():
            self._woken.set_result(None)

    def _longest_wait_s(self, now: float) -> float:
        """Return how long it may wait so that something useful can still be sent."""
        call = self._call
        if call.callee.has_stand_in:
            return 0.0
        worth_s = min(call.attempt_timeout_s, call.inbound.self_deadline - now)
        if call.wait_limit is not None:
            worth_s = min(worth_s, call.wait_limit.first_wait_until()[0] - now)
        return min(self._config.max_wait_s, worth_s - call.limits.min_useful_s)

    def _watch(self, blocker: str, wait_s: float) -> None:
        # The call goes on without permits; its place stands in the queue as if it waited.
        if self.waiting:
            self._timer = asyncio.get_running_loop().call_later(wait_s, self._expire)
        else:
            self._permits.note_refused(blocker)

    async def _wait(self, began: float, wait_s: float) -> None:
        call = self._call
        loop = asyncio.get_running_loop()
        self._woken = loop.create_future()
        self._timer = loop.call_later(wait_s, self._expire)
        call.inbound.begin_wait(call.dependency, began)
        self._waits.begins(call)
        try:
            await self._woken
        except BaseException:
            # A permit that was handed over in the same turn goes back as well.
            self.leave()
            raise
        finally:
            now = self._clock.now()
            call.inbound.end_wait(call.dependency, now)
        self._timer.cancel()
        call.attempt_timeout_s -= now - began
        if not self.held:
            raise self._full(self._blocker, now - began)
        if call.attempt_timeout_s < call.limits.min_useful_s:
            # Woken so late that nothing useful can be sent any more.
            self.leave()
            raise self._full("group", now - began)
        self._waits.ends(call)

    def _expire(self) -> None:
        if not self.waiting:
            return
        self._blocker = self._permits.blocker(self, self._clock.now()) or "group"
        self._permits.withdraw(self)
        if self._woken is None:
            self._permits.note_refused(self._blocker)
        self.wake()

    def _full(self, blocker: str, waited_s: float) -> BulkheadFullError:
        self._permits.note_refused(blocker)
        waited = f" after {waited_s:.2f} s of waiting" if waited_s > 0 else ""
        retry_after_s = max(self._permits.free_after_s(), MIN_RETRY_AFTER_S)
        return BulkheadFullError(
            f"no permit for {self._call.dependency}{waited}: "
            f"{self._permits.describe(self, blocker)}",
            cause=f"{blocker}_full",
            details={"bulkhead": self._permits.group, "callee": self.callee},
            retry_after_s=min(retry_after_s, MAX_RETRY_AFTER_S),
        )
