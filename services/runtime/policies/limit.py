"""Finds how many calls a process can serve at once; enforcing the number is admission's business.

An algorithm is told how each call ended and gives a number. A call that ended well tells its
latency. A call that ran into its time limit tells none: that every call takes exactly the timeout
looks like perfect calm, and a limit that believed it would climb to its maximum. Such a call
counts as overload. Refusals, cancelled calls, failures elsewhere and health checks tell nothing
and must not be recorded at all.
"""

from dataclasses import dataclass, field
from typing import Annotated, Literal, Protocol

from pydantic import Field, NonNegativeFloat, PositiveInt

from services.runtime.ranges import check_ranges
from services.runtime.setting_text import SettingError


class Limit(Protocol):
    """Is an algorithm: samples in, a number out."""

    @property
    def kind(self) -> str:
        """Return the name of the algorithm."""
        ...

    @property
    def value(self) -> int:
        """Return how many calls may be in flight."""
        ...

    @property
    def learns(self) -> bool:
        """Tell whether it wants to know of calls that ended well."""
        ...

    def record(self, now: float, latency_s: float, inflight: int) -> None:
        """Take a call that ended well.

        Args:
            now: the instant of its end.
            latency_s: how long it took.
            inflight: how many calls were in flight when it began, itself included.
        """
        ...

    def record_overload(self, now: float, inflight: int) -> None:
        """Take a call that ran into its time limit or was dropped under load."""
        ...


