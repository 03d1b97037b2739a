"""Reads and shows what a hop has learned about those that it calls."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from gateway.cli.console import columns_table, length_text, one_line
from services.runtime.config import CallsSettings, Config
from services.runtime.durations import to_seconds
from services.runtime.policies.adaptive import AdaptiveConfig
from sixhop.runtime.v1 import runtime_pb2

CLOSED = "closed"
_STATES = {
    runtime_pb2.BREAKER_STATE_CLOSED: CLOSED,
    runtime_pb2.BREAKER_STATE_OPEN: "open",
    runtime_pb2.BREAKER_STATE_HALF_OPEN: "half open",
}
_STYLES = {CLOSED: "green", "open": "red", "half open": "yellow"}

InForce = Callable[[str, float | None, float | None], float | None]
"""Returns the step timeout in force: from a callee's key, what recent latencies ask for, and what
the timeouts of this callee do not go below."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DependencyHealth:
    """Tells how one callee does, as its caller sees it."""

    key: str
    """The callee: `model`, `tool/sql`."""
    breaker_state: str
    """`closed`, `open`, `half open`, or `unknown` for one of a later release."""
    breaker_reason: str
    """Why it is in this state, such as `slow_calls`; `new` when it never changed."""
    call_count: int
    """Calls that ended in the breaker's window."""
    failure_ratio: float
    """The part of them that failed, 0–1."""
    mean_s: float
    """Their mean length, seconds; calls that are overdue count with their age."""
    step_timeout_s: float | None
    """After how long a call to it ends at the latest, seconds: by the step timeout in force, or by
    its own; None when this release does not know the callee."""
    retry_count: int
    """Calls that were repeated since the start."""
    retry_tokens: float | None = None
    """The retry budget; None before the first call that could be repeated."""
    breaker_state_s: float = 0.0
    """How long the breaker has been in its state, seconds."""

    @property
    def is_closed(self) -> bool:
        """Return whether calls pass freely."""
        return self.breaker_state == CLOSED

    @property
    def is_worth_a_line(self) -> bool:
        """Return whether people want to see it: it has had calls, or it gets none."""
        return self.call_count > 0 or not self.is_closed


def step_timeouts(config: Config) -> InForce:
    """Return what tells the step timeout in force: what is asked for, between its bounds.

    Raises:
        ConfigError: the section of the adaptive timeouts is wrong.
    """
    adaptive = config.policy("adaptive", AdaptiveConfig)

    def in_force(key: str, wanted_s: float | None, least_s: float | None) -> float | None:
        dependency = key.partition("/")[0]
        if dependency not in CallsSettings.model_fields:
            return None
        declared_s = config.limits(dependency).step_timeout_s
        if wanted_s is None or not adaptive.enabled:
            return declared_s
        floor_s = adaptive.min_timeout_s if least_s is None else least_s
        return min(max(wanted_s, floor_s), declared_s)

    return in_force


def read_dependencies(
    snapshots: Iterable[runtime_pb2.DependencySnapshot], in_force: InForce
) -> tuple[DependencyHealth, ...]:
    """Return what a hop tells of its callees, in its order."""
    return tuple(_read(snapshot, in_force) for snapshot in snapshots)


def dependency_table(hops: Iterable[tuple[str, Sequence[DependencyHealth]]]) -> Table:
    """Return a table with a line for each callee worth one."""
    table = columns_table(
        ("hop", "calls to", "breaker", "because"),
        ("since", "calls", "failed", "mean", "timeout", "retries", "tokens"),
    )
    for hop, dependencies in hops:
        for each in dependencies:
            if each.is_worth_a_line:
                table.add_row(Text(hop), *_cells(each))
    return table


def _read(snapshot: runtime_pb2.DependencySnapshot, in_force: InForce) -> DependencyHealth:
    wanted_s: float | None = None
    if snapshot.HasField("step_timeout_duration"):
        wanted_s = to_seconds(snapshot.step_timeout_duration)
    least_s: float | None = None
    if snapshot.adaptive_timeout.HasField("min_timeout_duration"):
        least_s = to_seconds(snapshot.adaptive_timeout.min_timeout_duration)
    timeout_s = in_force(snapshot.key, wanted_s, least_s)
    if snapshot.HasField("declared_timeout_duration"):
        # A callee that gives up sooner than its callers ends their calls.
        declared_s = to_seconds(snapshot.declared_timeout_duration)
        timeout_s = declared_s if timeout_s is None else min(timeout_s, declared_s)
    return DependencyHealth(
        key=one_line(snapshot.key),
        breaker_state=_STATES.get(snapshot.breaker_state, "unknown"),
        breaker_reason=one_line(snapshot.breaker_reason),
        call_count=snapshot.call_count,
        failure_ratio=round(snapshot.failure_ratio, 4),
        mean_s=round(to_seconds(snapshot.mean_latency), 6),
        step_timeout_s=None if timeout_s is None else round(timeout_s, 6),
        retry_count=snapshot.retry_count,
        retry_tokens=snapshot.retry_tokens if snapshot.HasField("retry_tokens") else None,
        breaker_state_s=round(to_seconds(snapshot.breaker_state_duration), 3),
    )


def _cells(each: DependencyHealth) -> list[Text]:
    has_calls = each.call_count > 0
    # A breaker that is closed needs no excuse.
    because = "" if each.is_closed else each.breaker_reason
    since = length_text(each.breaker_state_s) if each.breaker_state_s and because else ""
    return [
        Text(each.key),
        Text(each.breaker_state, style=_STYLES.get(each.breaker_state, "")),
        Text(because),
        Text(since),
        Text(str(each.call_count)),
        Text(f"{each.failure_ratio:.0%}" if has_calls else ""),
        Text(length_text(each.mean_s) if each.mean_s else ""),
        Text("" if each.step_timeout_s is None else length_text(each.step_timeout_s)),
        Text(str(each.retry_count) if each.retry_count else ""),
        Text("" if each.retry_tokens is None else f"{each.retry_tokens:.1f}"),
    ]
