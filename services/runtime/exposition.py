"""Writes for Prometheus what a process knows of itself."""

from collections.abc import Iterator, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

from services.runtime import telemetry
from services.runtime.durations import to_seconds
from sixhop.runtime.v1 import runtime_pb2

Snapshot = runtime_pb2.GetSnapshotResponse
_BREAKERS = {
    runtime_pb2.BREAKER_STATE_CLOSED: 0.0,
    runtime_pb2.BREAKER_STATE_HALF_OPEN: 0.5,
    runtime_pb2.BREAKER_STATE_OPEN: 1.0,
}


MEDIA_TYPE = CONTENT_TYPE_PLAIN_0_0_4


def exposition(snapshot: Snapshot, more: Sequence[Metric] = ()) -> bytes:
    """Return a state in Prometheus' text format.

    Args:
        snapshot: what the process knows of its calls, its limits and its dependencies.
        more: what else it has to tell.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_State(snapshot, more))
    return generate_latest(registry)


class _State(Collector):
    def __init__(self, snapshot: Snapshot, more: Sequence[Metric]) -> None:
        self.snapshot = snapshot
        self.more = more

    def collect(self) -> Iterator[Metric]:
        """Yield everything that is told."""
        yield from _calls(self.snapshot)
        yield from self.more
        yield from _admission(self.snapshot)
        yield from _dependencies(self.snapshot)


def _calls(snapshot: Snapshot) -> Iterator[Metric]:
    yield _counter(telemetry.METRIC_CALLS, "Calls that have ended.", snapshot.call_count)
    yield _counter(
        telemetry.METRIC_CALL_ERRORS,
        "Calls that have ended with an error.",
        snapshot.error_count,
    )
    yield gauge(telemetry.METRIC_INFLIGHT, "Calls being served.", snapshot.inflight_count)
    yield gauge(telemetry.METRIC_READY, "1 while the process takes calls.", snapshot.ready)
    latency = GaugeMetricFamily(
        telemetry.METRIC_LATENCY, "What recent calls took, seconds.", labels=["quantile"]
    )
    for quantile, length in (
        ("0.5", snapshot.p50_latency),
        ("0.9", snapshot.p90_latency),
        ("0.99", snapshot.p99_latency),
    ):
        latency.add_metric([quantile], to_seconds(length))
    yield latency
    yield gauge(
        telemetry.METRIC_WAIT,
        "Of the mean latency, the part spent waiting for dependencies, seconds.",
        to_seconds(snapshot.avg_wait_latency),
    )
    yield gauge(
        telemetry.METRIC_PATH,
        "What a call takes from here on by estimate, seconds.",
        to_seconds(snapshot.path_latency),
    )
    yield gauge(telemetry.METRIC_MEMORY, "Resident memory, bytes.", snapshot.resident_byte_count)
    if snapshot.HasField("estimated_qps"):
        yield gauge(
            telemetry.METRIC_ESTIMATED_QPS,
            "How many more calls per second this process takes.",
            snapshot.estimated_qps,
        )
    yield gauge(
        telemetry.METRIC_LOOP_LAG,
        "How late the event loop was last, seconds.",
        to_seconds(snapshot.event_loop.lag_duration),
    )


def _admission(snapshot: Snapshot) -> Iterator[Metric]:
    if not snapshot.engine_enabled:
        return
    yield gauge(
        telemetry.METRIC_LIMIT, "How many calls may be in flight.", snapshot.admission.limit
    )
    rejected = CounterMetricFamily(
        telemetry.METRIC_REJECTED, "Calls that were refused.", labels=["rule", "criticality"]
    )
    spared = CounterMetricFamily(
        telemetry.METRIC_WOULD_REJECT,
        "Calls that a rule would have refused, had it not only observed.",
        labels=["rule", "criticality"],
    )
    for rule in (*snapshot.admission.rules, *snapshot.shed.rules):
        for level, count in rule.rejected_counts.items():
            rejected.add_metric([rule.rule, level], count)
        for level, count in rule.would_reject_counts.items():
            spared.add_metric([rule.rule, level], count)
    yield rejected
    yield spared
    yield gauge(
        telemetry.METRIC_DOOR,
        "The fast-fail switch: 0 open, 0.5 narrowed, 1 closed.",
        {runtime_pb2.DOOR_STATE_NARROWED: 0.5, runtime_pb2.DOOR_STATE_CLOSED: 1.0}.get(
            snapshot.shed.state, 0.0
        ),
    )
    fallbacks = CounterMetricFamily(
        telemetry.METRIC_FALLBACKS, "Calls answered by a fallback.", labels=["mechanism"]
    )
    for mechanism, count in snapshot.fallback_counts.items():
        fallbacks.add_metric([mechanism], count)
    yield fallbacks


def _dependencies(snapshot: Snapshot) -> Iterator[Metric]:
    labels = ["dependency"]
    breaker = GaugeMetricFamily(
        telemetry.METRIC_BREAKER, "Breakers: 0 closed, 0.5 half-open, 1 open.", labels=labels
    )
    mean = GaugeMetricFamily(
        telemetry.METRIC_DEPENDENCY_LATENCY,
        "What answers take in the breaker's window, mean, seconds.",
        labels=labels,
    )
    retries = CounterMetricFamily(
        telemetry.METRIC_RETRIES, "Calls that were repeated.", labels=labels
    )
    trips = CounterMetricFamily(
        telemetry.METRIC_TRIPS, "How often a breaker has opened.", labels=labels
    )
    for each in snapshot.dependencies:
        breaker.add_metric([each.key], _BREAKERS.get(each.breaker_state, 0.0))
        mean.add_metric([each.key], to_seconds(each.mean_latency))
        retries.add_metric([each.key], each.retry_count)
        trips.add_metric([each.key], each.trip_count)
    yield from (breaker, mean, retries, trips)


def gauge(name: str, meaning: str, value: float) -> Metric:
    """Return one number that goes up and down."""
    return GaugeMetricFamily(name, meaning, value=value)


def _counter(name: str, meaning: str, value: float) -> Metric:
    return CounterMetricFamily(name, meaning, value=value)
