"""Tells what a process has learned about those that it calls."""

from services.runtime.circuit import BreakerSnapshot, BreakerState
from services.runtime.durations import to_duration
from services.runtime.policies.adaptive import AdaptiveSnapshot
from services.runtime.policies.hedge import HedgeSnapshot
from services.runtime.stack import ClientPolicies
from sixhop.runtime.v1 import runtime_pb2

_STATES = {
    BreakerState.CLOSED: runtime_pb2.BREAKER_STATE_CLOSED,
    BreakerState.OPEN: runtime_pb2.BREAKER_STATE_OPEN,
    BreakerState.HALF_OPEN: runtime_pb2.BREAKER_STATE_HALF_OPEN,
}


def dependency_snapshots(policies: ClientPolicies) -> list[runtime_pb2.DependencySnapshot]:
    """Return one snapshot for each callee that has been called, by key."""
    timeouts = policies.adaptive.snapshot()
    budgets = policies.retry.snapshot()
    hedges = policies.hedge.snapshot()
    fallbacks = policies.fallback.snapshot().callees
    found: list[runtime_pb2.DependencySnapshot] = []
    for key, breaker in sorted(policies.breakers.snapshot().items()):
        snapshot = _of_breaker(key, breaker)
        if key in budgets:
            budget = budgets[key]
            snapshot.retry_count = budget.retry_count
            snapshot.retry_tokens = budget.tokens
            if budget.expected_s:
                snapshot.expected_latency.CopyFrom(to_duration(budget.expected_s))
        if key in hedges:
            snapshot.hedge.CopyFrom(_of_hedge(hedges[key]))
        if key in timeouts:
            timeout = timeouts[key]
            if timeout.declared_s is not None:
                snapshot.declared_timeout_duration.CopyFrom(to_duration(timeout.declared_s))
            if timeout.sample_count:
                snapshot.adaptive_timeout.CopyFrom(_of_timeout(timeout))
            if timeout.wanted_s is not None:
                snapshot.step_timeout_duration.CopyFrom(to_duration(timeout.wanted_s))
        for mechanism, count in fallbacks.get(key, {}).items():
            snapshot.fallback_counts[mechanism.value] = count
        found.append(snapshot)
    return found


def _of_breaker(key: str, breaker: BreakerSnapshot) -> runtime_pb2.DependencySnapshot:
    probes_s = breaker.retry_after_s
    return runtime_pb2.DependencySnapshot(
        key=key,
        breaker_state=_STATES[breaker.state],
        breaker_reason=breaker.reason,
        call_count=breaker.call_count,
        failure_ratio=breaker.failure_ratio,
        mean_latency=to_duration(breaker.mean_latency_s),
        breaker_epoch=breaker.epoch,
        breaker_state_duration=to_duration(breaker.age_s),
        probe_duration=None if probes_s is None else to_duration(probes_s),
        breaker_forced=breaker.forced,
        trip_count=breaker.trip_count,
        probe_count=breaker.probes,
        slow_count=breaker.slow_count,
        overdue_count=breaker.overdue,
    )


def _of_hedge(seen: HedgeSnapshot) -> runtime_pb2.HedgeSnapshot:
    return runtime_pb2.HedgeSnapshot(
        delay_duration=to_duration(seen.delay_s) if seen.delay_s else None,
        tokens=seen.tokens,
        call_count=seen.call_count,
        hedge_count=seen.hedge_count,
        win_count=seen.win_count,
    )


def _of_timeout(seen: AdaptiveSnapshot) -> runtime_pb2.AdaptiveTimeoutSnapshot:
    return runtime_pb2.AdaptiveTimeoutSnapshot(
        sample_count=seen.sample_count,
        p50_latency=to_duration(seen.p50_s),
        p99_latency=to_duration(seen.p99_s),
        frozen=seen.frozen,
        min_timeout_duration=None if seen.least_s is None else to_duration(seen.least_s),
    )
