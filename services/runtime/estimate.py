"""Estimates what a call takes from here on: own work, and the dependencies that it calls.

For each method that this process serves:

    path = own work + overlap · Σ over dependencies (calls for one served call · path there)

*Own work* is the median of what calls took without their waits. *Path there* is what the dependency
tells of itself in its load reports; the median seen here while it tells nothing. *Overlap* is the
part of all waits that was not spent in another wait as well, 1 when calls go one after the other.

The estimate of a stream is the time to its first event, here and in every dependency: that is what
a caller's wait is limited by, and what comes later fits itself to the time that is left. A refusal
over the whole length of a stream would refuse what a partial answer could have served.

Everything ages: without traffic an estimate is unknown after half a minute at most, and what is
unknown refuses nobody. A served call that ran out of time counts with the work that it had done.
What callers are told of answers, and what is taken from others, counts answers alone: a timeout
that made them look slow would excuse the next timeout.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from services.runtime.aging import WINDOW_S, AgingLengths
from services.runtime.call import Call, Inbound
from services.runtime.clock import Clock
from services.runtime.guarding import Guard
from services.runtime.keyed import Keyed
from services.runtime.loads import Loads

REFRESH_INTERVAL_S = 0.1
"""How long an estimate holds before it is computed anew."""
MEMORY = 0.98
"""What one more served call leaves of what the calls before it say: some fifty calls count."""
MAX_NOTES = 32
"""For how many tools or agents lengths are kept apart."""
MAX_METHODS = 16
EAGER_COUNT = 50
"""So many calls of a method are learned from as they come."""
LESSON_INTERVAL_S = 0.05
"""How long the next one is then waited for: fifty lengths are as true as thousands, and a busy hop
learns from one of some twenty-five calls."""


@dataclass(slots=True)
class _Method:
    """Is what one served method has taught."""

    work: AgingLengths = field(default_factory=AgingLengths)
    served: float = 0.0
    """Calls that were served; as all sums here, the old ones count less."""
    waited_s: float = 0.0
    """Time that they spent waiting; waits at the same time count once."""
    called_s: float = 0.0
    """The lengths of the calls that they made."""
    calls: dict[str, float] = field(default_factory=dict)
    """Calls that they made, by dependency."""
    lessons: int = 0
    """Calls that were learned from since there was a pause."""
    next_lesson_at: float = 0.0
    path_s: float | None = None
    fresh_until: float = 0.0


class PathEstimator:
    """Learns from the calls that are served and made; every step takes the same time."""

    def __init__(self, clock: Clock, loads: Loads) -> None:
        """Take the clock, and what the dependencies tell."""
        self._clock = clock
        self._loads = loads
        self._methods = Keyed(lambda method: _Method(), max_keys=MAX_METHODS)
        self._answers = AgingLengths()
        self._waits = AgingLengths()
        self._notes = Keyed(lambda note: AgingLengths(), max_keys=MAX_NOTES)
        self._callees = Keyed(lambda key: AgingLengths())
        self._dependencies = Keyed(lambda key: AgingLengths())
        self._contents = Keyed(lambda key: AgingLengths())
        self.served = ServedPaths(self, self._methods, clock)
        """The guard of the calls that are served; innermost, so that refused ones do not count."""
        self.made = MadePaths(self, clock)
        """The guard of attempts that are made; innermost, so that a wait for a permit is not the
        dependency's."""

    def estimate_s(self, inbound: Inbound) -> float | None:
        """Return what a call takes from its arrival to its answer; None when it is not known."""
        method = self._methods.find(inbound.method)
        if method is None:
            return None
        now = self._clock.now()
        return method.path_s if now < method.fresh_until else self._path_s(inbound.method, now)

    def path_s(self) -> float | None:
        """Return what the calls of now take from here on: the mean over methods, by their use."""
        now = self._clock.now()
        total_s, count = 0.0, 0
        for name, method in self._methods.items():
            path_s = self._path_s(name, now)
            if path_s is not None:
                weight = method.work.count(now)
                total_s += weight * path_s
                count += weight
        return total_s / count if count else None

    def path_s_or(self, otherwise: Callable[[], float]) -> float:
        """Return the same, or what another estimate says while it is not known."""
        path_s = self.path_s()
        return otherwise() if path_s is None else path_s

    def answer_s(self, ratio: float) -> float | None:
        """Return what this part of the callers waited for an answer at most; None is unknown."""
        return self._answers.percentile(self._clock.now(), ratio)

    def wait_s(self) -> float | None:
        """Return the median of the time that calls spent waiting for others; None is unknown."""
        return self._waits.percentile(self._clock.now(), 0.5)

    def note_p90_s(self) -> dict[str, float]:
        """Return what nine of ten callers waited, for each tool or agent that is known."""
        now = self._clock.now()
        told = ((note, known.percentile(now, 0.9)) for note, known in self._notes.items())
        return {note: p90_s for note, p90_s in told if p90_s is not None}

    def seen_s(self) -> dict[str, float]:
        """Return the median of what answers took here, for each dependency as a whole.

        Of a stream it is the first content: a heartbeat comes soon however slow a model is.
        """
        now = self._clock.now()
        seen: dict[str, float] = {}
        for lengths in (self._dependencies, self._contents):
            for key, known in lengths.items():
                p50_s = known.percentile(now, 0.5)
                if p50_s is not None:
                    seen[key] = p50_s
        return seen

    def advertised_p90_s(self, call: Call) -> float:
        """Return what nine of ten answers to such a call take; 0 is unknown.

        What the callee says of the very tool or agent comes first, then what was seen here, then
        what it says of all its calls together.
        """
        report = self._loads.fresh(call.dependency)
        if report is not None and call.note in report.note_p90_s:
            return report.note_p90_s[call.note]
        seen = self._callees.find(call.callee.key)
        seen_s = None if seen is None else seen.percentile(self._clock.now(), 0.9)
        if seen_s is not None:
            return seen_s
        # Of a hop with many tools the mixture says nothing about one of them.
        mixed = "/" in call.callee.key
        return 0.0 if report is None or report.p90_s is None or mixed else report.p90_s

    def learn_served(self, inbound: Inbound, now: float, error: BaseException | None) -> None:
        """Take a call that has ended; a stream that goes well ends here with its first event."""
        method = self._methods.of(inbound.method)
        method.served = MEMORY * method.served + 1
        method.waited_s *= MEMORY
        method.called_s *= MEMORY
        for dependency in method.calls:
            method.calls[dependency] *= MEMORY
        if error is not None and not inbound.is_over(now):
            # It did not come to its end, so that it says little about those that do.
            return
        wait_s = inbound.wait_s + (now - inbound.waiting_since if inbound.waiting else 0.0)
        elapsed_s = now - inbound.arrived_at
        method.work.add(now, max(0.0, elapsed_s - wait_s))
        method.waited_s += wait_s
        if error is None:
            self._answers.add(now, elapsed_s)
            self._waits.add(now, wait_s)
            if inbound.note:
                self._notes.of(inbound.note).add(now, elapsed_s)

    def learn_content(self, call: Call, now: float) -> None:
        """Take a stream whose first content is there."""
        self._contents.of(call.dependency).add(now, now - call.sent_at)

    def learn_made(self, call: Call, error: BaseException | None) -> None:
        """Take a call that was made: it has ended, or begun to answer."""
        now = self._clock.now()
        if error is None:
            # Of many answers few are taken: who takes none now is told so without another call.
            lengths = self._callees.find(call.callee.key)
            if lengths is None or now >= lengths.next_at:
                self._callees.of(call.callee.key).add(now, now - call.sent_at)
            lengths = self._dependencies.find(call.dependency)
            if lengths is None or now >= lengths.next_at:
                self._dependencies.of(call.dependency).add(now, now - call.sent_at)
        inbound = call.inbound
        if inbound.teaches and not inbound.answered_at:
            method = self._methods.of(inbound.method)
            method.called_s += now - call.sent_at
            method.calls[call.dependency] = method.calls.get(call.dependency, 0.0) + 1

    def _path_s(self, name: str, now: float) -> float | None:
        method = self._methods.find(name)
        if method is None:
            return None
        if now >= method.fresh_until:
            method.path_s = self._computed_s(method, now)
            method.fresh_until = now + REFRESH_INTERVAL_S
        return method.path_s

    def _computed_s(self, method: _Method, now: float) -> float | None:
        work_s = method.work.percentile(now, 0.5)
        if work_s is None:
            return None
        below_s = sum(
            count / method.served * self._dependency_s(dependency, now)
            for dependency, count in method.calls.items()
        )
        overlap = method.waited_s / method.called_s if method.called_s > 0 else 1.0
        return work_s + min(1.0, overlap) * below_s

    def _dependency_s(self, dependency: str, now: float) -> float:
        report = self._loads.fresh(dependency)
        if report is not None and report.path_s is not None:
            return report.path_s
        seen = self._dependencies.find(dependency)
        seen_s = None if seen is None else seen.percentile(now, 0.5)
        # What is not known refuses nobody.
        return seen_s or 0.0


