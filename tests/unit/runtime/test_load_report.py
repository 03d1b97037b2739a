"""Holds load reports to the wire form of ORCA, and to being cheap."""

import math
from collections.abc import Mapping

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

from services.runtime.circuit import BreakerState
from services.runtime.clock import ManualClock
from services.runtime.load_report import (
    LOAD_REPORT_KEY,
    MAX_BYTES,
    MAX_NAMED,
    ORCA_REPORT_KEY,
    REBUILD_INTERVAL_S,
    LoadReader,
    LoadReport,
    LoadReporter,
    encode_load_report,
    read_load_report,
)
from sixhop.type.v1 import load_pb2
from tests.requirements import requirement

FULL = LoadReport(
    cpu_utilization=0.5,
    application_utilization=0.25,
    rps=12.5,
    eps=0.5,
    p50_s=0.125,
    p90_s=0.5,
    wait_s=0.0625,
    path_s=0.75,
    estimated_qps=99.5,
    inflight=3,
    limit=12,
    queued=2,
    note_p90_s={"sql": 0.25, "pdf": 2.5},
    breakers={"tool/sql": BreakerState.OPEN, "model": BreakerState.HALF_OPEN},
    mean_s={"model": 1.5},
)
BRIEF = LoadReport(
    cpu_utilization=0.5, application_utilization=0.25, rps=12.5, eps=0.5, estimated_qps=99.5
)
"""What a balancer is told of it."""
NUMBERS = st.floats(allow_nan=True, allow_infinity=True)
FIELDS = descriptor_pb2.FieldDescriptorProto
ORCA = {"cpu_utilization": 1, "rps_fractional": 6, "eps": 7, "application_utilization": 9}
"""The numbers of gRFC A51's OrcaLoadReport; all of these are doubles."""


def orca_message() -> type[Message]:
    """Return ORCA's own message as far as its readers look at it."""
    file = descriptor_pb2.FileDescriptorProto(name="orca.proto", syntax="proto3")
    message = file.message_type.add(name="OrcaLoadReport")
    for name, number in ORCA.items():
        message.field.add(
            name=name, number=number, type=FIELDS.TYPE_DOUBLE, label=FIELDS.LABEL_OPTIONAL
        )
    entry = message.nested_type.add(name="NamedMetricsEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=FIELDS.TYPE_STRING, label=FIELDS.LABEL_OPTIONAL)
    entry.field.add(name="value", number=2, type=FIELDS.TYPE_DOUBLE, label=FIELDS.LABEL_OPTIONAL)
    message.field.add(
        name="named_metrics",
        number=8,
        type=FIELDS.TYPE_MESSAGE,
        type_name=".OrcaLoadReport.NamedMetricsEntry",
        label=FIELDS.LABEL_REPEATED,
    )
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("OrcaLoadReport"))


class Load:
    """Is measured, and counts how often."""

    def __init__(self) -> None:
        self.report = LoadReport()
        self.count = 0

    def measure(self) -> LoadReport:
        """Return what the test has set."""
        self.count += 1
        return self.report


@requirement("load:orca-wire-form")
def test_the_bytes_are_those_of_an_orca_load_report() -> None:
    read = orca_message().FromString(encode_load_report(FULL))

    assert {name: getattr(read, name) for name in ORCA} == {
        "cpu_utilization": 0.5,
        "rps_fractional": 12.5,
        "eps": 0.5,
        "application_utilization": 0.25,
    }
    named: Mapping[str, float] = getattr(read, "named_metrics")  # noqa: B009  # a dynamic message
    assert (named["p50_s"], named["breaker/tool/sql"], named["mean_s/model"]) == (0.125, 1.0, 1.5)


def test_a_report_comes_back_as_it_was_told() -> None:
    assert read_load_report(encode_load_report(FULL)) == FULL
    assert read_load_report(encode_load_report(LoadReport())) == LoadReport()


