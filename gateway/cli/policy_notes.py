"""Says in words what the policies of a hop do that is not as usual."""

from collections.abc import Iterable, Iterator, Mapping

from rich.table import Table
from rich.text import Text

from gateway.cli.console import columns_table, length_text, one_line
from services.runtime.durations import to_seconds
from sixhop.runtime.v1 import runtime_pb2
from sixhop.type.v1 import criticality_pb2

Snapshot = runtime_pb2.GetSnapshotResponse
HELD_SHOWN_S = 300.0
"""For so long people are told of what has held an event loop up; programs always are."""
_HIGHEST = criticality_pb2.CRITICALITY_CRITICAL_PLUS


def policy_notes(told: Snapshot | None) -> Iterator[str]:
    """Yield a sentence for each thing that is worth one; none for a hop that was not heard."""
    if told is None:
        return
    yield from _door(told.shed)
    if told.ejection.ejected:
        left = length_text(to_seconds(told.ejection.remaining_duration))
        yield f"has taken itself out of service for {left} more: its own streams failed"
    if told.event_loop.lagging:
        yield f"its event loop lags, by {length_text(to_seconds(told.event_loop.lag_duration))}"
    yield from _held(told.event_loop)
    for rule in (*told.shed.rules, *told.admission.rules):
        if rule.rejected_counts:
            yield f"{one_line(rule.rule)} has refused {_counts(rule.rejected_counts)}"
        if rule.would_reject_counts:
            yield f"{one_line(rule.rule)} would have refused {_counts(rule.would_reject_counts)}"
    over = sum(level.over_share_count for level in told.admission.levels)
    if over:
        yield f"{over} tenants have more than their share now"
    if told.fallback_counts:
        yield f"answered by fallbacks: {_counts(told.fallback_counts)}"
    for each in told.dependencies:
        if each.hedge.hedge_count:
            yield (
                f"{one_line(each.key)}: {each.hedge.hedge_count} of {each.hedge.call_count} calls "
                f"were sent twice, and {each.hedge.win_count} times the second was faster"
            )


def rejected(rules: Iterable[runtime_pb2.RuleSnapshot]) -> int:
    """Return how many calls these rules have refused, all together."""
    return sum(sum(rule.rejected_counts.values()) for rule in rules)


def bulkhead_table(hops: Iterable[tuple[str, Snapshot | None]]) -> Table:
    """Return a line for each group of dependencies that is or was in demand."""
    table = columns_table(
        ("hop", "calls to group"),
        ("permits", "in use", "peak", "queued", "waited", "mean wait", "refused"),
    )
    for hop, told in hops:
        for group in told.bulkheads if told is not None else ():
            if group.waited_count or group.queued_count or group.rejected_counts:
                table.add_row(Text(hop), *_group(group))
    return table


def _group(group: runtime_pb2.BulkheadSnapshot) -> list[str]:
    wait_s = to_seconds(group.total_wait_duration) / max(1, group.waited_count)
    return [
        one_line(group.group),
        str(group.permit_count),
        str(group.inflight_count),
        str(group.peak_inflight_count),
        f"{group.queued_count} of {group.max_queued_count}",
        str(group.waited_count),
        length_text(wait_s) if group.waited_count else "",
        _counts(group.rejected_counts),
    ]


def _held(loop: runtime_pb2.EventLoopSnapshot) -> Iterator[str]:
    age_s = to_seconds(loop.held_age_duration)
    if loop.held_count and age_s < HELD_SHOWN_S:
        by = f" by {one_line(loop.held_by)}" if loop.held_by else ""
        times = f"; {loop.held_count} times since its start" if loop.held_count > 1 else ""
        yield (
            f"its event loop was held up for {length_text(to_seconds(loop.held_duration))}{by}, "
            f"{length_text(age_s)} ago{times}"
        )


def _door(shed: runtime_pb2.ShedSnapshot) -> Iterator[str]:
    if shed.HasField("order"):
        order = shed.order
        left = length_text(to_seconds(order.remaining_duration))
        which = "all calls" if order.up_to == _HIGHEST else f"calls up to {_level(order.up_to)}"
        who = one_line(order.operator_name) or "an operator"
        yield f"the door refuses {which} for {left} more, by {who}: {one_line(order.reason)}"
    if shed.overload_up_to:
        modes = {rule.rule: rule.mode for rule in shed.rules}
        enforced = modes.get("overload") == runtime_pb2.RULE_MODE_ENFORCE
        yield (
            f"the door {'refuses' if enforced else 'would refuse'} calls up to "
            f"{_level(shed.overload_up_to)} by its own rule: {shed.failed_ratio:.0%} of "
            f"{shed.call_count} calls ended by overload or deadline"
        )


def _level(level: criticality_pb2.Criticality.ValueType) -> str:
    known = criticality_pb2.Criticality.DESCRIPTOR.values_by_number.get(level)
    if known is None or level == criticality_pb2.CRITICALITY_UNSPECIFIED:
        return "an unknown level"
    return known.name.removeprefix("CRITICALITY_")


def _counts(counts: Mapping[str, int]) -> str:
    """Return counts by what they are of, the largest first."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{count} {one_line(name)}" for name, count in ordered)
