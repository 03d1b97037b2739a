"""Holds the state of one circuit with its settings, and tells of its changes.

aiobreaker is the holder and the bus behind it, and nothing more: its own half-open lets every
caller through, it counts consecutive failures only, results of an earlier period move its state,
and it reads the wall clock. Who decides is services/runtime/policies/breaker.py.
"""

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import Field, PositiveFloat, PositiveInt

from services.runtime.call import Call, Mode
from services.runtime.errors import CircuitOpenError
from services.runtime.keyed import MAX_KEYS
from services.runtime.ranges import check_ranges
from services.runtime.setting_text import SettingError


def _import_without_redis() -> Any:
    """Import aiobreaker, which brings redis in where that is installed: 10 MB for nothing."""
    known = sys.modules.get("redis")
    if known is None:
        # So an import is told that there is none.
        sys.modules["redis"] = None  # type: ignore[assignment]
    try:
        return importlib.import_module("aiobreaker")
    finally:
        if known is None:
            del sys.modules["redis"]


_aiobreaker = _import_without_redis()


class BreakerState(StrEnum):
    """Says what a breaker does with calls."""

    CLOSED = "closed"
    """They pass."""
    OPEN = "open"
    """They are refused."""
    HALF_OPEN = "half_open"
    """A few pass, to find out."""


CLOSED: Final = BreakerState.CLOSED
HALF_OPEN: Final = BreakerState.HALF_OPEN
"""By names of their own, as the outcomes are."""


class Reason(StrEnum):
    """Says why a breaker has changed its state."""

    NEW = "new"
    """It never has."""
    FAILURE_RATIO = "failure_ratio"
    MEAN_LATENCY = "mean_latency"
    SLOW_CALLS = "slow_calls"
    FEW_CALLS = "few_calls"
    """Most of the last few failed, and something stands in for the callee."""
    PROBE_FAILED = "probe_failed"
    PROBE_SLOW = "probe_slow"
    PROBE_SUCCEEDED = "probe_succeeded"
    PROBES_STUCK = "probes_stuck"
    """The probes of an earlier time have not ended yet, so that none could be sent."""
    REFUSES_ALL = "refuses_all"
    """The callee has said that it will refuse every call until somebody corrects something."""
    OPEN_OVER = "open_over"
    HALF_OPEN_OVER = "half_open_over"
    """Nothing was found out in time."""
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerConfig:
    """Says when a breaker opens and how it closes again."""

    mode: Mode = Mode.ENFORCE
    """Whether it refuses, because a sick callee costs everybody's time; `observe` opens, probes,
    closes and tells so as if, and lets every call pass; `off` does not even look."""
    window_s: Annotated[int, Field(ge=1, le=300)] = 10
    """How far back calls count, in whole seconds, 1–300; 10 s, so that a sick tool is cut off in
    ten."""
    min_calls: PositiveInt = 10
    """How many calls the window must hold before its ratio or its mean says anything."""
    max_failure_ratio: Annotated[float, Field(ge=0, lt=1)] = 0.2
    """More failures than this part of the calls open it, 0–1; a fifth is no bad luck any more."""
    slow_count: PositiveInt = 3
    """So many slow calls among the last `slow_of` open it, however few there are; where something
    stands in for the callee, calls that failed count as well."""
    slow_of: PositiveInt = 5
    """How many of the last calls are looked at for slowness."""
    slow_within_s: PositiveFloat = 60.0
    """Slow calls older than this are forgotten, seconds. Longer than the window, because three
    slow calls of a model, one after the other, take longer than that."""
    open_duration_s: PositiveFloat = 30.0
    """How long it refuses before it probes, seconds; a process restarts in that time."""
    max_half_open_s: PositiveFloat = 30.0
    """It closes when it has probed so long and nothing speaks against it, seconds."""
    max_probes: PositiveInt = 3
    """How many probes are under way at once; enough to find out, few enough to do no harm."""
    max_keys: PositiveInt = MAX_KEYS
    """For how many callees there are breakers."""

    def __post_init__(self) -> None:
        """Refuse what cannot work.

        Raises:
            SettingError: a number is outside of its range.
        """
        check_ranges(self)
        if self.slow_count > self.slow_of:
            advice = f"write a whole number up to slow_of = {self.slow_of}, or raise that"
            raise SettingError("slow_count", self.slow_count, advice)


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerSnapshot:
    """Describes one breaker at one instant."""

    key: str
    """The callee."""
    state: BreakerState
    reason: Reason
    """Why it is in this state."""
    forced: bool
    """True while an operator holds it there."""
    retry_after_s: float | None
    """When it will probe; None when it is not open, or open until an operator releases it."""
    call_count: int
    """Calls that ended in the window."""
    failure_ratio: float
    """The part of them that failed."""
    mean_latency_s: float
    """Their mean length; calls that are overdue count with their age."""
    slow_count: int
    """How many of the last few were slow."""
    overdue: int
    """Calls under way that are slow already."""
    probes: int
    """Probes under way."""
    trip_count: int
    """How often it has opened."""
    epoch: int
    """Counts its periods: results of an earlier one say nothing."""
    age_s: float
    """How long it has been in its state."""
    told: str = ""
    """What has to be corrected, when it is open for `refuses_all`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerChange:
    """Tells of one change of state."""

    key: str
    old: BreakerState
    new: BreakerState
    reason: Reason
    numbers: BreakerSnapshot
    """What it looked like just before."""
    told: str = ""
    """What has to be corrected, when it opens for `refuses_all`."""


class Watched:
    """Is what a breaker knows of one attempt; whoever makes it sets all of it."""

    __slots__ = ("breaker", "epoch", "length_s", "overdue", "probe", "started_at")

    breaker: Any
    """The breaker that let it start."""
    epoch: int
    """The period of the breaker in which it did."""
    started_at: float
    length_s: float | None
    """What a stream's callee needed for its first event; None before."""
    overdue: bool
    """Whether it is under way and slow already."""
    probe: bool
    """Whether it finds out whether the callee is well again."""


