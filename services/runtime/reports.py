"""Carries attempt reports from hop to hop in trailing metadata."""

from collections.abc import Iterator, Sequence

from google.protobuf.message import DecodeError

from services.runtime.call import AttemptReport
from services.runtime.durations import set_duration, to_seconds
from sixhop.type.v1.report_pb2 import HopReport, HopReports

REPORTS_KEY = "sixhop-hops-bin"
MAX_BYTES = 5000
"""Metadata of more than 8 KiB may be refused; an error's details travel beside the reports."""

_LIST_TAG = b"\x0a"
"""Begins a report in its list: field 1, with a length."""
_TOLD_TAG = b"\x52"
"""Begins what the callee told in its report: field 10, with a length."""


def encode_reports(reports: Sequence[AttemptReport]) -> bytes:
    """Return the value of the trailing metadata.

    What callees told is put in as it came, unread: a hop deep inside must not pay for reading what
    only the client looks at. Where it does not fit it is left out.
    """
    own = [_encode(report) for report in reports]
    room = MAX_BYTES - sum(map(len, own))
    parts: list[bytes] = []
    for report, encoded in zip(reports, own, strict=True):
        if report.told and len(report.told) <= room:
            room -= len(report.told)
            encoded += _field(_TOLD_TAG, report.told)
        parts.append(_field(_LIST_TAG, encoded))
    return b"".join(parts)


def decode_reports(value: bytes) -> list[AttemptReport]:
    """Return the reports in a value of the trailing metadata, each after what it was told.

    Starts are counted from the arrival at the hop that sent the value. Garbage holds none.
    """
    return _decode(value, 1, 0.0)


def flat_reports(reports: Sequence[AttemptReport]) -> list[AttemptReport]:
    """Return a hop's own reports, each after what it was told, as its caller would decode them."""
    found: list[AttemptReport] = []
    room = MAX_BYTES
    for report in reports:
        if report.told and len(report.told) <= room:
            room -= len(report.told)
            found += _decode(report.told, report.depth + 1, report.start_s)
        found.append(report)
    return found


def _decode(value: bytes, depth: int, arrived_s: float) -> list[AttemptReport]:
    try:
        told = HopReports.FromString(value)
    except DecodeError:
        # Reports are for people: an answer must not fail over them.
        return []
    return list(_flat(told, depth, arrived_s))


def _flat(told: HopReports, depth: int, arrived_s: float) -> Iterator[AttemptReport]:
    for report in told.reports:
        start_s = arrived_s + to_seconds(report.start_duration)
        yield from _flat(report.told, depth + 1, start_s)
        yield AttemptReport(
            hop=report.hop,
            method=report.method,
            depth=depth,
            attempt=report.attempt,
            start_s=start_s,
            given_s=to_seconds(report.given_duration),
            used_s=to_seconds(report.used_duration),
            left_s=to_seconds(report.left_duration),
            outcome=report.outcome,
        )


def _encode(report: AttemptReport) -> bytes:
    one = HopReport(
        hop=report.hop, method=report.method, attempt=report.attempt, outcome=report.outcome
    )
    set_duration(one.start_duration, report.start_s)
    set_duration(one.given_duration, report.given_s)
    set_duration(one.used_duration, report.used_s)
    set_duration(one.left_duration, report.left_s)
    return one.SerializeToString()


def _field(tag: bytes, content: bytes) -> bytes:
    """Return a field of protobuf's wire format: its tag, the length as a varint, the content."""
    length, digits = len(content), bytearray()
    while length > 0x7F:
        digits.append(length & 0x7F | 0x80)
        length >>= 7
    digits.append(length)
    return tag + bytes(digits) + content
