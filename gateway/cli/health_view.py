"""Shows people how hops do: what they serve, what they could still take, and whom they call."""

from collections.abc import Iterable, Sequence

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from gateway.cli.console import columns_table, length_text, size_text
from gateway.cli.dependencies import dependency_table
from gateway.cli.hop_health import HopHealth
from gateway.cli.policy_notes import bulkhead_table, policy_notes, rejected
from services.runtime.durations import to_seconds
from sixhop.runtime.v1 import runtime_pb2

_LENGTHS = (
    "max_last_latency",
    "p50_work_latency",
    "p90_work_latency",
    "path_latency",
)


def show(console: Console, hops: Sequence[HopHealth], problem: str = "") -> None:
    """Show how hops do, and what is wrong with the configuration."""
    for part in view(hops, problem):
        # Lines are as long as they are: whoever pipes them wraps them.
        console.print(part, soft_wrap=isinstance(part, Text))


def view(hops: Sequence[HopHealth], problem: str = "") -> list[RenderableType]:
    """Return what is shown of hops, from top to bottom.

    Args:
        hops: how they do.
        problem: what is wrong with the configuration; empty for nothing.
    """
    parts: list[RenderableType] = [
        Text(f"problem: {line}", style="red") for line in problem.splitlines()
    ]
    parts.append(_hop_table(hops))
    parts += [Text(f"{hop.hop:<8} {hop.address}  {hop.detail}") for hop in hops]
    parts += [
        Text(f"{hop.name:<8} {note}", style="yellow")
        for hop in hops
        for note in policy_notes(hop.told)
    ]
    tables = (
        _capacity_table(hops),
        bulkhead_table((hop.name, hop.told) for hop in hops),
        dependency_table((hop.name, hop.dependencies) for hop in hops),
    )
    for table in tables:
        if table.row_count:
            parts += [Text(), table]
    if not any(hop.serves for hop in hops):
        parts.append(Text("nothing runs; start the suite with `sixhop up`"))
    return parts


def _hop_table(hops: Iterable[HopHealth]) -> Table:
    table = columns_table(
        ("hop", "state", "pod"),
        ("now", "calls", "errors", "p50", "p90", "p99", "wait", "memory"),
    )
    for hop in hops:
        state = Text(hop.state, style="green" if hop.serves else "red")
        table.add_row(Text(hop.name), state, Text(hop.pod), *_numbers(hop))
    return table


def _numbers(hop: HopHealth) -> list[str]:
    if not hop.pod:
        return []
    latencies = (hop.p50_s, hop.p90_s, hop.p99_s, hop.wait_s)
    return [
        str(hop.inflight_count),
        str(hop.call_count),
        str(hop.error_count),
        *(length_text(length_s) if hop.call_count else "" for length_s in latencies),
        size_text(hop.resident_byte_count),
    ]


def _capacity_table(hops: Iterable[HopHealth]) -> Table:
    """Return a line for each hop with the engine on: what it could take, and what calls take."""
    table = columns_table(
        ("hop", "limit"),
        ("in use", "queued", "takes", "last 5", "work p50", "work p90", "path", "lag", "refused"),
    )
    for hop in hops:
        if hop.told is not None and hop.told.engine_enabled:
            table.add_row(Text(hop.name), *_capacity(hop.told))
    return table


def _limit(gate: runtime_pb2.AdmissionSnapshot) -> str:
    """Return the limit, and how far it goes where it refuses nobody."""
    mode = next((rule.mode for rule in gate.rules if rule.rule == "limit"), None)
    if mode == runtime_pb2.RULE_MODE_OFF:
        return "off"
    only = " observed" if mode == runtime_pb2.RULE_MODE_OBSERVE else ""
    return f"{gate.limit} {gate.limit_kind}{only}"


def _capacity(told: runtime_pb2.GetSnapshotResponse) -> list[str]:
    gate = told.admission
    lengths = [to_seconds(getattr(told, name)) for name in _LENGTHS]
    return [
        _limit(gate),
        str(gate.inflight_count),
        str(told.queued_count),
        f"{told.estimated_qps:.0f}/s more" if told.HasField("estimated_qps") else "",
        *(length_text(length_s) if length_s else "" for length_s in lengths),
        length_text(to_seconds(told.event_loop.lag_duration)),
        str(rejected([*gate.rules, *told.shed.rules]) or ""),
    ]