def pause(call: Call) -> None:
    """Have the breaker of a call look away while the call waits for something of ours."""
    attempt: Watched | None = call.watched
    if attempt is not None:
        attempt.breaker.pause(attempt)


def resume(call: Call) -> None:
    """Have the breaker of a call count its time from now on: what it waited is not its callee's."""
    attempt: Watched | None = call.watched
    if attempt is not None:
        attempt.breaker.resume(attempt)


def refusal(
    key: str, state: BreakerState, reason: Reason, told: str, after_s: float | None
) -> CircuitOpenError:
    """Return what the callers of a callee are told whom its breaker refuses.

    Args:
        key: the callee.
        state: what its breaker is in: open, or half-open with enough probes under way.
        reason: why.
        told: what has to be corrected, if that is known.
        after_s: when to call again, seconds; None while it is not known.
    """
    when = "once it is released" if after_s is None else f"in {after_s:.1f} s"
    what = "being probed" if state is HALF_OPEN else "known to be sick"
    why = f"{reason}: {told}" if told else reason
    return CircuitOpenError(
        f"{key} is {what} ({why}); call again {when}",
        cause=reason,
        details={"dependency": key, "breaker": state},
        retry_after_s=after_s,
    )


class _Bus(_aiobreaker.CircuitBreakerListener):  # type: ignore[misc, name-defined]
    """Takes what aiobreaker tells of a change."""

    def __init__(self, tell: Callable[[BreakerState, BreakerState], None]) -> None:
        self._tell = tell

    def state_change(self, breaker: Any, old: Any, new: Any) -> None:
        self._tell(_OURS[old.state], _OURS[new.state])


_THEIRS = {
    BreakerState.CLOSED: _aiobreaker.CircuitBreakerState.CLOSED,
    BreakerState.OPEN: _aiobreaker.CircuitBreakerState.OPEN,
    BreakerState.HALF_OPEN: _aiobreaker.CircuitBreakerState.HALF_OPEN,
}
_OURS = {theirs: ours for ours, theirs in _THEIRS.items()}


class Circuit:
    """Is the state of one breaker; begins closed."""

    __slots__ = ("_holder", "_storage")

    def __init__(self, key: str, tell: Callable[[BreakerState, BreakerState], None]) -> None:
        """Take its name, and who is told of each move: the old state and the new one."""
        self._storage = _aiobreaker.storage.memory.CircuitMemoryStorage(
            _aiobreaker.CircuitBreakerState.CLOSED
        )
        self._holder = _aiobreaker.CircuitBreaker(
            state_storage=self._storage, listeners=[_Bus(tell)], name=key
        )

    def move(self, state: BreakerState) -> None:
        """Put it into a state, the present one included."""
        # First the storage: a listener that looks must see the new state. The methods that do
        # both do it the other way round, and read the wall clock.
        self._storage.state = _THEIRS[state]
        self._holder.state = _THEIRS[state]

    @property
    def state(self) -> BreakerState:
        """Return the present state."""
        return _OURS[self._storage.state]
