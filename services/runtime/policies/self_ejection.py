"""Takes this process out of service for a while when it fails by itself, or its loop lags.

A mesh does not see a stream that fails after its first message. So a process that fails several
streams in a row by its own fault says itself that it does not serve, and comes back after a time.
Failures of dependencies, refusals and cancelled calls count neither way; only a stream that ends
well clears the count.

Put the guard inside telemetry and outside the translation of errors, so that it sees defects as
errors of ours. It starts no task: somebody calls `tick` now and then.
"""

from collections.abc import Callable
from dataclasses import dataclass

from pydantic import PositiveFloat, PositiveInt

from services.runtime.call import Inbound, Mode
from services.runtime.clock import Clock
from services.runtime.errors import SelfError, SixhopError
from services.runtime.guarding import Guard
from services.runtime.ranges import check_ranges
from services.runtime.setting_text import SettingError


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfEjectionConfig:
    """Sets when to leave and for how long."""

    mode: Mode = Mode.ENFORCE
    """Whether to leave, or only to count how often it would have."""
    max_failures: PositiveInt = 3
    """So many streams in a row failed by own fault are no accident."""
    ejection_s: PositiveFloat = 30.0
    """How long to stay away, seconds; as long as a mesh's first ejection."""

    def __post_init__(self) -> None:
        """Refuse what cannot work.

        Raises:
            SettingError: the count is below 1, or the length not above 0.
        """
        check_ranges(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfEjectionSnapshot:
    """Describes the state; counts are since the start."""

    ejected: bool
    failure_count: int
    """Streams in a row that failed by own fault."""
    ejected_until: float | None
    """The instant of return."""
    ejection_count: int
    would_eject_count: int


class SelfEjection(Guard[Inbound]):
    """Is the guard that counts streams failed by own fault."""

    streams_only = True

    def __init__(
        self,
        config: SelfEjectionConfig,
        clock: Clock,
        announce: Callable[[bool, str], None],
    ) -> None:
        """Take the rule, the clock, and who is told: whether to serve, and why not."""
        self._config = config
        self._clock = clock
        self._announce = announce
        self._failures = 0
        self._ejected_at = 0.0
        self._until: float | None = None
        self._ejections = self._would_eject = 0

    def reconfigure(self, config: SelfEjectionConfig) -> None:
        """Change the rule; the counts stay.

        An ejection lasts as long as the new rule says: at most until now when it enforces nothing.
        """
        self._config = config
        if self._until is not None:
            length_s = config.ejection_s if config.mode is Mode.ENFORCE else 0.0
            self._until = self._ejected_at + length_s
        self.tick()

    @property
    def serving(self) -> bool:
        """Say whether this process wants calls."""
        return self._until is None

    def tick(self) -> None:
        """Come back when it is time."""
        if self._until is not None and self._clock.now() >= self._until:
            self._until = None
            self._failures = 0
            self._announce(True, "")

    def snapshot(self) -> SelfEjectionSnapshot:
        """Return the state now."""
        self.tick()
        return SelfEjectionSnapshot(
            ejected=not self.serving,
            failure_count=self._failures,
            ejected_until=self._until,
            ejection_count=self._ejections,
            would_eject_count=self._would_eject,
        )

    def after(self, inbound: Inbound, error: BaseException | None) -> None:
        """Count how a stream has ended."""
        if not inbound.streaming or self._config.mode is Mode.OFF:
            return
        self.tick()
        if error is None:
            self._failures = 0
        elif _own_fault(error):
            self._failures += 1
            if self._failures >= self._config.max_failures and self._until is None:
                self._eject(error)

    def _eject(self, error: BaseException) -> None:
        count, self._failures = self._failures, 0
        if self._config.mode is Mode.OBSERVE:
            self._would_eject += 1
            return
        self._ejections += 1
        self._ejected_at = self._clock.now()
        self._until = self._ejected_at + self._config.ejection_s
        reason = error.reason if isinstance(error, SixhopError) else type(error).__name__
        self._announce(False, f"{count} streams in a row failed by own fault, last {reason}")


def _own_fault(error: BaseException) -> bool:
    # A defect that nobody has translated yet is our fault as well; a cancel is not.
    return isinstance(error, SelfError) or (
        isinstance(error, Exception) and not isinstance(error, SixhopError)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LagConfig:
    """Sets when a lagging event loop makes a process not ready; lags in seconds."""

    max_lag_s: PositiveFloat = 0.25
    """A lag above it is bad: three times what a saturated loop shows at its worst."""
    calm_lag_s: PositiveFloat = 0.1
    """A lag below it is good; between the two nothing changes."""
    bad_samples: PositiveInt = 3
    """So many bad samples in a row end readiness: one may be a collection of garbage."""
    good_samples: PositiveInt = 5
    """So many good samples in a row bring it back."""

    def __post_init__(self) -> None:
        """Refuse what cannot work.

        Raises:
            SettingError: a lag or a count is outside of its range.
        """
        check_ranges(self)
        if self.calm_lag_s > self.max_lag_s:
            advice = f"write a number up to max_lag_s = {self.max_lag_s:g}"
            raise SettingError("calm_lag_s", self.calm_lag_s, advice)


@dataclass(frozen=True, slots=True)
class Held:
    """Says that the event loop was held up."""

    length_s: float
    """For how long at least, seconds: it may have begun half a second before a timer was due."""
    until: float
    """The instant at which it went on."""
    by: str
    """The call that was at work; empty when nobody knows."""


class LagReadiness:
    """Turns samples of the event loop's lag into ready or not ready."""

    def __init__(self, config: LagConfig) -> None:
        """Take the rule; it begins ready."""
        self.config = config
        self.ready = True
        self.last_s = 0.0
        """The last lag."""
        self.worst_s = 0.0
        """The largest lag seen."""
        self.held_count = 0
        """How often something has held the loop up for longer than it may lag."""
        self.last_held: Held | None = None
        self._streak = 0
        """Samples in a row that speak against the present state."""

    def held(self, held: Held) -> None:
        """Note that something has held the loop up."""
        self.held_count += 1
        self.last_held = held

    def sample(self, lag_s: float) -> bool:
        """Take how late a timer was, and return whether the process is ready."""
        config = self.config
        self.last_s = lag_s
        self.worst_s = max(self.worst_s, lag_s)
        against = lag_s > config.max_lag_s if self.ready else lag_s < config.calm_lag_s
        self._streak = self._streak + 1 if against else 0
        if self._streak >= (config.bad_samples if self.ready else config.good_samples):
            self.ready = not self.ready
            self._streak = 0
        return self.ready