class Fixed:
    """Is a number that somebody has chosen."""

    __slots__ = ("value",)
    learns = False

    def __init__(self, value: int) -> None:
        """Take the number.

        Raises:
            ValueError: it is below 1.
        """
        if value < 1:
            raise ValueError("a limit below 1 would serve nobody")
        self.value = value
        """The number."""

    @property
    def kind(self) -> str:
        """Return the name of the algorithm."""
        return "fixed"

    def record(self, now: float, latency_s: float, inflight: int) -> None:
        """Learn nothing."""

    def record_overload(self, now: float, inflight: int) -> None:
        """Learn nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GradientConfig:
    """Sets the search."""

    initial_limit: PositiveInt = 20
    """Where the search begins: low, because a start under load must not set a crowded norm."""
    min_limit: PositiveInt = 4
    """Never below it: somebody must be served for anything to be learned."""
    max_limit: PositiveInt = 200
    """Never above it: what memory and connections carry, whatever the latency says."""
    tolerance: Annotated[float, Field(ge=1)] = 1.5
    """How many times the normal latency still counts as calm; half as long again is no queue
    yet."""
    smoothing: Annotated[float, Field(gt=0, le=1)] = 0.2
    """How far each step goes towards what the window asks for, 0–1; a fifth, so that one odd window
    moves little."""
    growth: PositiveInt = 4
    """How many more calls a calm window asks for: room to find out whether more would fit."""
    growth_ratio: NonNegativeFloat = 0.25
    """The same as a part of the limit, whichever is more: large limits are found in time, too."""
    window_s: NonNegativeFloat = 1.0
    """How long a window is, at least, seconds; short enough to follow a rush."""
    min_samples: PositiveInt = 10
    """How many calls a window has, at least; a mean of fewer is chance."""
    floor_windows: PositiveInt = 10
    """After how many windows at `min_limit` the latency there is the new normal: with so few in
    flight for so long there is no queue to blame."""

    def __post_init__(self) -> None:
        """Refuse what cannot work.

        Raises:
            SettingError: a bound or a ratio is outside of its range.
        """
        check_ranges(self)
        if self.initial_limit > self.max_limit:
            advice = f"write a whole number up to max_limit = {self.max_limit}"
            raise SettingError("initial_limit", self.initial_limit, advice)
        if self.min_limit > self.initial_limit:
            advice = f"write a whole number up to initial_limit = {self.initial_limit}"
            raise SettingError("min_limit", self.min_limit, advice)


@dataclass(frozen=True, slots=True, kw_only=True)
class GradientSnapshot:
    """Describes the search."""

    limit: float
    gradient: float
    """Of the last window: 1 is calm, 0.5 the hardest brake."""
    normal_s: float
    """The latency that counts as normal; 0 before the first window."""
    recent_s: float
    """The mean latency of the last window that had any."""
    window_count: int
    overload_count: int


class Gradient:
    """Follows latency: `new = limit · g + growth`, `g = clamp(tolerance · normal / recent, ½, 1)`.

    Four departures from the published algorithm, each for a failure that its users reported:

    - A window with overload never grows, and brakes by the part of its calls that overload ended.
    - `growth` is added in calm windows only. Added always, it holds the limit at
      `growth / (1 − g)`: a gradient of 0.8 would let it drift up to five times `growth`.
    - The normal latency rises only in windows whose in-flight stayed under half the limit, so
      that queueing never becomes the norm. When the limit has lain at its minimum for
      `floor_windows`, there is no queueing left to blame, and what is measured there is the norm.
    - There is no growth while less than half of the limit is used: what nobody needs is not known
      to be possible.
    """

    __slots__ = (
        "_at_floor",
        "_config",
        "_ends_at",
        "_gradient",
        "_limit",
        "_normal_s",
        "_overloads",
        "_peak",
        "_recent_s",
        "_samples",
        "_total_overloads",
        "_total_s",
        "_windows",
    )
    learns = True

    def __init__(self, config: GradientConfig) -> None:
        """Take the settings."""
        self._config = config
        self._limit = float(config.initial_limit)
        self._normal_s = self._recent_s = 0.0
        self._gradient = 1.0
        self._ends_at: float | None = None
        self._samples = self._overloads = self._peak = self._at_floor = 0
        self._total_s = 0.0
        self._windows = self._total_overloads = 0

    def reconfigure(self, config: GradientConfig) -> None:
        """Change the settings; the search goes on from where it is, inside the new bounds."""
        self._config = config
        self._limit = min(max(self._limit, config.min_limit), config.max_limit)

    @property
    def kind(self) -> str:
        """Return the name of the algorithm."""
        return "gradient"

    @property
    def value(self) -> int:
        """Return how many calls may be in flight."""
        return int(self._limit)

    def record(self, now: float, latency_s: float, inflight: int) -> None:
        """Take a call that ended well."""
        self._samples += 1
        self._total_s += latency_s
        self._note(now, inflight)

    def record_overload(self, now: float, inflight: int) -> None:
        """Take a call that ran into its time limit or was dropped under load."""
        self._overloads += 1
        self._total_overloads += 1
        self._note(now, inflight)

    def snapshot(self) -> GradientSnapshot:
        """Return the state now."""
        return GradientSnapshot(
            limit=self._limit,
            gradient=self._gradient,
            normal_s=self._normal_s,
            recent_s=self._recent_s,
            window_count=self._windows,
            overload_count=self._total_overloads,
        )

    def _note(self, now: float, inflight: int) -> None:
        if inflight > self._peak:
            self._peak = inflight
        if self._ends_at is None:
            self._ends_at = now + self._config.window_s
        elif now >= self._ends_at and (self._samples + self._overloads >= self._config.min_samples):
            self._step()
            self._ends_at = None

    def _step(self) -> None:
        config = self._config
        self._windows += 1
        if self._samples:
            self._recent_s = self._total_s / self._samples
            self._learn_normal()
        self._gradient = self._measure()
        wanted = self._limit * self._gradient
        if self._gradient >= 1:
            # Below half use the limit is not what holds anybody back: it stays where it is.
            growth = max(config.growth, config.growth_ratio * self._limit)
            wanted += growth if 2 * self._peak >= self._limit else 0
        moved = self._limit + config.smoothing * (wanted - self._limit)
        self._limit = min(max(moved, config.min_limit), config.max_limit)
        self._at_floor = self._at_floor + 1 if self._limit <= config.min_limit else 0
        self._samples = self._overloads = self._peak = 0
        self._total_s = 0.0

    def _measure(self) -> float:
        gradient = 1.0
        if self._samples and self._recent_s > 0:
            gradient = min(1.0, self._config.tolerance * self._normal_s / self._recent_s)
        if self._overloads:
            gradient = min(gradient, 1 - self._overloads / (self._samples + self._overloads))
        return max(0.5, gradient)

    def _learn_normal(self) -> None:
        recent_s = self._recent_s
        calm = 2 * self._peak < self._limit and not self._overloads
        stuck = self._at_floor >= self._config.floor_windows
        if not self._normal_s or stuck:
            self._normal_s = recent_s
            self._at_floor = 0
        elif recent_s < self._normal_s or calm:
            self._normal_s += self._config.smoothing * (recent_s - self._normal_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitConfig:
    """Says how many calls one process may serve at once."""

    algorithm: Literal["fixed", "gradient"] = "fixed"
    """`fixed` holds `max_inflight`; `gradient` finds the number from latencies."""
    max_inflight: PositiveInt = 256
    """The fixed number. Half as much again as there are places to be served keeps all busy: a
    hop of two cores relays about 200 runs at once."""
    gradient: GradientConfig = field(default_factory=GradientConfig)
    """The bounds of the gradient; they are looked at when it is the algorithm."""

    def __post_init__(self) -> None:
        """Refuse what cannot work.

        Raises:
            SettingError: a number is outside of its range.
        """
        check_ranges(self)

    def limit(self) -> Limit:
        """Return the algorithm, with nothing learned yet."""
        if self.algorithm == "gradient":
            return Gradient(self.gradient)
        return Fixed(self.max_inflight)

    def limit_after(self, limit: Limit) -> Limit:
        """Return the algorithm in place of another, with what that one has learned."""
        if self.algorithm == "gradient" and isinstance(limit, Gradient):
            limit.reconfigure(self.gradient)
            return limit
        return self.limit()
