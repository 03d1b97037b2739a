"""Tells what a process is doing, what it could still take, and what its policies do."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from services.runtime.call import Criticality
from services.runtime.call_tasks import CallTasks
from services.runtime.clock import Clock
from services.runtime.dependency_health import dependency_snapshots
from services.runtime.durations import to_duration
from services.runtime.health import Health
from services.runtime.policies.self_ejection import LagReadiness
from services.runtime.policy_state import (
    admission_state,
    bulkhead_states,
    ejection_state,
    event_loop_state,
    shed_state,
)
from services.runtime.stack import ClientPolicies, ServerPolicies
from services.runtime.statistics import Activity, LatencySnapshot
from services.runtime.topology import GATEWAY
from sixhop.runtime.v1 import runtime_pb2


@dataclass(slots=True, kw_only=True)
class ProcessState:
    """Holds what a process can be asked about."""

    hop: str
    pod: str
    clock: Clock
    activity: Activity
    health: Health
    lag: LagReadiness
    """How late the event loop is; it is watched with the engine only."""
    guards: ServerPolicies | None
    """What guards the calls that are served; None while the engine is off."""
    policies: ClientPolicies | None
    """What guards the calls to others; None while the engine is off."""
    tasks: CallTasks = field(default_factory=CallTasks)
    callee_qps: Callable[[], float | None] = lambda: None
    """Tells how many more calls per second whoever is called from here takes; None is not said."""
    started_at: float = field(init=False)

    def __post_init__(self) -> None:
        """Begin to count the time."""
        self.started_at = self.clock.now()

    def snapshot(
        self, attributes: Mapping[str, str], path_s: float
    ) -> runtime_pb2.GetSnapshotResponse:
        """Return the state now.

        Args:
            attributes: the details of this hop.
            path_s: what a call takes from here on, seconds.
        """
        latency = self.activity.latency()
        snapshot = runtime_pb2.GetSnapshotResponse(
            hop=self.hop,
            pod=self.pod,
            ready=self.health.ready,
            detail=self.health.detail,
            up_duration=to_duration(self.clock.now() - self.started_at),
            inflight_count=self.activity.inflight,
            outgoing_count=self.activity.outgoing,
            task_count=self.tasks.count(),
            call_count=self.activity.call_count,
            error_count=self.activity.error_count,
            path_latency=to_duration(path_s),
            estimated_qps=self.estimated_qps(),
            attributes=attributes,
            resident_byte_count=resident_bytes(),
            engine_enabled=self.guards is not None,
        )
        _add_latency(snapshot, latency)
        if self.guards is not None:
            self._add_guards(snapshot, self.guards)
        if self.policies is not None:
            _add_policies(snapshot, self.policies)
        return snapshot

    def estimated_qps(self) -> float | None:
        """Return how many more calls per second this process takes now.

        It speaks of calls of the level CRITICAL, which all have that name none: they may fill its
        part of the limit. It is 0 when such a call would be refused.

        Returns:
            The rate, which is no more than whoever is called from here takes; None while no limit
            is enforced, or while too few calls have ended.
        """
        guards = self.guards
        if not self.health.ready or self._refuses_at_the_door():
            return 0.0
        if guards is None:
            return self.callee_qps()
        places = guards.admission.places(Criticality.CRITICAL)
        own = None if places is None else self.activity.spare_qps(*places)
        return min((qps for qps in (own, self.callee_qps()) if qps is not None), default=None)

    def fingerprint(self) -> Hashable:
        """Return what differs whenever something has changed its state.

        That is readiness, what has held the event loop up, the limit, the fast-fail switch or a
        breaker; time alone may do it.
        """
        told: list[Hashable] = [self.health.ready, self.health.detail, self.lag.held_count]
        if self.guards is not None:
            shed = self.guards.shed.snapshot()
            told += [self.guards.admission.limit, shed.order, shed.overload_up_to, shed.mode]
        if self.policies is not None:
            breakers = self.policies.breakers.snapshot()
            told += [(key, breaker.epoch) for key, breaker in breakers.items()]
        return tuple(told)

    def _refuses_at_the_door(self) -> bool:
        if self.guards is None or self.hop != GATEWAY:
            return False
        up_to = self.guards.shed.snapshot().up_to
        return up_to is not None and up_to >= Criticality.CRITICAL

    def _add_guards(
        self, snapshot: runtime_pb2.GetSnapshotResponse, guards: ServerPolicies
    ) -> None:
        snapshot.admission.CopyFrom(admission_state(guards.admission.snapshot()))
        ejection = ejection_state(guards.ejection.snapshot(), self.clock.now())
        snapshot.ejection.CopyFrom(ejection)
        snapshot.event_loop.CopyFrom(event_loop_state(self.lag, self.clock.now()))
        if self.hop == GATEWAY:
            snapshot.shed.CopyFrom(shed_state(guards.shed.snapshot(), self.clock))


def _add_latency(snapshot: runtime_pb2.GetSnapshotResponse, latency: LatencySnapshot) -> None:
    snapshot.avg_latency.CopyFrom(to_duration(latency.average_s))
    snapshot.p50_latency.CopyFrom(to_duration(latency.p50_s))
    snapshot.p90_latency.CopyFrom(to_duration(latency.p90_s))
    snapshot.p99_latency.CopyFrom(to_duration(latency.p99_s))
    snapshot.avg_wait_latency.CopyFrom(to_duration(latency.average_wait_s))
    snapshot.p50_work_latency.CopyFrom(to_duration(latency.work_p50_s))
    snapshot.p90_work_latency.CopyFrom(to_duration(latency.work_p90_s))
    snapshot.max_last_latency.CopyFrom(to_duration(latency.max_last_s))


def _add_policies(snapshot: runtime_pb2.GetSnapshotResponse, policies: ClientPolicies) -> None:
    snapshot.dependencies.extend(dependency_snapshots(policies))
    snapshot.bulkheads.extend(bulkhead_states(policies.bulkhead.snapshot()))
    snapshot.queued_count = sum(each.queued_count for each in snapshot.bulkheads)
    for mechanism, count in policies.fallback.snapshot().counts.items():
        snapshot.fallback_counts[mechanism.value] = count


def resident_bytes() -> int:
    """Return the resident memory of this process, or 0 where the system does not tell."""
    try:
        fields = Path("/proc/self/statm").read_text(encoding="ascii").split()
    except OSError:
        return 0
    return int(fields[1]) * 4096
