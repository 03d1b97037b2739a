"""Tests the sentences that people are shown of what policies do."""

import pytest

from gateway.cli.policy_notes import bulkhead_table, policy_notes, rejected
from services.runtime.durations import to_duration
from sixhop.runtime.v1 import runtime_pb2
from sixhop.type.v1 import criticality_pb2

ENFORCE, OBSERVE = runtime_pb2.RULE_MODE_ENFORCE, runtime_pb2.RULE_MODE_OBSERVE
ALL = criticality_pb2.CRITICALITY_CRITICAL_PLUS
SOME = criticality_pb2.CRITICALITY_SHEDDABLE


def notes(**fields: object) -> list[str]:
    """Return what is said of a hop that tells this."""
    return list(policy_notes(runtime_pb2.GetSnapshotResponse(**fields)))  # type: ignore[arg-type]


def test_nothing_is_said_of_a_hop_where_all_is_as_usual_or_that_was_not_heard() -> None:
    shed = runtime_pb2.ShedSnapshot(state=runtime_pb2.DOOR_STATE_OPEN, call_count=40)
    gate = runtime_pb2.AdmissionSnapshot(limit=256, rules=[runtime_pb2.RuleSnapshot(rule="limit")])

    assert notes(shed=shed, admission=gate) == []
    assert list(policy_notes(None)) == []


@pytest.mark.parametrize(
    ("up_to", "operator", "says"),
    [
        (ALL, "ada@desk", "the door refuses all calls for 42.00 s more, by ada@desk: too much"),
        (SOME, "", "the door refuses calls up to SHEDDABLE for 42.00 s more, by an operator"),
        (77, "", "the door refuses calls up to an unknown level for 42.00 s more"),
    ],
)
def test_an_order_is_told_with_who_gave_it_and_how_long_it_lasts(
    up_to: int, operator: str, says: str
) -> None:
    order = runtime_pb2.ShedOrder(
        reason="too\nmuch",
        up_to=up_to,  # type: ignore[arg-type]
        remaining_duration=to_duration(42.0),
        operator_name=operator,
    )

    (note,) = notes(shed=runtime_pb2.ShedSnapshot(order=order))

    assert note.startswith(says)


@pytest.mark.parametrize(("mode", "verb"), [(ENFORCE, "refuses"), (OBSERVE, "would refuse")])
def test_the_own_rule_is_told_with_its_numbers(
    mode: runtime_pb2.RuleMode.ValueType, verb: str
) -> None:
    shed = runtime_pb2.ShedSnapshot(
        overload_up_to=SOME,
        failed_ratio=0.51,
        call_count=40,
        rules=[runtime_pb2.RuleSnapshot(rule="overload", mode=mode)],
    )

    assert notes(shed=shed) == [
        f"the door {verb} calls up to SHEDDABLE by its own rule: 51% of 40 calls ended by "
        "overload or deadline"
    ]


def test_a_process_out_of_service_or_with_a_late_loop_says_so() -> None:
    ejection = runtime_pb2.EjectionSnapshot(ejected=True, remaining_duration=to_duration(12.0))
    loop = runtime_pb2.EventLoopSnapshot(lagging=True, lag_duration=to_duration(0.4))

    assert notes(ejection=ejection, event_loop=loop) == [
        "has taken itself out of service for 12.00 s more: its own streams failed",
        "its event loop lags, by 400 ms",
    ]


@pytest.mark.parametrize(
    ("by", "count", "age_s", "says"),
    [
        ("ExecuteTool slow at s.py:9", 1, 2.0, " by ExecuteTool slow at s.py:9, 2.00 s ago"),
        ("", 3, 2.0, ", 2.00 s ago; 3 times since its start"),
        ("", 3, 301.0, ""),
    ],
)
def test_what_has_held_an_event_loop_up_is_told_for_a_while(
    by: str, count: int, age_s: float, says: str
) -> None:
    loop = runtime_pb2.EventLoopSnapshot(
        held_count=count,
        held_by=by,
        held_duration=to_duration(3.0),
        held_age_duration=to_duration(age_s),
    )

    said = notes(event_loop=loop)

    assert said == ([f"its event loop was held up for 3.00 s{says}"] if says else [])


def test_refusals_are_told_by_rule_and_level_the_most_frequent_first() -> None:
    rules = [
        runtime_pb2.RuleSnapshot(rule="limit", rejected_counts={"CRITICAL": 3, "SHEDDABLE": 12}),
        runtime_pb2.RuleSnapshot(rule="estimate", would_reject_counts={"CRITICAL": 4}),
    ]

    assert notes(admission=runtime_pb2.AdmissionSnapshot(rules=rules)) == [
        "limit has refused 12 SHEDDABLE, 3 CRITICAL",
        "estimate would have refused 4 CRITICAL",
    ]
    assert rejected(rules) == 15


def test_tenants_over_their_share_fallbacks_and_second_attempts_are_counted() -> None:
    levels = [runtime_pb2.LevelSnapshot(over_share_count=count) for count in (0, 2, 1)]
    hedged = runtime_pb2.DependencySnapshot(
        key="tool/sql",
        hedge=runtime_pb2.HedgeSnapshot(call_count=120, hedge_count=3, win_count=2),
    )

    assert notes(
        admission=runtime_pb2.AdmissionSnapshot(levels=levels),
        fallback_counts={"skip": 2, "cache": 5},
        dependencies=[hedged],
    ) == [
        "3 tenants have more than their share now",
        "answered by fallbacks: 5 cache, 2 skip",
        "tool/sql: 3 of 120 calls were sent twice, and 2 times the second was faster",
    ]


def test_only_groups_that_were_in_demand_have_a_line() -> None:
    idle = runtime_pb2.BulkheadSnapshot(group="data", permit_count=32, admitted_count=9)
    waited = runtime_pb2.BulkheadSnapshot(
        group="external",
        permit_count=8,
        waited_count=4,
        total_wait_duration=to_duration(0.8),
        rejected_counts={"tenant": 2},
    )
    told = runtime_pb2.GetSnapshotResponse(bulkheads=[idle, waited])

    table = bulkhead_table([("domain", told), ("tool", None)])

    assert table.row_count == 1
    cells = [next(iter(column.cells)) for column in table.columns]
    assert [str(cell) for cell in cells] == [
        "domain",
        "external",
        "8",
        "0",
        "0",
        "0 of 0",
        "4",
        "200 ms",
        "2 tenant",
    ]