def test_a_report_of_a_foreign_server_leaves_unknown_what_it_does_not_tell() -> None:
    # ORCA's retired field 3 and one that nobody knows come along.
    foreign = load_pb2.LoadReport(cpu_utilization=0.5, rps_fractional=7).SerializeToString()

    assert read_load_report(foreign + b"\x18\x07\xf8\x06\x01") == LoadReport(
        cpu_utilization=0.5, rps=7
    )


@pytest.mark.parametrize("garbage", [b"\xff", b"\x42\xff\xff", b"no report", b"\0" * 9000])
def test_garbage_is_no_report(garbage: bytes) -> None:
    assert read_load_report(garbage) is None


@given(value=st.binary(max_size=64))
def test_no_bytes_raise(value: bytes) -> None:
    read_load_report(value)


@given(numbers=st.lists(NUMBERS, min_size=8, max_size=8))
def test_numbers_that_can_be_no_load_are_not_told(numbers: list[float]) -> None:
    names = ("p50_s", "p90_s", "path_s", "inflight", "limit", "p90_s/x", "mean_s/y")
    value = load_pb2.LoadReport(
        cpu_utilization=numbers[7], named_metrics=dict(zip(names, numbers, strict=False))
    ).SerializeToString()

    report = read_load_report(value)

    assert report is not None
    told = [report.p50_s, report.p90_s, report.path_s, report.inflight, report.limit]
    told += [*report.note_p90_s.values(), *report.mean_s.values(), report.cpu_utilization]
    assert all(number is None or (math.isfinite(number) and number >= 0) for number in told)


def test_a_report_is_no_longer_than_metadata_may_be() -> None:
    many = {f"a-tool-with-a-rather-long-name-{number}": 1.0 for number in range(1000)}
    breakers = dict.fromkeys(many, BreakerState.OPEN)

    value = encode_load_report(LoadReport(note_p90_s=many, mean_s=many, breakers=breakers))

    report = read_load_report(value)
    assert len(value) < MAX_BYTES
    assert report is not None
    assert len(report.breakers) == len(report.mean_s) == len(report.note_p90_s) == MAX_NAMED


@requirement("load:cheap")
def test_a_report_is_built_once_in_a_tenth_of_a_second() -> None:
    clock = ManualClock()
    load = Load()
    reporter = LoadReporter(load.measure, clock)

    first = [reporter.current(full=True) for _ in range(1000)]
    load.report = FULL
    clock.advance(REBUILD_INTERVAL_S * 0.9)
    still = reporter.current(full=True)
    clock.advance(REBUILD_INTERVAL_S * 0.2)
    later = reporter.current(full=True)

    empty = encode_load_report(LoadReport())
    assert {*first, still} == {((ORCA_REPORT_KEY, b""), (LOAD_REPORT_KEY, empty))}
    assert [(key, read_load_report(value)) for key, value in later] == [
        (ORCA_REPORT_KEY, BRIEF),
        (LOAD_REPORT_KEY, FULL),
    ]
    assert load.count == 2


@requirement("load:cheap")
def test_unasked_an_answer_tells_what_balancers_choose_by_and_no_more() -> None:
    load = Load()
    load.report = FULL
    reporter = LoadReporter(load.measure, ManualClock())

    told = reporter.current(full=False)

    assert [(key, read_load_report(value)) for key, value in told] == [(ORCA_REPORT_KEY, BRIEF)]
    assert sum(len(value) for _, value in told) < 80


@requirement("load:cheap")
def test_the_same_report_is_read_once_and_counts_as_new() -> None:
    clock = ManualClock()
    reader, value = LoadReader(clock), encode_load_report(FULL)
    reader.note(value)
    first = reader.report
    clock.advance(5)
    aged = reader.age_s()

    reader.note(bytes(bytearray(value)))

    assert first == FULL
    assert reader.report is first
    assert (aged, reader.age_s()) == (5, 0)


def test_garbage_leaves_the_last_report_and_its_age() -> None:
    clock = ManualClock()
    reader = LoadReader(clock)
    nothing = (reader.report, reader.age_s())
    reader.note(encode_load_report(FULL))
    clock.advance(5)

    reader.note(b"\xff")

    assert nothing == (None, math.inf)
    assert (reader.report, reader.age_s()) == (FULL, 5)
