"""Holds the path estimate to its formula, and to never locking anybody out."""

import math
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.runtime.aging import WINDOW_S
from services.runtime.call import Call, Callee, CallLimits, Inbound, Mode
from services.runtime.clock import ManualClock
from services.runtime.errors import (
    BudgetTooSmallError,
    DependencyFailedError,
    Origin,
    SelfTimeoutError,
)
from services.runtime.estimate import LESSON_INTERVAL_S, REFRESH_INTERVAL_S, PathEstimator
from services.runtime.load_report import LoadReport, encode_load_report
from services.runtime.loads import MAX_AGE_S, Loads
from services.runtime.policies.admission import Admission, AdmissionConfig
from services.runtime.policies.limit import Fixed
from tests.requirements import requirement

DEADLINE_S = 60.0
LIMITS = CallLimits(step_timeout_s=5.0)
SILENT = DependencyFailedError(
    "tool", "silent", cause="step_timeout", origin=Origin("tool", reason="NO_ANSWER")
)


@dataclass(slots=True)
class Hop:
    """Serves and makes calls on a manual clock."""

    clock: ManualClock = field(default_factory=ManualClock)
    loads: Loads = field(init=False)
    estimator: PathEstimator = field(init=False)

    def __post_init__(self) -> None:
        self.loads = Loads(self.clock)
        self.estimator = PathEstimator(self.clock, self.loads)

    def knock(self, method: str = "RunAgent", deadline_s: float = DEADLINE_S) -> Inbound:
        """Return a call that arrives now, and is not let in yet."""
        now = self.clock.now()
        return Inbound("domain", method, True, now, now + deadline_s)

    def arrive(self, method: str = "RunAgent", deadline_s: float = DEADLINE_S) -> Inbound:
        """Return a call that arrives now and is let in."""
        inbound = self.knock(method, deadline_s)
        self.estimator.served.before(inbound)
        return inbound

    def leave(self, inbound: Inbound, error: BaseException | None = None) -> None:
        """End a call that was served."""
        self.estimator.served.after(inbound, error)

    def begin(self, inbound: Inbound, key: str = "tool", *, streaming: bool = False) -> Call:
        """Begin a call to a dependency."""
        dependency, _, note = key.partition("/")
        call = Call(dependency, "Execute", streaming, inbound, LIMITS, note=note)
        call.callee = Callee(key=key)
        call.sent_at = self.clock.now()
        inbound.begin_wait(dependency, call.sent_at)
        return call

    def end(self, call: Call, error: BaseException | None = None) -> None:
        """End a call to a dependency."""
        call.inbound.end_wait(call.dependency, self.clock.now())
        self.estimator.made.after(call, error)

    def call(self, inbound: Inbound, length_s: float, key: str = "tool") -> None:
        """Make a whole call."""
        call = self.begin(inbound, key)
        self.clock.advance(length_s)
        self.end(call)

    def serve(self, work_s: float, *waits_s: float, method: str = "RunAgent") -> None:
        """Serve a whole call, with calls to the tool hop one after the other."""
        inbound = self.arrive(method)
        self.clock.advance(work_s)
        for wait_s in waits_s:
            self.call(inbound, wait_s)
        self.leave(inbound)

    def told(self, report: LoadReport, dependency: str = "tool") -> None:
        """Let an endpoint of a dependency tell its load."""
        self.loads.endpoint(dependency, "a:1").note(encode_load_report(report))

    def expected_s(self, key: str) -> float:
        """Return what a call that fails is told of what nine of ten answers take."""
        call = self.begin(self.arrive(), key)
        self.end(call, SILENT)
        return call.advertised_p90_s

    def path_s(self) -> float:
        """Return the estimate of a run; it is known."""
        self.clock.advance(REFRESH_INTERVAL_S)
        path_s = self.estimator.estimate_s(self.arrive())
        assert path_s is not None
        return path_s


def close(number: float) -> object:
    """Return what is equal to about this."""
    return pytest.approx(number, rel=0.02)


def test_nothing_is_estimated_before_a_few_calls_were_served() -> None:
    hop = Hop()
    hop.serve(1.0)

    assert hop.estimator.estimate_s(hop.arrive()) is None
    assert hop.estimator.path_s() is None


