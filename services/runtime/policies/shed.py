"""Is the fast-fail switch: refuses at the door at once, by an operator's order or by its own rule.

An order refuses everything up to a level of criticality until an instant, and is over by itself. It
is written nowhere: a process that starts anew knows nothing of it.

The own rule looks at the calls that have ended lately. When so many of them ended by overload or by
the deadline for so long, it refuses the lowest level for a while, then one more at a time as long
as that was not enough; CRITICAL_PLUS never. It goes back the same way, one level at a time, and
only when far fewer calls end that way: between the two ratios it keeps what it has.

Put it between the deadline policy and admission: what it refuses costs nothing else, and when a
call is cut it must know whether the deadline did it.
"""

import asyncio
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt

from services.runtime.call import Criticality, Inbound, Mode
from services.runtime.clock import Clock
from services.runtime.errors import (
    BulkheadFullError,
    DependencyFailedError,
    DependencyOverloadedError,
    LoadShedError,
    SelfTimeoutError,
)
from services.runtime.guarding import Guard
from services.runtime.ranges import check_ranges
from services.runtime.setting_text import SettingError

MIN_RETRY_AFTER_S = 0.5
MAX_RETRY_AFTER_S = 60.0
_OWN_EXCESS = frozenset({"fair_share", "tenant_full"})
"""Causes of refusals that blame one tenant: they say nothing about the load of all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShedConfig:
    """Sets the own rule; an operator's order needs no settings."""

    mode: Mode = Mode.ENFORCE
    """Of the own rule only: an order is always obeyed."""
    shed_ratio: Annotated[float, Field(gt=0, le=1)] = 0.5
    """From this part of failed calls on, 0–1, something has to be refused: half fail in vain."""
    calm_ratio: NonNegativeFloat = 0.2
    """Below this part, 0–1, it is calm; between the two nothing changes: it must not flutter."""
    min_calls: PositiveInt = 20
    """With fewer calls in the window the part says nothing: it would be chance."""
    window_s: PositiveFloat = 5.0
    """How long a call is remembered that has ended, seconds; older ones tell of another load."""
    sustain_s: NonNegativeFloat = 3.0
    """How long the part is so high before the first level is refused, seconds; no hiccup lasts."""
    hold_s: PositiveFloat = 5.0
    """How long each step is kept before the next one, up or down, seconds: until it shows."""

    def __post_init__(self) -> None:
        """Refuse what cannot work.

        Raises:
            SettingError: a ratio, a count or a length is outside of its range.
        """
        check_ranges(self)
        if self.calm_ratio >= self.shed_ratio:
            advice = f"write a number below shed_ratio = {self.shed_ratio:g}"
            raise SettingError("calm_ratio", self.calm_ratio, advice)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Is what an operator has ordered."""

    reason: str
    """Why, for those who are refused and for the log."""
    until: float
    """The instant at which it is over."""
    up_to: Criticality = Criticality.CRITICAL_PLUS
    """The highest level that is refused; all of them unless told otherwise."""
    operator: str = ""
    """Who has ordered it, as they say themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShedChange:
    """Announces that the switch has moved."""

    by: str
    """`operator` or `overload`."""
    up_to: Criticality | None
    """The highest level that is refused from now on; None refuses nobody."""
    reason: str
    until: float | None
    """When the next change may come, an instant; None when nothing is refused."""
    enforced: bool
    """False when the rule only observes."""
    operator: str = ""
    """Who has ordered it, as they say themselves; empty when nobody has."""
    lasts_s: float | None = None
    """How long from now until the instant, seconds; None without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShedSnapshot:
    """Describes the switch; counts are since the start."""

    mode: Mode
    """How far the own rule goes."""
    order: Order | None
    overload_up_to: Criticality | None
    """The highest level that the own rule refuses, or would."""
    failed_ratio: float
    """The part of the calls in the window that ended by overload or by the deadline."""
    call_count: int
    """Calls in the window."""
    refused: Mapping[str, int]
    """Refusals by who wanted them and level: `operator/CRITICAL`."""
    would_refuse: Mapping[str, int]
    """The same, of the own rule while it observes."""

    @property
    def up_to(self) -> Criticality | None:
        """Return the highest level that is refused, whoever wants it; None refuses nobody."""
        levels = [self.order.up_to] if self.order is not None else []
        if self.overload_up_to is not None and self.mode is Mode.ENFORCE:
            levels.append(self.overload_up_to)
        return max(levels, default=None)


class _Recent:
    """Counts calls in ten buckets of time, with running totals."""

    __slots__ = ("_buckets", "_latest", "_width_s", "calls", "failed", "stands_until")

    def __init__(self, window_s: float) -> None:
        self._width_s = window_s / 10
        self._buckets = [(0, 0)] * 10
        self._latest = -math.inf
        self.calls = self.failed = 0
        self.stands_until = -math.inf
        """When the latest bucket is over; before, nothing is forgotten."""

    def resize(self, window_s: float, now: float) -> None:
        """Look so far back from now on; what is known of that time stays known."""
        old, width_s, latest = self._buckets, self._width_s, self._latest
        self._width_s = window_s / 10
        self._buckets = [(0, 0)] * 10
        self._latest = self.stands_until = -math.inf
        self.calls = self.failed = 0
        if math.isinf(latest):
            return
        for number in range(int(latest) - 9, int(latest) + 1):
            calls, failed = old[number % 10]
            self.add(min((number + 0.5) * width_s, now), failed, calls)

    def move_to(self, now: float) -> None:
        """Forget what is too old."""
        number = math.floor(now / self._width_s)
        self.stands_until = (number + 1) * self._width_s
        gone = int(min(10, number - self._latest))
        for step in range(gone):
            slot = (number - step) % 10
            calls, failed = self._buckets[slot]
            self.calls -= calls
            self.failed -= failed
            self._buckets[slot] = (0, 0)
        self._latest = number

    def add(self, now: float, failed: int, calls: int = 1) -> None:
        """Count a call that has ended, or several, of which so many failed."""
        if now >= self.stands_until:
            self.move_to(now)
        slot = int(self._latest) % 10
        known, failures = self._buckets[slot]
        self._buckets[slot] = (known + calls, failures + failed)
        self.calls += calls
        self.failed += failed

    @property
    def ratio(self) -> float:
        """Return the part that failed."""
        return self.failed / self.calls if self.calls else 0.0


class ShedSwitch(Guard[Inbound]):
    """Is the guard at the gateway's door that an operator, or overload, can close."""

    def __init__(
        self,
        config: ShedConfig,
        clock: Clock,
        announce: Callable[[ShedChange], None] = lambda change: None,
    ) -> None:
        """Take the rule, the clock, and who is told of every change."""
        self._config = config
        self._clock = clock
        self._announce = announce
        self._order: Order | None = None
        self._recent = _Recent(config.window_s)
        self._step = 0
        """The highest level that the own rule refuses, 0 without."""
        self._over_since: float | None = None
        self._moves_at = -math.inf
        """Before this instant the own rule does not move again."""
        self._due = -math.inf
        """Before this instant a look changes nothing; whatever makes that untrue sets it back."""
        self._refused: dict[str, int] = {}
        self._would_refuse: dict[str, int] = {}

    def order(
        self,
        reason: str,
        for_s: float,
        up_to: Criticality = Criticality.CRITICAL_PLUS,
        *,
        operator: str = "",
    ) -> Order:
        """Refuse everything up to a level from now on; a new order takes the old one's place.

        Args:
            reason: why, for those who are refused.
            for_s: how long, in seconds; above 0.
            up_to: the highest level that is refused.
            operator: who orders, as they say themselves.

        Raises:
            ValueError: the length is not above 0.
        """
        if not for_s > 0 or math.isinf(for_s):
            raise ValueError("an order to shed lasts longer than 0 s and ends by itself")
        until = self._clock.now() + for_s
        self._order = Order(reason=reason, until=until, up_to=up_to, operator=operator)
        self._due = -math.inf
        self._tell("operator", up_to, reason, until, enforced=True, operator=operator)
        return self._order

    def withdraw(self, *, operator: str = "") -> Order | None:
        """End the order before its time and return it; without one nothing happens."""
        self.tick()
        order, self._order = self._order, None
        if order is not None:
            self._tell("operator", None, "withdrawn", None, enforced=True, operator=operator)
        return order

    def tick(self) -> None:
        """Let time end what is over; calls do the same when they come."""
        now = self._clock.now()
        if self._order is not None and now >= self._order.until:
            self._order = None
            self._tell("operator", None, "over", None, enforced=True)
        self._due = math.inf if self._order is None else self._order.until
        if self._config.mode is not Mode.OFF:
            self._recent.move_to(now)
            self._judge(now)
            calm = self._over_since is None and not self._step
            self._due = min(self._due, self._recent.stands_until) if calm else -math.inf

    def reconfigure(self, config: ShedConfig) -> None:
        """Change the own rule; an order, what was counted and what is refused stay.

        What is refused is let in again as the rule finds it calm, or at once without the rule.
        """
        old, self._config = self._config, config
        self._due = -math.inf
        now = self._clock.now()
        if config.window_s != old.window_s:
            self._recent.resize(config.window_s, now)
        if self._step and config.mode is not old.mode:
            # Said again, because whoever is told knows it by the old mode.
            self._move(0 if config.mode is Mode.OFF else self._step, now)

    def snapshot(self) -> ShedSnapshot:
        """Return the state now."""
        self.tick()
        return ShedSnapshot(
            mode=self._config.mode,
            order=self._order,
            overload_up_to=Criticality(self._step) if self._step else None,
            failed_ratio=self._recent.ratio,
            call_count=self._recent.calls,
            refused=dict(self._refused),
            would_refuse=dict(self._would_refuse),
        )

    def before(self, inbound: Inbound) -> None:
        """Refuse a call that the switch keeps out."""
        if self._clock.now() >= self._due:
            self.tick()
        level = inbound.identity.criticality
        order = self._order
        if order is not None and level <= order.up_to:
            self._count(self._refused, "operator", level)
            raise self._refusal(
                inbound,
                f"an operator has closed the door for {level.name}: {order.reason}",
                order.until - self._clock.now(),
                cause="operator",
            )
        if level > self._step:
            return
        if self._config.mode is not Mode.ENFORCE:
            self._count(self._would_refuse, "overload", level)
            return
        self._count(self._refused, "overload", level)
        # The less a call matters the longer its level stays refused.
        wait_s = (1 + self._step - level) * self._config.hold_s
        raise self._refusal(
            inbound, f"it is overloaded and refuses {level.name}", wait_s, cause="overload"
        )

    def after(self, inbound: Inbound, error: BaseException | None) -> None:
        """Count how a call has ended."""
        if self._config.mode is Mode.OFF:
            return
        now = self._clock.now()
        failed = False if error is None else self._tells_overload(inbound, error, now)
        if failed is not None:
            self._recent.add(now, int(failed))
            if self._recent.failed / self._recent.calls >= self._config.shed_ratio:
                self._due = -math.inf

    def _judge(self, now: float) -> None:
        """Move the own rule, when it is time and there is a reason."""
        config, recent = self._config, self._recent
        over = recent.calls >= config.min_calls and recent.ratio >= config.shed_ratio
        if not over:
            self._over_since = None
        elif self._over_since is None:
            self._over_since = now
        if now < self._moves_at:
            return
        if over and self._over_since is not None and now - self._over_since >= config.sustain_s:
            if self._step < Criticality.CRITICAL:
                self._move(self._step + 1, now)
        elif self._step and (recent.calls < config.min_calls or recent.ratio < config.calm_ratio):
            self._move(self._step - 1, now)

    def _move(self, step: int, now: float) -> None:
        config, recent = self._config, self._recent
        self._step = step
        self._moves_at = now + config.hold_s
        self._tell(
            "overload",
            Criticality(step) if step else None,
            f"{recent.failed} of {recent.calls} calls ended by overload or deadline",
            self._moves_at if step else None,
            enforced=config.mode is Mode.ENFORCE,
        )

    def _tell(
        self,
        by: str,
        up_to: Criticality | None,
        reason: str,
        until: float | None,
        *,
        enforced: bool,
        operator: str = "",
    ) -> None:
        change = ShedChange(
            by=by,
            up_to=up_to,
            reason=reason,
            until=until,
            enforced=enforced,
            operator=operator,
            lasts_s=None if until is None else until - self._clock.now(),
        )
        self._announce(change)

    @staticmethod
    def _count(counts: dict[str, int], by: str, level: Criticality) -> None:
        name = f"{by}/{level.name}"
        counts[name] = counts.get(name, 0) + 1

    @staticmethod
    def _refusal(inbound: Inbound, why: str, wait_s: float, *, cause: str) -> LoadShedError:
        return LoadShedError(
            f"{inbound.hop} refuses at the door: {why}; come back later",
            cause=cause,
            retry_after_s=min(max(wait_s, MIN_RETRY_AFTER_S), MAX_RETRY_AFTER_S),
        )

    @staticmethod
    def _tells_overload(inbound: Inbound, error: BaseException, now: float) -> bool | None:
        """Return whether a call ended by overload or deadline; None when it tells nothing."""
        if isinstance(error, asyncio.CancelledError | GeneratorExit):
            # A deadline and a client who goes away look alike: the deadline decides.
            return True if inbound.is_over(now) else None
        if isinstance(error, LoadShedError | BulkheadFullError | DependencyOverloadedError):
            return None if error.cause in _OWN_EXCESS else True
        if isinstance(error, DependencyFailedError):
            origin = error.origin
            return origin is not None and origin.code == "DEADLINE_EXCEEDED"
        return isinstance(error, SelfTimeoutError)