class ServedPaths(Guard[Inbound]):
    """Lets the estimator learn from the calls that are served."""

    def __init__(self, estimator: PathEstimator, methods: Keyed[_Method], clock: Clock) -> None:
        """Take who learns, and what is known of each method."""
        self._estimator = estimator
        self._methods = methods
        self._clock = clock

    def before(self, inbound: Inbound) -> None:
        """Choose whether to learn from a call: from a busy method's not from all."""
        # A hop serves a few methods, and keeps them all.
        name, now = inbound.method, inbound.arrived_at
        method = self._methods.find(name) or self._methods.of(name)
        if now < method.next_lesson_at:
            inbound.teaches = False
            return
        if now - method.next_lesson_at > WINDOW_S:
            method.lessons = 0
        method.lessons += 1
        late = method.lessons > EAGER_COUNT
        method.next_lesson_at = now + LESSON_INTERVAL_S if late else now
        inbound.teaches = True

    def first_event(self, inbound: Inbound) -> None:
        """Note that a stream gives its first event now."""
        inbound.answered_at = self._clock.now()
        if inbound.teaches:
            self._estimator.learn_served(inbound, inbound.answered_at, None)

    def after(self, inbound: Inbound, error: BaseException | None) -> None:
        """Learn from a call that has ended, unless its first event was its answer."""
        if inbound.teaches and not inbound.answered_at:
            self._estimator.learn_served(inbound, self._clock.now(), error)


class MadePaths(Guard[Call]):
    """Lets the estimator learn from the calls that are made, and tells what was to be expected."""

    def __init__(self, estimator: PathEstimator, clock: Clock) -> None:
        """Take who learns."""
        self._estimator = estimator
        self._clock = clock

    def first_event(self, call: Call) -> None:
        """Note that the stream of a call gives its first event now."""
        call.answered = True
        self._estimator.learn_made(call, None)

    def first_content(self, call: Call) -> None:
        """Note that the stream of a call gives its first content now."""
        self._estimator.learn_content(call, self._clock.now())

    def after(self, call: Call, error: BaseException | None) -> None:
        """Learn from a call that has ended, unless its first event was its answer."""
        if error is not None:
            # Only who judges a failure asks what nine of ten answers take.
            call.advertised_p90_s = self._estimator.advertised_p90_s(call)
        if not call.answered:
            self._estimator.learn_made(call, error)