@requirement("load:path-estimate")
def test_own_work_is_what_was_not_spent_waiting() -> None:
    hop = Hop()
    for _ in range(20):
        hop.serve(0.25, 0.5, 0.25)

    assert hop.estimator.wait_s() == close(0.75)
    assert hop.estimator.answer_s(0.5) == close(1.0)
    # Two calls, of which each took 0.25 or 0.5: the median is one of the two.
    assert hop.path_s() in (close(0.75), close(1.25))


@requirement("load:path-estimate")
def test_what_a_dependency_says_of_itself_counts_as_often_as_it_is_called() -> None:
    hop = Hop()
    for number in range(100):
        # Three calls for two that are served.
        hop.serve(0.25, *[0.1] * (1 + number % 2))
    seen_s = hop.path_s()

    hop.told(LoadReport(path_s=2.0))

    assert seen_s == close(0.25 + 1.5 * 0.1)
    assert hop.path_s() == close(0.25 + 1.5 * 2.0)


@requirement("load:path-estimate")
def test_calls_at_the_same_time_count_once() -> None:
    hop = Hop()
    for _ in range(50):
        inbound = hop.arrive()
        hop.clock.advance(0.25)
        calls = [hop.begin(inbound) for _ in range(4)]
        hop.clock.advance(0.5)
        for call in calls:
            hop.end(call)
        hop.leave(inbound)

    assert hop.path_s() == close(0.75)


def test_a_dependency_that_tells_no_more_is_judged_by_what_was_seen() -> None:
    hop = Hop()
    hop.told(LoadReport(path_s=2.0))
    hop.clock.advance(MAX_AGE_S)
    for _ in range(20):
        hop.serve(0.25, 0.1)

    assert hop.path_s() == close(0.35)


@requirement("load:path-estimate")
def test_a_stream_takes_the_time_to_its_first_event() -> None:
    hop = Hop()
    for _ in range(20):
        inbound = hop.arrive()
        hop.clock.advance(0.25)
        model = hop.begin(inbound, "model", streaming=True)
        hop.clock.advance(0.5)
        hop.estimator.made.first_event(model)
        model.inbound.end_wait("model", hop.clock.now())
        hop.estimator.served.first_event(inbound)
        # What comes later, calls included, is no part of the answer's beginning.
        hop.clock.advance(1)
        hop.call(inbound, 1)
        hop.estimator.made.after(model, None)
        hop.leave(inbound)

    assert hop.path_s() == close(0.75)
    assert hop.estimator.answer_s(0.9) == close(0.75)


def test_a_stream_that_begins_while_something_is_waited_for_has_not_worked_meanwhile() -> None:
    hop = Hop()
    for _ in range(20):
        inbound = hop.arrive()
        hop.clock.advance(0.25)
        hop.begin(inbound)
        hop.clock.advance(0.5)
        hop.estimator.served.first_event(inbound)

    assert hop.path_s() == close(0.25)


def test_methods_are_kept_apart_and_told_as_their_mean() -> None:
    hop = Hop()
    for _ in range(30):
        hop.serve(1.0)
    for _ in range(10):
        hop.serve(0.1, method="ListAgents")

    assert hop.estimator.estimate_s(hop.arrive("ListAgents")) == close(0.1)
    assert hop.estimator.estimate_s(hop.arrive("Unknown")) is None
    told_s = hop.estimator.path_s()
    assert told_s is not None
    assert 0.1 < told_s < 1.0


@requirement("load:estimates-heal")
def test_a_call_that_ran_out_of_time_counts_with_its_work_and_others_do_not() -> None:
    hop = Hop()
    for _ in range(20):
        cut = hop.arrive(deadline_s=2.0)
        hop.clock.advance(2.0)
        hop.leave(cut, SelfTimeoutError("slow"))
        refused = hop.arrive()
        hop.leave(refused, BudgetTooSmallError("no"))

    assert hop.path_s() == close(2.0)
    # What callers wait for an answer is told by answers.
    assert hop.estimator.answer_s(0.9) is None


