"""Holds what a process tells of its load to what it has counted."""

from typing import Any

import pytest

from services.runtime.call import Call, Callee, CallLimits, Inbound
from services.runtime.circuit import BreakerState
from services.runtime.clock import ManualClock
from services.runtime.estimate import PathEstimator
from services.runtime.health import Health
from services.runtime.load_meter import RATE_WINDOW_S, LoadMeter
from services.runtime.loads import Loads
from services.runtime.policies.self_ejection import LagConfig, LagReadiness
from services.runtime.process_state import ProcessState
from services.runtime.statistics import Activity
from tests.stacks import policies, server_guards


class Process:
    """Has counters that a test moves."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.activity = Activity()
        self.estimator = PathEstimator(self.clock, Loads(self.clock))
        self.policies = policies(self.clock)
        self.cpu_s = 3.0
        state = ProcessState(
            hop="domain",
            pod="domain-1",
            clock=self.clock,
            activity=self.activity,
            health=Health(),
            lag=LagReadiness(LagConfig()),
            guards=server_guards(self.clock),
            policies=self.policies,
        )
        state.health.ready = True
        self.meter = LoadMeter(state, self.estimator, lambda: self.cpu_s)

    def serve(self, seconds: int, *, rps: int, failed: int = 0) -> None:
        """Let time pass in which calls end, and the load is told now and then."""
        for _ in range(seconds):
            self.clock.advance(1)
            for number in range(rps):
                self.activity.record(0.1, 0.0, failed=number < failed)
            self.cpu_s += 0.25
            self.meter.measure()

    def answer(self, key: str, length_s: float) -> None:
        """Let a dependency answer."""
        now = self.clock.now()
        inbound = Inbound("domain", "RunAgent", True, now, now + 60)
        call = Call(key.partition("/")[0], "Do", False, inbound, CallLimits(step_timeout_s=5))
        call.callee = Callee(key=key)
        call.sent_at = now
        self.clock.advance(length_s)
        self.estimator.made.after(call, None)


def test_rates_are_those_of_the_last_seconds() -> None:
    process = Process()
    process.serve(30, rps=20, failed=2)
    steady = process.meter.measure()
    process.serve(3 * round(RATE_WINDOW_S), rps=0)
    process.cpu_s = 0.0
    idle = process.meter.measure()

    assert (steady.rps, steady.eps) == (20, 2)
    assert steady.cpu_utilization == pytest.approx(0.25)
    assert (idle.rps, idle.eps) == (0, 0)


def test_a_process_that_has_just_started_has_no_great_rates() -> None:
    process = Process()
    process.activity.record(0.1, 0.0, failed=False)
    process.clock.advance(0.001)

    assert process.meter.measure().rps == 1


def test_utilization_is_what_is_in_flight_of_what_may_be() -> None:
    process = Process()
    process.activity.inflight = 64

    report = process.meter.measure()

    assert (report.inflight, report.limit, report.application_utilization) == (64, 256, 0.25)
    # Nobody has been answered yet, so that nobody knows how many more would be.
    assert (report.estimated_qps, report.path_s, report.queued) == (None, None, 0)


def test_room_is_what_the_process_tells_of_itself_everywhere() -> None:
    process = Process()
    for _ in range(20):
        now = process.clock.now()
        inbound = Inbound("tool", "ExecuteTool", False, now, now + 60)
        process.estimator.served.before(inbound)
        process.clock.advance(0.5)
        process.estimator.served.after(inbound, None)
        process.activity.record(0.5, 0.0, failed=False)

    report = process.meter.measure()

    assert report.estimated_qps == process.meter.state.estimated_qps()
    assert report.estimated_qps is not None
    assert (report.p50_s, report.path_s) == (0.5, 0.5)


def test_dependencies_that_are_cut_off_are_named_and_hanging_ones_are_slow() -> None:
    process = Process()
    for _ in range(10):
        process.answer("model", 0.125)
        process.answer("tool/sql", 0.25)
    process.policies.breakers.force_open("tool/sql")

    calm = process.meter.measure()
    breakers: Any = process.policies.breakers
    hanging = Call(
        "model",
        "Generate",
        False,
        Inbound("domain", "RunAgent", True, 0, 1e9),
        CallLimits(step_timeout_s=5),
        callee=Callee(key="model", slow_call_s=5.0),
    )
    breakers.before(hanging)
    process.clock.advance(12)
    hung = process.meter.measure()

    assert calm.breakers == {"tool/sql": BreakerState.OPEN}
    assert calm.mean_s == {"model": 0.125, "tool": 0.25}
    assert hung.mean_s["model"] == 12
