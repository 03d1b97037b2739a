"""Decides whether a call may start here, so that what is started is also finished in time.

Three rules, each `off`, `observe` or `enforce`:

- *estimate*: a call whose path takes longer, as far as this hop knows, than what is left is
  refused before any work. An estimate is learned from what is served, so this rule refuses four of
  five at most, and the fifth may prove it wrong.
- *limit*: so many calls in flight and no more. Each level of criticality may use a part of the
  limit only, so that the lowest is refused first and the highest finds room.
- *fair share*: from three quarters of its part on, a level refuses the tenants that have lately
  taken more than their share, so that the last quarter is there for all others.

What is not used is lent to whoever asks, and is given back as calls end. So a call that finds no
place, though others hold more than their share or matter less, waits a moment for the next one
instead of being refused: nobody else is let in before it.

Put it inside the deadline policy, which knows what is left. Health, reflection and the runtime's
own service never come here: the door lets them pass.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field, NonNegativeFloat

from services.runtime.call import OFF, Criticality, Inbound, Mode
from services.runtime.clock import Clock
from services.runtime.errors import (
    BudgetTooSmallError,
    DependencyFailedError,
    LoadShedError,
    SelfTimeoutError,
)
from services.runtime.guarding import Guard
from services.runtime.levels import LevelRules, Levels, LevelSnapshot
from services.runtime.policies.limit import Limit, LimitConfig
from services.runtime.ranges import check_ranges
from services.runtime.reject_tokens import RejectTokens
from services.runtime.shares import ShareRules, Shares
from services.runtime.turns import Turn, Turns
from services.runtime.verdict import NO_ANSWER

Estimate = Callable[[Inbound], float | None]
"""Returns how long the path of a call takes, own work and children, in seconds; None if unknown."""

MIN_RETRY_AFTER_S = 0.1
MAX_RETRY_AFTER_S = 5.0
_LATENCY_WEIGHT = 0.05
_SHARE_BURST = 50
"""A hot tenant comes in floods: how many of its refusals the calm before may pay for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionConfig:
    """Sets the rules."""

    estimate: Mode = Mode.OBSERVE
    """Watches only, by default: a mean over unlike calls may be wrong for some of them."""
    limit: Mode = Mode.ENFORCE
    """A process that takes more than it can serve serves nobody."""
    fair_share: Mode = Mode.ENFORCE
    """Refuses nobody while there is room."""
    levels: LevelRules = field(default_factory=LevelRules)
    """What part of the limit each level of criticality may use to begin with."""
    shares: ShareRules = field(default_factory=ShareRules)
    """What more than a fair share is."""
    max_wait_s: NonNegativeFloat = 0.3
    """The longest wait for a place that others hold beyond their share, or that matter less;
    longer than it takes until one of many calls ends. 0 refuses at once."""
    max_reject_ratio: Annotated[float, Field(gt=0, lt=1)] = 0.8
    """The most that the estimate, or the fair share, may refuse; the limit is never exceeded."""
    limit_counts_wait: bool = False
    """Whether time spent waiting for dependencies counts as latency for the limit: only where the
    dependency is this hop's own engine. Else a slow tool would shrink the limit for everybody."""

    def __post_init__(self) -> None:
        """Refuse what cannot work.

        Raises:
            SettingError: a number is outside of its range.
        """
        check_ranges(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionSnapshot:
    """Describes the gate; the counts are since the start."""

    modes: Mapping[str, Mode]
    """How far each rule goes: `estimate`, `limit`, `fair_share`."""
    limit: int
    limit_kind: str
    """How the limit is found: `fixed` or `gradient`."""
    inflight: int
    peak_inflight: int
    waiting: int
    """Calls that wait for a place."""
    waited_count: int
    """Calls that had to."""
    served_count: int
    """Calls that were admitted and have ended."""
    refused: Mapping[str, int]
    """Refusals by rule and level: `limit/SHEDDABLE`."""
    would_refuse: Mapping[str, int]
    """The same of rules that only observe."""
    spared_count: int
    """Calls that a rule let pass because it had refused enough."""
    tenant_count: int
    """Tenants seen lately, over all levels."""
    levels: Mapping[Criticality, LevelSnapshot]
    """How the limit is shared, lowest level first."""


class Admission(Guard[Inbound]):
    """Is the guard that stands before the service."""

    def __init__(
        self, config: AdmissionConfig, limit: Limit, clock: Clock, estimate: Estimate | None = None
    ) -> None:
        """Take the rules, the algorithm that gives the limit, the clock and the estimate."""
        self._config = config
        self._limit = limit
        self._clock = clock
        self._estimate = estimate
        self._inflight = self._peak = self._served = self._spared = 0
        self._waited = 0
        self._latency_s = 0.0
        self._refused: dict[str, int] = {}
        self._would_refuse: dict[str, int] = {}
        self._estimate_tokens = RejectTokens(config.max_reject_ratio)
        self._share_tokens = RejectTokens(config.max_reject_ratio, _SHARE_BURST)
        self._rooms = Levels(config.levels)
        self._shares = [Shares(config.shares) for _ in range(1 + max(Criticality))]
        """By the number of the level."""
        self._turns = Turns()

    def reconfigure(self, config: AdmissionConfig) -> None:
        """Change the rules; calls in flight go on and still count, and what was learned stays."""
        self._config = config
        self._estimate_tokens.reconfigure(config.max_reject_ratio)
        self._share_tokens.reconfigure(config.max_reject_ratio, _SHARE_BURST)
        self._rooms.reconfigure(config.levels)
        for shares in self._shares:
            shares.rules = config.shares
        self._hand_out()

    def reconfigure_limit(self, config: LimitConfig) -> None:
        """Change how the limit is found; a limit below what is in flight refuses and cuts none."""
        self._limit = config.limit_after(self._limit)
        self._hand_out()

    @property
    def limit(self) -> int:
        """Return how many calls may be in flight."""
        return self._limit.value

    def places(self, level: Criticality) -> tuple[int, int] | None:
        """Return a level's room and how many are in flight; None while no limit is enforced."""
        if self._config.limit is not Mode.ENFORCE:
            return None
        return self._rooms.room(level, self._limit.value, self._clock.now()), self._inflight

    def snapshot(self) -> AdmissionSnapshot:
        """Return the state now."""
        config, now = self._config, self._clock.now()
        return AdmissionSnapshot(
            modes={
                "estimate": config.estimate,
                "limit": config.limit,
                "fair_share": config.fair_share,
            },
            limit=self._limit.value,
            limit_kind=self._limit.kind,
            inflight=self._inflight,
            peak_inflight=self._peak,
            waiting=self._turns.count,
            waited_count=self._waited,
            served_count=self._served,
            refused=dict(self._refused),
            would_refuse=dict(self._would_refuse),
            spared_count=self._spared,
            tenant_count=sum(shares.tenant_count for shares in self._shares),
            levels={level: self._level(level, now) for level in Criticality},
        )

    def before(self, inbound: Inbound) -> Awaitable[None] | None:
        """Let a call in, or return its wait for a place.

        Raises:
            BudgetTooSmallError: the path takes longer than what is left.
            LoadShedError: there is no room for its level, or its tenant has more than its share.
        """
        config, now = self._config, self._clock.now()
        identity = inbound.identity
        level = identity.criticality
        if self._estimate is not None and config.estimate is not OFF:
            self._estimate_tokens.looked += 1
            path_s = self._estimate(inbound)
            if path_s is not None and now + path_s > inbound.deadline - inbound.margin_s:
                self._doubt(inbound, path_s, now)
        limit = self._limit.value
        if 2 * self._inflight >= self._rooms.parts[level] * limit:  # else nobody is held back
            waiting = self._find_room(inbound, limit, now)
            if waiting is not None:
                return waiting
        # As _let_in, because every call comes here.
        self._inflight = inflight = self._inflight + 1
        if inflight > self._peak:
            self._peak = inflight
        self._shares[level].change(identity.tenant, 1, now)
        inbound.admitted_at, inbound.admitted_as = now, inflight
        return None

    def _find_room(self, inbound: Inbound, limit: int, now: float) -> Awaitable[None] | None:
        """Return a call's wait for a place; None when it may have one at once."""
        config, identity = self._config, inbound.identity
        level = identity.criticality
        shares = self._shares[level]
        room = self._rooms.room(level, limit, now)
        if self._inflight >= room:
            lower = sum(below.inflight for below in self._shares[:level])
            self._rooms.note_refused(level, self._inflight, lower, limit)
            shares.note_refused(identity.tenant, self._available(shares, room), now)
            if self._may_wait(inbound, lower, room):
                return self._wait(inbound, room)
            if self._refuses("limit", config.limit, level):
                raise self._shed(inbound, "limit", room)
        if config.fair_share is not OFF:
            self._share_tokens.looked += 1
            if self._inflight >= shares.room_for_all(room, now):
                self._check_share(inbound, room, now)
        self._rooms.note_admitted(level, self._inflight, limit)
        return None

    def after(self, inbound: Inbound, error: BaseException | None) -> None:
        """Count a call that was let in and has ended, and tell the limit what it taught."""
        now = self._clock.now()
        self._inflight -= 1
        self._served += 1
        identity = inbound.identity
        self._shares[identity.criticality].change(identity.tenant, -1, now)
        if error is None:
            elapsed_s = now - inbound.admitted_at
            self._latency_s += _LATENCY_WEIGHT * (elapsed_s - self._latency_s)
            if self._limit.learns:
                wait_s = 0.0 if self._config.limit_counts_wait else inbound.wait_s
                self._limit.record(now, max(0.0, elapsed_s - wait_s), inbound.admitted_as)
        elif self._ran_out_of_time(inbound, error, now):
            self._limit.record_overload(now, inbound.admitted_as)
        if self._turns.count:
            self._hand_out()

    def _let_in(self, inbound: Inbound, now: float) -> None:
        self._inflight += 1
        self._peak = max(self._peak, self._inflight)
        identity = inbound.identity
        self._shares[identity.criticality].change(identity.tenant, 1, now)
        inbound.admitted_at, inbound.admitted_as = now, self._inflight

    def _may_wait(self, inbound: Inbound, lower: int, room: int) -> bool:
        """Say whether a call has more right to a place than somebody who has one.

        Args:
            inbound: the call.
            lower: how many calls of lower levels are in flight.
            room: how many calls may be in flight for one more of its level.
        """
        config = self._config
        if config.limit is not Mode.ENFORCE or self._longest_wait_s(inbound) <= 0:
            return False
        level, tenant = inbound.identity.criticality, inbound.identity.tenant
        if lower > self._turns.count_from(level):
            return True
        if config.fair_share is not Mode.ENFORCE or self._turns.count >= self._limit.value:
            return False
        shares = self._shares[level]
        return shares.is_within(tenant, self._available(shares, room), self._clock.now())

    def _longest_wait_s(self, inbound: Inbound) -> float:
        return min(self._config.max_wait_s, inbound.self_deadline - self._clock.now())

    async def _wait(self, inbound: Inbound, room: int) -> None:
        """Wait for the next place that comes free.

        Raises:
            LoadShedError: none did in time.
        """
        began = self._clock.now()
        turn = Turn(inbound)
        identity = inbound.identity
        shares = self._shares[identity.criticality]
        self._turns.join(turn)
        shares.begin_waiting(identity.tenant, began)
        self._waited += 1
        try:
            await turn.wait(self._longest_wait_s(inbound))
        except BaseException:
            # A place that it was given in the same turn of the loop goes to the next.
            if turn.admitted:
                self._inflight -= 1
                shares.change(identity.tenant, -1, self._clock.now())
                self._hand_out()
            raise
        finally:
            if not turn.admitted:
                self._turns.leave(turn)
                shares.end_waiting(identity.tenant)
        waited_s = self._clock.now() - began
        inbound.wait_s += waited_s
        if not turn.admitted:
            self._refuses("limit", Mode.ENFORCE, identity.criticality)
            raise self._shed(inbound, "limit", room)
        # From its arrival on, as what it waited is a part of all its waits.
        inbound.admitted_at -= waited_s

    def _hand_out(self) -> None:
        """Let those in who wait, as far as there is room."""
        now, limit = self._clock.now() if self._turns.count else 0.0, self._limit.value
        for level in reversed(Criticality):
            while (turn := self._turns.first(level)) is not None:
                if self._inflight >= self._rooms.room(level, limit, now):
                    break
                self._turns.leave(turn)
                self._shares[level].end_waiting(turn.inbound.identity.tenant)
                turn.admitted = True
                self._let_in(turn.inbound, now)
                turn.wake()

    def _level(self, level: Criticality, now: float) -> LevelSnapshot:
        room = self._rooms.room(level, self._limit.value, now)
        shares = self._shares[level]
        return LevelSnapshot(room=room, share=shares.snapshot(self._available(shares, room), now))

    def _doubt(self, inbound: Inbound, path_s: float, now: float) -> None:
        """Refuse a call whose path takes longer than what is left, unless the rule may not."""
        if not self._estimate_tokens.try_refuse():
            self._spared += 1
        elif self._refuses("estimate", self._config.estimate, inbound.identity.criticality):
            raise BudgetTooSmallError(
                f"{inbound.method} takes about {path_s:.2f} s from {inbound.hop} on and "
                f"{inbound.self_deadline - now:.2f} s are left; call with a longer deadline",
                cause="path_estimate",
                details={"estimateMs": str(round(path_s * 1000))},
            )

    def _check_share(self, inbound: Inbound, room: int, now: float) -> None:
        identity = inbound.identity
        level = identity.criticality
        shares = self._shares[level]
        if not shares.is_over(identity.tenant, self._available(shares, room), now):
            return
        if not self._share_tokens.try_refuse():
            self._spared += 1
        elif self._refuses("fair_share", self._config.fair_share, level):
            raise self._shed(inbound, "fair_share", room)

    def _available(self, shares: Shares, room: int) -> float:
        """Return how many places a level has when the others keep theirs."""
        return room - self._inflight + shares.inflight

    def _refuses(self, rule: str, mode: Mode, level: Criticality) -> bool:
        if mode is OFF:
            return False
        counts = self._refused if mode is Mode.ENFORCE else self._would_refuse
        name = f"{rule}/{level.name}"
        counts[name] = counts.get(name, 0) + 1
        return mode is Mode.ENFORCE

    def _shed(self, inbound: Inbound, rule: str, room: int) -> LoadShedError:
        level = inbound.identity.criticality
        why = (
            f"{self._inflight} calls are in flight and {room} may be for {level.name}"
            if rule == "limit"
            else f"tenant {inbound.identity.tenant!r} has more than its share of {room} calls"
        )
        # The less a call matters the later it comes back, when the others have been served.
        turns = 1 + Criticality.CRITICAL_PLUS - level
        wait_s = max(turns * self._latency_s, MIN_RETRY_AFTER_S)
        return LoadShedError(
            f"{inbound.hop} has enough to do: {why}; come back later",
            cause=rule,
            retry_after_s=min(wait_s, MAX_RETRY_AFTER_S),
        )

    def _ran_out_of_time(self, inbound: Inbound, error: BaseException, now: float) -> bool:
        """Say whether the time limit ended a call while this hop itself was at work."""
        if isinstance(error, SelfTimeoutError):
            return True
        counts_wait = self._config.limit_counts_wait
        if isinstance(error, asyncio.CancelledError | GeneratorExit):
            # A deadline and a caller who goes away look alike: the deadline decides.
            return inbound.is_over(now) and (counts_wait or not inbound.cut_wait)
        return (
            counts_wait
            and isinstance(error, DependencyFailedError)
            and error.origin is not None
            and error.origin.reason == NO_ANSWER
        )