@requirement("load:estimates-heal")
def test_without_traffic_an_estimate_is_forgotten() -> None:
    hop = Hop()
    for _ in range(20):
        hop.serve(0.01)

    hop.clock.advance(2 * WINDOW_S)

    assert hop.estimator.estimate_s(hop.arrive()) is None


@requirement("load:estimates-heal")
def test_admission_by_the_estimate_lets_in_again_whoever_fits_by_now() -> None:
    """It was slow, everybody is refused by it, and it is fast again: few calls find that out."""
    hop = Hop()
    for _ in range(200):
        hop.serve(0.5)
    gate = Admission(
        AdmissionConfig(estimate=Mode.ENFORCE), Fixed(100), hop.clock, hop.estimator.estimate_s
    )
    refused: list[bool] = []
    for _ in range(1000):
        inbound = hop.knock(deadline_s=0.3)
        hop.clock.advance(0.02)
        try:
            gate.before(inbound)
        except BudgetTooSmallError:
            refused.append(True)
            continue
        refused.append(False)
        hop.estimator.served.before(inbound)
        hop.clock.advance(0.01)
        hop.leave(inbound)
        gate.after(inbound, None)

    assert sum(refused[:100]) <= 81
    assert any(refused)
    assert not any(refused[-300:])


def test_what_a_callee_says_of_one_tool_is_told_first() -> None:
    hop = Hop()
    hop.told(LoadReport(p90_s=9.0, note_p90_s={"sql": 0.5}))
    for _ in range(20):
        hop.call(hop.arrive(), 0.25, "tool/pdf")

    told = [hop.expected_s(key) for key in ("tool/sql", "tool/pdf")]

    assert told == [0.5, close(0.25)]


def test_a_mixture_of_tools_says_nothing_of_one_that_nobody_knows() -> None:
    hop = Hop()
    hop.told(LoadReport(p90_s=9.0))
    hop.told(LoadReport(p90_s=2.5), "model")

    told = [hop.expected_s(key) for key in ("tool/sql", "model")]

    assert told == [0.0, 2.5]


def test_silence_does_not_make_a_callee_look_slow() -> None:
    hop = Hop()
    for _ in range(20):
        hop.call(hop.arrive(), 0.1)
        call = hop.begin(hop.arrive())
        hop.clock.advance(1.0)
        hop.end(call, SILENT)

    assert hop.expected_s("tool") == close(0.1)


def test_tools_are_told_apart_by_their_note() -> None:
    hop = Hop()
    for _ in range(20):
        for note, work_s in (("sql", 0.125), ("pdf", 1.0)):
            inbound = hop.arrive("ExecuteTool")
            inbound.note = note
            hop.clock.advance(work_s)
            hop.leave(inbound)

    assert hop.estimator.note_p90_s() == {"sql": close(0.125), "pdf": close(1.0)}


@given(
    served=st.lists(
        st.tuples(st.floats(0, 2), st.lists(st.floats(0, 2), max_size=3), st.booleans()),
        max_size=60,
    )
)
def test_an_estimate_lies_between_nothing_and_the_longest_of_everything(
    served: list[tuple[float, list[float], bool]],
) -> None:
    hop, longest_s, calls = Hop(), 0.0, 1
    for work_s, waits_s, fails in served:
        inbound = hop.arrive()
        hop.clock.advance(work_s)
        for wait_s in waits_s:
            hop.call(inbound, wait_s)
        hop.leave(inbound, SILENT if fails else None)
        longest_s = max(longest_s, work_s, *waits_s, 0.0)
        calls = max(calls, len(waits_s))

    path_s = hop.estimator.estimate_s(hop.arrive())

    assert path_s is None or (
        math.isfinite(path_s) and 0 <= path_s <= longest_s * (1 + calls) + 1e-9
    )


@requirement("load:path-estimate")
def test_a_busy_method_is_learned_from_by_a_part_of_its_calls() -> None:
    hop = Hop()
    for _ in range(2000):
        hop.serve(0.001, 0.001)

    arrived = [hop.arrive() for _ in range(3)]
    hop.clock.advance(LESSON_INTERVAL_S)
    later = hop.arrive()

    assert sum(inbound.teaches for inbound in arrived) <= 1
    assert later.teaches
    assert hop.path_s() == close(0.002)
