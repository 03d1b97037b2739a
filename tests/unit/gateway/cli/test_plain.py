"""Tests the documents that programs are shown of what a process tells."""

import json

import pytest

from gateway.cli.plain import plain
from services.runtime.durations import to_duration
from sixhop.runtime.v1 import runtime_pb2
from sixhop.type.v1 import criticality_pb2


def test_every_field_of_an_empty_snapshot_has_its_name() -> None:
    document = plain(runtime_pb2.GetSnapshotResponse())

    assert len(document) == len(runtime_pb2.GetSnapshotResponse.DESCRIPTOR.fields)
    assert document["shed"] is None
    assert document["estimated_qps"] is None
    assert document["p50_s"] is None
    assert (document["ready"], document["call_count"], document["dependencies"]) == (False, 0, [])
    json.dumps(document)


def test_lengths_are_seconds_instants_are_utc_and_enums_are_words() -> None:
    order = runtime_pb2.ShedOrder(
        reason="two\nlines\x1b[31m",
        up_to=criticality_pb2.CRITICALITY_SHEDDABLE_PLUS,
        remaining_duration=to_duration(1.23456789),
    )
    order.end_time.FromJsonString("2026-05-06T07:08:09.25Z")
    shed = runtime_pb2.ShedSnapshot(state=runtime_pb2.DOOR_STATE_NARROWED, order=order)

    document = plain(shed)

    assert document["state"] == "narrowed"
    assert document["overload_up_to"] is None
    assert document["order"] == {
        "reason": "two lines[31m",
        "up_to": "SHEDDABLE_PLUS",
        "end_time": "2026-05-06T07:08:09.250+00:00",
        "remaining_s": 1.234568,
        "operator_name": "",
    }


def test_maps_and_lists_keep_what_they_hold() -> None:
    rule = runtime_pb2.RuleSnapshot(
        rule="limit",
        mode=runtime_pb2.RULE_MODE_ENFORCE,
        rejected_counts={"SHEDDABLE": 3, "CRITICAL": 1},
    )
    gate = runtime_pb2.AdmissionSnapshot(limit=4, rules=[rule])

    document = plain(gate)

    assert document["limit"] == 4
    assert document["rules"] == [
        {
            "rule": "limit",
            "mode": "enforce",
            "rejected_counts": {"CRITICAL": 1, "SHEDDABLE": 3},
            "would_reject_counts": {},
        }
    ]


def test_a_scalar_that_may_be_unset_tells_zero_from_unknown() -> None:
    unknown = runtime_pb2.GetSnapshotResponse()
    none_left = runtime_pb2.GetSnapshotResponse(estimated_qps=0.0)

    assert (plain(unknown)["estimated_qps"], plain(none_left)["estimated_qps"]) == (None, 0.0)


@pytest.mark.parametrize(("number", "word"), [(0, None), (2, "open"), (99, "unknown")])
def test_a_value_of_a_later_release_is_unknown(number: int, word: str | None) -> None:
    snapshot = runtime_pb2.DependencySnapshot(breaker_state=number)  # type: ignore[arg-type]

    assert plain(snapshot)["breaker_state"] == word
