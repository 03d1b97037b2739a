"""Writes how one process does as programs and the page are shown it: lengths in milliseconds."""

from collections.abc import Iterable, Mapping

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from typing_extensions import TypedDict

from services.runtime.durations import to_seconds
from sixhop.runtime.v1 import runtime_pb2
from sixhop.type.v1 import criticality_pb2

SERVING, NOT_SERVING, SILENT, UNREACHABLE, UNKNOWN = (
    "serving",
    "not_serving",
    "silent",
    "unreachable",
    "unknown",
)
"""How a process can do; `unknown` until it was asked."""


class Latencies(TypedDict):
    """Is what calls take at a process, milliseconds; null while there were none."""

    avg: float | None
    p50: float | None
    p90: float | None
    p99: float | None
    avg_wait: float | None
    """Of the mean, what was spent waiting for others."""
    p50_work: float | None
    """The median of its own work."""
    path: float | None
    """What a call takes from here on."""


class Admission(TypedDict):
    """Is the gate of a process."""

    limit: int
    kind: str
    """`fixed` or `gradient`."""
    inflight: int
    waiting: int
    rejected: int
    """Calls that were refused since the start."""


class ShedOrder(TypedDict):
    """Is an operator's order to refuse calls."""

    reason: str
    up_to: str
    operator: str
    remaining_ms: int


class Door(TypedDict):
    """Is the fast-fail switch of the gateway."""

    state: str
    """`open`, `narrowed` or `closed`."""
    order: ShedOrder | None
    overload_up_to: str | None
    """The highest level that its own rule refuses."""
    rejected: int


class BulkheadView(TypedDict):
    """Is a group of dependencies that share permits."""

    group: str
    permits: int
    inflight: int
    queued: int
    max_queued: int
    rejected: int


class DependencyView(TypedDict):
    """Is one dependency as its caller sees it."""

    key: str
    breaker: str
    """`closed`, `open` or `half_open`."""
    reason: str
    """Why the breaker is so; `new` when it never changed."""
    forced: bool
    """Whether an operator holds it."""
    state_ms: int
    """How long it has been so."""
    probe_ms: int | None
    """When it probes, or when the operator's order ends; null when it is not open."""
    calls: int
    """Calls that ended in the breaker's window."""
    failure_ratio: float
    mean_ms: float | None
    expected_ms: float | None
    """What nine of ten recent successes took."""
    timeout_ms: int | None
    """After how long a call ends at the latest."""
    slow: int
    overdue: int
    probes: int
    trips: int
    retries: int
    retry_tokens: float | None
    fallbacks: dict[str, int]


class HopView(TypedDict):
    """Is how one process does."""

    hop: str
    address: str
    replica: bool
    """Whether it is one of several processes of its hop."""
    state: str
    """`serving`, `not_serving`, `silent`, `unreachable`, or `unknown` until it was asked."""
    detail: str
    pod: str
    up_ms: int
    inflight: int
    queued: int
    calls: int
    errors: int
    estimated_qps: float | None
    memory_bytes: int
    engine: bool
    latency_ms: Latencies | None
    loop_lag_ms: float | None
    admission: Admission | None
    door: Door | None
    bulkheads: list[BulkheadView]
    dependencies: list[DependencyView]
    attributes: dict[str, str]


def unheard(hop: str, address: str, state: str, detail: str, *, replica: bool = False) -> HopView:
    """Return how a process does that tells nothing.

    Args:
        hop: the hop.
        address: where it was asked.
        state: `silent`, `unreachable`, `not_serving` or `unknown`.
        detail: why.
        replica: whether it is one of several of its hop.
    """
    return HopView(
        hop=hop,
        address=address,
        replica=replica,
        state=state,
        detail=detail,
        pod="",
        up_ms=0,
        inflight=0,
        queued=0,
        calls=0,
        errors=0,
        estimated_qps=None,
        memory_bytes=0,
        engine=False,
        latency_ms=None,
        loop_lag_ms=None,
        admission=None,
        door=None,
        bulkheads=[],
        dependencies=[],
        attributes={},
    )


