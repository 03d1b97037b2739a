"""Moves step timeouts with what recent answers took, between declared bounds.

`timeout = clamp(p99 + max(2 · (p99 − p50), p99 / 2), min_timeout_s, step_timeout_s)` over the last
200 answers. It has the shape of TCP's retransmission timeout (RFC 6298: a centre and a multiple of
the spread), with percentiles in place of means, because latencies have tails: a calm callee has its
p99 near its p50 and gets a tight timeout, a jittery one a loose one. An answer that was cut off
counts as twice what it was given, as RFC 6298 doubles after a timeout: counting only what came in
time would make each timeout shorter than the last. That is for the timeout alone: whoever asks what
answers took is told what was measured.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import attrgetter

from pydantic import PositiveFloat, PositiveInt

from services.runtime.call import Call, Callee, CallLimits, Outcome
from services.runtime.clock import Clock
from services.runtime.errors import DependencyError
from services.runtime.guarding import Guard
from services.runtime.keyed import MAX_KEYS, Keyed
from services.runtime.ranges import check_ranges
from services.runtime.recent import RecentLengths
from services.runtime.topology import DEFAULT_PORTS, hops_behind
from services.runtime.verdict import GRID_RATIO, OUT_OF_TIME, STEP_TIMEOUT, verdict

SPREADS = 2.0
"""How many times the distance from median to p99 is added to the p99."""
MIN_SPREAD_RATIO = 0.5
"""The part of the p99 that is added at least: a callee that takes the same every time would be cut
off by the step that gRPC's grid takes away, and one that slows down a little by its own calm."""
CUT_OFF_FACTOR = 2.0
"""How many times what it was given an answer that was cut off counts for the timeout."""
MIN_SAMPLES = 100
"""With fewer answers a p99 is a guess; the declared timeout holds."""
REFRESH_EVERY = 10
"""After so many answers the timeout is computed anew."""
LESSON_INTERVAL_S = 0.05
"""How long after an answer the next one is looked at, once enough are known: the last two hundred
of a busy callee then tell of ten seconds and not of the last one, at a fraction of the cost."""
LAST_HOP_S = 1.0
"""What must be left of a hop's timeout for the last hop behind it: a model's first word."""
HOPS_BEHIND = {name: hops_behind(name) for name in DEFAULT_PORTS}


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveConfig:
    """Says how far timeouts may move."""

    enabled: bool = True
    """Without it the declared timeouts hold."""
    min_timeout_s: PositiveFloat = 5.0
    """No step timeout of a callee that declares no minimum of its own goes below, seconds. What
    it took lately says little about a larger question. Tools declare theirs; a hop that others are
    behind keeps at least what the last of them needs."""
    min_first_content_s: PositiveFloat = 2.0
    """No first-content timeout goes below, seconds; models think before they speak."""
    max_keys: PositiveInt = MAX_KEYS
    """For how many callees lengths are kept."""

    def __post_init__(self) -> None:
        """Refuse what cannot work.

        Raises:
            SettingError: a number is outside of its range.
        """
        check_ranges(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveSnapshot:
    """Describes the timeouts of one callee."""

    key: str
    """The callee."""
    declared_s: float | None
    """After how long a call ends at the latest by declaration: by the step timeout, or by the
    callee's own where that is less; None before the first call."""
    sample_count: int
    """How many answers are looked at; those that were cut off count with what they were given."""
    p50_s: float
    """What half of them took at most."""
    p99_s: float
    """What ninety-nine of a hundred took at most."""
    wanted_s: float | None
    """The step timeout before its bounds; None while the declared one holds."""
    least_s: float | None
    """What it does not go below; None while the declared one holds."""
    frozen: bool
    """True while the breaker is not closed: a sick callee teaches nothing."""


class _Lengths:
    """Is what answers took, and the timeout that follows from it."""

    __slots__ = ("counted", "measured", "next_at", "since", "wanted_s")

    def __init__(self) -> None:
        self.measured = RecentLengths()
        self.counted = self.measured
        """The same until an answer is cut off, and most callees never have one."""
        self.since = 0
        self.wanted_s: float | None = None
        self.next_at = 0.0
        """Before this instant none is looked at."""

    def add(self, now: float, length_s: float) -> None:
        self.measured.add(length_s)
        if self.counted is not self.measured:
            self.counted.add(length_s)
        self._follow(now)

    def add_cut_off(self, now: float, length_s: float) -> None:
        if self.counted is self.measured:
            self.counted = self.measured.copy()
        self.measured.add(length_s)
        self.counted.add(CUT_OFF_FACTOR * length_s)
        self._follow(now)

    def _follow(self, now: float) -> None:
        self.since += 1
        if self.since >= REFRESH_EVERY and len(self.counted) >= MIN_SAMPLES:
            self.since = 0
            p99_s = self.counted.percentile(0.99)
            spread_s = SPREADS * (p99_s - self.counted.percentile(0.5))
            self.wanted_s = p99_s + max(spread_s, MIN_SPREAD_RATIO * p99_s)
        if self.wanted_s is not None:
            self.next_at = now + LESSON_INTERVAL_S


class _Callee:
    """Is what is known of one callee."""

    __slots__ = (
        "answers",
        "callee",
        "contents",
        "declared",
        "least_s",
        "limits",
    )

    def __init__(self) -> None:
        self.callee: Callee | None = None
        """What it declares about itself; None before the first call."""
        self.declared: CallLimits | None = None
        """The limits that are declared for calls to it."""
        self.answers = _Lengths()
        self.contents = _Lengths()
        self.least_s: float | None = None
        self.limits: CallLimits | None = None
        """The limits of its calls; None when something has changed that they follow."""

    def ends_after_s(self) -> float | None:
        """Return after how long a call ends at the latest by declaration."""
        if self.declared is None or self.callee is None:
            return None
        step_s, own_s = self.declared.step_timeout_s, self.callee.timeout_s
        return step_s if own_s is None else min(step_s, own_s)


_ANSWERS: Callable[[_Callee], _Lengths] = attrgetter("answers")
_CONTENTS: Callable[[_Callee], _Lengths] = attrgetter("contents")


class AdaptiveTimeouts(Guard[Call]):
    """Watches attempts, as a guard, and tells what later calls may take."""

    def __init__(self, config: AdaptiveConfig, clock: Clock, closed: Callable[[str], bool]) -> None:
        """Take the bounds, and what tells whether the breaker of a callee is closed."""
        self._config = config
        self._clock = clock
        self._closed = closed
        self._callees = Keyed(lambda key: _Callee(), max_keys=config.max_keys)

    def limits(self, call: Call) -> CallLimits:
        """Return the limits that a call with these declared ones has now."""
        callee, declared = call.callee, call.limits
        known = self._callees.find(callee.key) or self._callees.of(callee.key)
        limits = known.limits
        # Compared by what they are: none of these objects ever changes.
        if limits is None or known.declared is not declared or known.callee is not callee:
            known.callee, known.declared = callee, declared
            limits = known.limits = self._moved(call, known)
        return limits

    def _moved(self, call: Call, known: _Callee) -> CallLimits:
        declared = call.limits
        if known.answers.wanted_s is None and known.contents.wanted_s is None:
            return declared
        if not self._config.enabled:
            return declared
        known.least_s = self._least_s(call)
        step_s = _between(known.answers.wanted_s, known.least_s, declared.step_timeout_s)
        content_s = declared.first_content_timeout_s
        if content_s is not None:
            content_s = _between(
                known.contents.wanted_s, self._config.min_first_content_s, content_s
            )
        return replace(declared, step_timeout_s=step_s, first_content_timeout_s=content_s)

    def _least_s(self, call: Call) -> float:
        """Return what no step timeout of a callee goes below.

        Each hop gives the next one a share of what it has, so a hop with n others behind it needs
        `LAST_HOP_S / share ** n`: at 0.6, the five hops behind the gateway 7.7, 4.6, 2.8, 1.7, 1 s.
        """
        declared_s = call.callee.min_timeout_s
        if declared_s is not None:
            return declared_s
        behind = HOPS_BEHIND.get(call.dependency, 0)
        ladder_s = LAST_HOP_S / call.limits.share**behind if behind else 0.0
        return max(self._config.min_timeout_s, ladder_s)

    def reconfigure(self, config: AdaptiveConfig) -> None:
        """Change the bounds; what was measured stays."""
        self._config = config
        self._callees.resize(config.max_keys)
        for known in self._callees.values():
            known.limits = None

    def first_event(self, call: Call) -> None:
        """Note that the stream of a call has given its first event."""
        if not call.answered:
            call.answered = True
            self._learn(call)

    def first_content(self, call: Call) -> None:
        """Note that the stream of a call has given its first content."""
        self._learn(call, _CONTENTS)

    def snapshot(self) -> dict[str, AdaptiveSnapshot]:
        """Return what the timeouts of every callee follow."""
        return {
            key: AdaptiveSnapshot(
                key=key,
                declared_s=known.ends_after_s(),
                sample_count=len(known.answers.measured),
                p50_s=known.answers.measured.percentile(0.5),
                p99_s=known.answers.measured.percentile(0.99),
                wanted_s=known.answers.wanted_s,
                least_s=known.least_s,
                frozen=not self._closed(key),
            )
            for key, known in self._callees.items()
        }

    def after(self, call: Call, error: BaseException | None) -> None:
        """Learn from what an attempt took."""
        if call.answered:
            return
        if error is None:
            # As in _learn: of a busy callee almost no answer is looked at.
            known = self._callees.find(call.callee.key)
            if known is None or self._clock.now() >= known.answers.next_at:
                self._learn(call)
        elif _cut_off(error) and (
            _had_whole_step(error, call) or verdict(error, call) is Outcome.FAILURE
        ):
            self._learn(call, cut_off=True)

    def _learn(
        self,
        call: Call,
        lengths: Callable[[_Callee], _Lengths] = _ANSWERS,
        *,
        cut_off: bool = False,
    ) -> None:
        """Take a length, of a busy callee's those that come at even intervals."""
        now, key = self._clock.now(), call.callee.key
        known = self._callees.find(key)
        if known is not None and now < lengths(known).next_at:
            return
        if not self._closed(key):
            return
        known = known or self._callees.of(key)
        if cut_off:
            lengths(known).add_cut_off(now, now - call.sent_at)
        else:
            lengths(known).add(now, now - call.sent_at)
        known.limits = None


def _between(wanted_s: float | None, least_s: float, declared_s: float) -> float:
    """Return a timeout inside its bounds; the declared one is the upper, and wins."""
    if wanted_s is None:
        return declared_s
    return min(max(wanted_s, least_s), declared_s)


def _had_whole_step(error: BaseException, call: Call) -> bool:
    """Tell whether the step timeout itself ended an attempt, and not what its caller had left.

    Then it may be the timeout that is wrong, even where the callee cannot be blamed.
    """
    if isinstance(error, DependencyError) and error.cause == STEP_TIMEOUT:
        return True
    return not call.streaming and call.attempt_timeout_s >= GRID_RATIO * call.limits.step_timeout_s


def _cut_off(error: BaseException) -> bool:
    origin = error.origin if isinstance(error, DependencyError) else None
    # A callee keeps a margin, so that its own word comes before our limit as a rule.
    return origin is not None and origin.reason in OUT_OF_TIME
