"""Holds the reports of attempts to what their callers wrote."""

import pytest

from services.runtime.call import MAX_REPORTS, AttemptReport, Call, CallLimits, Inbound
from services.runtime.clock import ManualClock
from services.runtime.reports import MAX_BYTES, decode_reports, encode_reports, flat_reports
from services.runtime.statistics import Activity
from services.runtime.telemetry import AttemptTelemetry


def report(hop: str = "model", *, start_s: float = 0.5) -> AttemptReport:
    """Return a report with no two numbers the same."""
    return AttemptReport(hop, "Generate", 1, 2, start_s, 6.25, 1.125, -0.75, "ABORTED/X")


def test_reports_come_back_as_they_were_sent() -> None:
    sent = [report("llm"), report()]

    assert decode_reports(encode_reports(sent)) == sent


def test_no_reports_are_no_bytes() -> None:
    assert encode_reports([]) == b""
    assert decode_reports(b"") == []


@pytest.mark.parametrize("garbage", [b"\xff", b"\x0a\xff\xff", b"no reports at all"])
def test_garbage_holds_no_reports(garbage: bytes) -> None:
    """Reports are for people; an answer must not fail over them."""
    assert decode_reports(garbage) == []


def test_what_a_callee_told_comes_back_one_deeper_and_on_its_callers_scale() -> None:
    deepest = encode_reports([report("llm", start_s=0.25)])
    told = encode_reports([report("model", start_s=0.5)._replace(told=deepest)])

    value = encode_reports([report("tool", start_s=1.25)._replace(told=told)])

    seen = [(one.hop, one.depth, one.start_s) for one in decode_reports(value)]
    assert seen == [("llm", 3, 2.0), ("model", 2, 1.75), ("tool", 1, 1.25)]


def test_a_hop_reads_its_own_reports_as_its_caller_does() -> None:
    told = encode_reports([report("llm")] * 3)
    own = [report("tool"), report("model", start_s=1.25)._replace(told=told)]

    flat = [one._replace(told=b"") for one in flat_reports(own)]

    assert flat == decode_reports(encode_reports(own))
    assert [one.depth for one in flat] == [1, 2, 2, 2, 1]


def test_a_hop_that_is_told_too_much_keeps_to_what_its_caller_can_be_told() -> None:
    told = encode_reports([report("x" * 3000)])

    flat = flat_reports([report("model")._replace(told=told)] * 3)

    assert [one.depth for one in flat] == [2, 1, 1, 1]


def test_what_cannot_be_read_of_a_callee_leaves_the_own_report() -> None:
    assert [one.hop for one in flat_reports([report()._replace(told=b"\xff")])] == ["model"]


@pytest.mark.parametrize("length", [1, 127, 128, 300, 4000])
def test_what_a_callee_told_comes_back_whatever_its_length(length: int) -> None:
    told = encode_reports([report("x" * length)])

    first, second = decode_reports(encode_reports([report()._replace(told=told)]))

    assert (first.hop, second.hop) == ("x" * length, "model")


def test_no_more_reports_are_kept_than_metadata_can_hold() -> None:
    served = Inbound("tool", "ExecuteTool", False, 0.0, 10.0)
    call = Call("model", "Generate", False, served, CallLimits(step_timeout_s=5.0))
    telemetry = AttemptTelemetry(ManualClock(), Activity())

    for _ in range(MAX_REPORTS + 5):
        telemetry.before(call)
        telemetry.after(call, None)

    assert len(served.reports) == MAX_REPORTS


def test_as_many_reports_as_may_travel_fit_beside_an_error() -> None:
    """Metadata of more than 8 KiB may be refused by whoever receives it."""
    longest = AttemptReport(
        "routing",
        "ExecuteTool summarise",
        5,
        2,
        119.123456789,
        118.123456789,
        117.123456789,
        116.123456789,
        "RESOURCE_EXHAUSTED/DEPENDENCY_OVERLOADED",
    )

    assert len(encode_reports([longest] * MAX_REPORTS)) < 5000


def test_what_a_callee_told_stands_before_the_report_of_the_call_to_it() -> None:
    told = encode_reports([report("llm")])
    sent = [report("model")._replace(told=told), report("tool")]

    assert [one.hop for one in decode_reports(encode_reports(sent))] == ["llm", "model", "tool"]


def test_own_reports_are_told_even_when_there_is_no_room_for_what_callees_told() -> None:
    told = encode_reports([report("llm")] * MAX_REPORTS)
    sent = [report("model")._replace(told=told), report("tool")._replace(told=told)]

    value = encode_reports(sent)

    assert len(value) <= MAX_BYTES
    assert [one.hop for one in decode_reports(value) if one.depth == 1] == ["model", "tool"]