def heard(
    hop: str, address: str, told: runtime_pb2.GetSnapshotResponse, *, replica: bool = False
) -> HopView:
    """Return how a process does that has told its state; the arguments are those of `unheard`."""
    if told.hop != hop:
        detail = f"this is the hop {told.hop}; correct the ports"
        return unheard(hop, address, NOT_SERVING, detail, replica=replica)
    return HopView(
        hop=hop,
        address=address,
        replica=replica,
        state=SERVING if told.ready else NOT_SERVING,
        detail=told.detail,
        pod=told.pod,
        up_ms=_whole_ms(told.up_duration),
        inflight=told.inflight_count,
        queued=told.queued_count,
        calls=told.call_count,
        errors=told.error_count,
        estimated_qps=told.estimated_qps if told.HasField("estimated_qps") else None,
        memory_bytes=told.resident_byte_count,
        engine=told.engine_enabled,
        latency_ms=_latencies(told),
        loop_lag_ms=_length_ms(told.event_loop, "lag_duration"),
        admission=_admission(told.admission) if told.HasField("admission") else None,
        door=_door(told.shed) if told.HasField("shed") else None,
        bulkheads=[_bulkhead(each) for each in told.bulkheads],
        dependencies=[dependency_view(each) for each in told.dependencies],
        attributes=dict(told.attributes),
    )


def shed_order(told: runtime_pb2.ShedOrder) -> ShedOrder:
    """Return an operator's order to refuse calls."""
    return ShedOrder(
        reason=told.reason,
        up_to=_level(told.up_to),
        operator=told.operator_name,
        remaining_ms=_whole_ms(told.remaining_duration),
    )


def dependency_view(told: runtime_pb2.DependencySnapshot) -> DependencyView:
    """Return one dependency as its caller has told of it."""
    declared_ms = _length_ms(told, "declared_timeout_duration")
    adaptive_ms = _length_ms(told, "step_timeout_duration")
    timeouts = [each for each in (declared_ms, adaptive_ms) if each is not None]
    return DependencyView(
        key=told.key,
        breaker=_word(runtime_pb2.BreakerState.Name(told.breaker_state), "BREAKER_STATE_"),
        reason=told.breaker_reason,
        forced=told.breaker_forced,
        state_ms=_whole_ms(told.breaker_state_duration),
        probe_ms=_whole_ms(told.probe_duration) if told.HasField("probe_duration") else None,
        calls=told.call_count,
        failure_ratio=round(told.failure_ratio, 4),
        mean_ms=_length_ms(told, "mean_latency") or None,
        expected_ms=_length_ms(told, "expected_latency"),
        timeout_ms=round(min(timeouts)) if timeouts else None,
        slow=told.slow_count,
        overdue=told.overdue_count,
        probes=told.probe_count,
        trips=told.trip_count,
        retries=told.retry_count,
        retry_tokens=round(told.retry_tokens, 2) if told.HasField("retry_tokens") else None,
        fallbacks=dict(told.fallback_counts),
    )


def _latencies(told: runtime_pb2.GetSnapshotResponse) -> Latencies:
    return Latencies(
        avg=_length_ms(told, "avg_latency") or None,
        p50=_length_ms(told, "p50_latency") or None,
        p90=_length_ms(told, "p90_latency") or None,
        p99=_length_ms(told, "p99_latency") or None,
        avg_wait=_length_ms(told, "avg_wait_latency") or None,
        p50_work=_length_ms(told, "p50_work_latency") or None,
        path=_length_ms(told, "path_latency") or None,
    )


def _admission(told: runtime_pb2.AdmissionSnapshot) -> Admission:
    return Admission(
        limit=told.limit,
        kind=told.limit_kind,
        inflight=told.inflight_count,
        waiting=told.waiting_count,
        rejected=_rejected(told.rules),
    )


def _door(told: runtime_pb2.ShedSnapshot) -> Door:
    order = None
    if told.HasField("order"):
        order = shed_order(told.order)
    return Door(
        state=_word(runtime_pb2.DoorState.Name(told.state), "DOOR_STATE_"),
        order=order,
        overload_up_to=_level(told.overload_up_to) if told.overload_up_to else None,
        rejected=_rejected(told.rules),
    )


def _bulkhead(told: runtime_pb2.BulkheadSnapshot) -> BulkheadView:
    return BulkheadView(
        group=told.group,
        permits=told.permit_count,
        inflight=told.inflight_count,
        queued=told.queued_count,
        max_queued=told.max_queued_count,
        rejected=_sum(told.rejected_counts),
    )


def _rejected(rules: Iterable[runtime_pb2.RuleSnapshot]) -> int:
    return sum(_sum(rule.rejected_counts) for rule in rules)


def _sum(counts: Mapping[str, int]) -> int:
    return sum(counts.values())


def _level(level: criticality_pb2.Criticality.ValueType) -> str:
    return criticality_pb2.Criticality.Name(level).removeprefix("CRITICALITY_")


def _word(name: str, prefix: str) -> str:
    return name.removeprefix(prefix).lower()


def _whole_ms(length: Duration) -> int:
    return round(to_seconds(length) * 1000)


def _length_ms(told: Message, field: str) -> float | None:
    """Return a length in milliseconds; None while it is not told."""
    if not told.HasField(field):
        return None
    return round(to_seconds(getattr(told, field)) * 1000, 3)
