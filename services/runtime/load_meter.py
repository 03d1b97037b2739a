"""Measures the load of this process for its load reports."""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from services.runtime.circuit import BreakerState
from services.runtime.estimate import PathEstimator
from services.runtime.load_report import LoadReport
from services.runtime.process_state import ProcessState

RATE_WINDOW_S = 10.0
"""Over how long rates are averaged."""
SAMPLE_INTERVAL_S = 1.0
"""How far apart the counts are that rates are made of."""


class _Counts(NamedTuple):
    at: float
    calls: int
    errors: int
    cpu_s: float


class LoadMeter:
    """Puts together what a process knows of its load."""

    def __init__(
        self, state: ProcessState, estimator: PathEstimator, cpu_s: Callable[[], float]
    ) -> None:
        """Take where to look.

        Args:
            state: what the process is doing, and its policies.
            estimator: what calls take.
            cpu_s: returns the CPU time that this process has used, seconds.
        """
        self.state = state
        """What is measured."""
        self._estimator = estimator
        self._cpu_s = cpu_s
        self._counts = deque([self._count()])

    def measure(self) -> LoadReport:
        """Return the load now; takes some hundred microseconds."""
        estimator, inflight = self._estimator, self.state.activity.inflight
        guards = self.state.guards
        limit = guards.admission.limit if guards is not None else 0
        now, then = self._count(), self._counts[0]
        length_s = max(now.at - then.at, SAMPLE_INTERVAL_S)
        self._keep(now)
        breakers, mean_s = self._dependencies()
        return LoadReport(
            cpu_utilization=(now.cpu_s - then.cpu_s) / length_s,
            application_utilization=inflight / limit if limit else 0.0,
            rps=(now.calls - then.calls) / length_s,
            eps=(now.errors - then.errors) / length_s,
            p50_s=estimator.answer_s(0.5),
            p90_s=estimator.answer_s(0.9),
            wait_s=estimator.wait_s(),
            path_s=estimator.path_s(),
            estimated_qps=self.state.estimated_qps(),
            inflight=inflight,
            limit=limit,
            queued=self._queued(),
            note_p90_s=estimator.note_p90_s(),
            breakers=breakers,
            mean_s=mean_s,
        )

    def _count(self) -> _Counts:
        activity, now = self.state.activity, self.state.clock.now()
        return _Counts(now, activity.call_count, activity.error_count, self._cpu_s())

    def _keep(self, now: _Counts) -> None:
        counts = self._counts
        if now.at - counts[-1].at >= SAMPLE_INTERVAL_S:
            counts.append(now)
        # One that is old enough stays, however old it is: rates need something to begin with.
        while len(counts) > 1 and now.at - counts[0].at > RATE_WINDOW_S:
            counts.popleft()

    def _dependencies(self) -> tuple[dict[str, BreakerState], dict[str, float]]:
        mean_s = self._estimator.seen_s()
        states: dict[str, BreakerState] = {}
        policies = self.state.policies
        if policies is None:
            return states, mean_s
        for key, seen in policies.breakers.snapshot().items():
            if seen.state is not BreakerState.CLOSED:
                states[key] = seen.state
            if "/" not in key and seen.mean_latency_s > mean_s.get(key, 0.0):
                # A breaker counts those that hang already by their age.
                mean_s[key] = seen.mean_latency_s
        return states, mean_s

    def _queued(self) -> int:
        policies = self.state.policies
        return 0 if policies is None else policies.bulkhead.queued
