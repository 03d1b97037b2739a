"""Writes the state of the policies as it goes onto the wire."""

from collections.abc import Iterable, Mapping

from google.protobuf.timestamp_pb2 import Timestamp

from services.runtime.call import Criticality, Mode
from services.runtime.clock import Clock
from services.runtime.durations import to_duration
from services.runtime.policies.admission import AdmissionSnapshot
from services.runtime.policies.bulkhead import BulkheadSnapshot
from services.runtime.policies.self_ejection import LagReadiness, SelfEjectionSnapshot
from services.runtime.policies.shed import Order, ShedSnapshot
from sixhop.runtime.v1 import runtime_pb2
from sixhop.type.v1 import criticality_pb2

_MODES = {
    Mode.OFF: runtime_pb2.RULE_MODE_OFF,
    Mode.OBSERVE: runtime_pb2.RULE_MODE_OBSERVE,
    Mode.ENFORCE: runtime_pb2.RULE_MODE_ENFORCE,
}
_NOBODY = criticality_pb2.CRITICALITY_UNSPECIFIED
_LEVELS = {
    level: criticality_pb2.Criticality.Value(f"CRITICALITY_{level.name}") for level in Criticality
}


def admission_state(seen: AdmissionSnapshot) -> runtime_pb2.AdmissionSnapshot:
    """Return who is let in."""
    return runtime_pb2.AdmissionSnapshot(
        limit=seen.limit,
        limit_kind=seen.limit_kind,
        inflight_count=seen.inflight,
        peak_inflight_count=seen.peak_inflight,
        served_count=seen.served_count,
        spared_count=seen.spared_count,
        waiting_count=seen.waiting,
        waited_count=seen.waited_count,
        rules=_rules(seen.modes, seen.refused, seen.would_refuse),
        levels=[
            runtime_pb2.LevelSnapshot(
                level=_LEVELS[level],
                room_count=each.room,
                inflight_count=each.share.inflight,
                tenant_count=each.share.tenant_count,
                over_share_count=each.share.over_count,
                kept_ratio=each.share.kept_ratio,
            )
            for level, each in seen.levels.items()
        ],
    )


def shed_state(seen: ShedSnapshot, clock: Clock) -> runtime_pb2.ShedSnapshot:
    """Return how the fast-fail switch stands."""
    state = runtime_pb2.DOOR_STATE_NARROWED
    if seen.up_to is None:
        state = runtime_pb2.DOOR_STATE_OPEN
    elif seen.up_to is max(Criticality):
        state = runtime_pb2.DOOR_STATE_CLOSED
    modes = {"operator": Mode.ENFORCE, "overload": seen.mode}
    return runtime_pb2.ShedSnapshot(
        state=state,
        order=None if seen.order is None else order_state(seen.order, clock),
        overload_up_to=_LEVELS[seen.overload_up_to] if seen.overload_up_to else _NOBODY,
        failed_ratio=seen.failed_ratio,
        call_count=seen.call_count,
        rules=_rules(modes, seen.refused, seen.would_refuse),
    )


def order_state(order: Order, clock: Clock) -> runtime_pb2.ShedOrder:
    """Return an operator's order."""
    left_s = max(0.0, order.until - clock.now())
    end = Timestamp()
    end.FromNanoseconds(round((clock.utc().timestamp() + left_s) * 1e9))
    return runtime_pb2.ShedOrder(
        reason=order.reason,
        up_to=_LEVELS[order.up_to],
        end_time=end,
        remaining_duration=to_duration(left_s),
        operator_name=order.operator,
    )


def ejection_state(seen: SelfEjectionSnapshot, now: float) -> runtime_pb2.EjectionSnapshot:
    """Return whether the process has taken itself out of service."""
    until = seen.ejected_until
    return runtime_pb2.EjectionSnapshot(
        ejected=seen.ejected,
        failure_count=seen.failure_count,
        remaining_duration=None if until is None else to_duration(max(0.0, until - now)),
        ejection_count=seen.ejection_count,
        would_eject_count=seen.would_eject_count,
    )


def event_loop_state(lag: LagReadiness, now: float) -> runtime_pb2.EventLoopSnapshot:
    """Return how late the event loop is, and what has held it up last."""
    state = runtime_pb2.EventLoopSnapshot(
        lag_duration=to_duration(lag.last_s),
        worst_lag_duration=to_duration(lag.worst_s),
        lagging=not lag.ready,
        held_count=lag.held_count,
    )
    if lag.last_held is not None:
        state.held_by = lag.last_held.by
        state.held_duration.CopyFrom(to_duration(lag.last_held.length_s))
        state.held_age_duration.CopyFrom(to_duration(max(0.0, now - lag.last_held.until)))
    return state


def bulkhead_states(seen: BulkheadSnapshot) -> Iterable[runtime_pb2.BulkheadSnapshot]:
    """Yield each group; tenants are counted and not named, for anybody may ask."""
    for group, each in seen.groups.items():
        yield runtime_pb2.BulkheadSnapshot(
            group=group.value,
            mode=_MODES[seen.mode],
            permit_count=each.permits,
            inflight_count=each.inflight,
            peak_inflight_count=each.peak_inflight,
            max_queued_count=each.max_queued,
            queued_count=each.queued,
            admitted_count=each.admitted_count,
            waited_count=each.waited_count,
            total_wait_duration=to_duration(each.wait_total_s),
            avg_hold_duration=to_duration(each.average_hold_s),
            rejected_counts={what: count for what, count in each.refused.items() if count},
            callee_inflight_counts={key: count for key, count in each.callees.items() if count},
            tenant_count=len(each.tenants),
        )


def _rules(
    modes: Mapping[str, Mode], refused: Mapping[str, int], would_refuse: Mapping[str, int]
) -> list[runtime_pb2.RuleSnapshot]:
    """Return each rule with its counts, which come by rule and level: `limit/SHEDDABLE`."""
    return [
        runtime_pb2.RuleSnapshot(
            rule=rule,
            mode=_MODES[mode],
            rejected_counts=_of(rule, refused),
            would_reject_counts=_of(rule, would_refuse),
        )
        for rule, mode in modes.items()
    ]


def _of(rule: str, counts: Mapping[str, int]) -> dict[str, int]:
    prefix = f"{rule}/"
    return {
        name.removeprefix(prefix): count
        for name, count in counts.items()
        if name.startswith(prefix)
    }
