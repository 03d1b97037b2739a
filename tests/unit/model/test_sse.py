"""Cuts streams of events at every byte, and expects the same events each time."""

import json
from collections.abc import Iterator

import pytest

from services.model.sse import Decoder, Event, EventTooLongError

TEXT = "数据 é 😀 a\u2028b\u2029c\u0085d\x0be\x0cf"
JSON = json.dumps({"content": TEXT}, ensure_ascii=False)

CASES: dict[str, tuple[str, list[tuple[str, str]]]] = {
    "one event": (f"data: {JSON}\n\n", [(JSON, "message")]),
    "two events": ("data: 1\n\ndata: 2\n\n", [("1", "message"), ("2", "message")]),
    "no space after the colon": (f"data:{JSON}\n\n", [(JSON, "message")]),
    "one space only is taken off": ("data:  1\n\n", [(" 1", "message")]),
    "comments": (": keep-alive\n\n: x\ndata: 1\n:\n\n: y\n\n", [("1", "message")]),
    "several data lines": ("data: a\ndata: b\ndata\ndata: c\n\n", [("a\nb\n\nc", "message")]),
    "an event's kind": ("event: error\ndata: 1\n\ndata: 2\n\n", [("1", "error"), ("2", "message")]),
    "a kind without data is dropped": ("event: ping\n\ndata: 1\n\n", [("1", "message")]),
    "empty data are dropped": ("data:\n\ndata: \n\ndata: 1\n\n", [("1", "message")]),
    "id and retry": ("id: 7\n\n\nretry: 5\n\nid: 8\ndata: 1\n\n\n\n", [("1", "message")]),
    "unknown fields": ("foo: bar\nbaz\ndata: 1\ndatax: 2\n\n", [("1", "message")]),
    "a byte order mark": (
        "\ufeffdata: 1\n\ndata: \ufeff2\n\n", [("1", "message"), ("\ufeff2", "message")],
    ),
    "an unfinished event is dropped": ("data: 1\n\ndata: 2\n", [("1", "message")]),
    "an unfinished line is dropped": ("data: 1\n\ndata: 2", [("1", "message")]),
    "nothing": ("", []),
}  # fmt: skip
ENDINGS = ["\n", "\r", "\r\n"]


def every_cut(stream: bytes) -> Iterator[list[bytes]]:
    """Yield the stream in one piece, in two pieces cut anywhere, and byte by byte."""
    yield [stream]
    yield [stream[at : at + 1] for at in range(len(stream))]
    for at in range(1, len(stream)):
        yield [stream[:at], stream[at:]]
        yield [stream[:at], b"", stream[at:]]


def decode(pieces: list[bytes], decoder: Decoder | None = None) -> list[Event]:
    decoder = decoder or Decoder()
    return [event for piece in pieces for event in decoder.feed(piece)]


@pytest.mark.parametrize("ending", ENDINGS, ids=["LF", "CR", "CRLF"])
@pytest.mark.parametrize("case", CASES)
def test_events_do_not_depend_on_where_the_network_cuts(case: str, ending: str) -> None:
    text, expected = CASES[case]
    stream = text.replace("\n", ending).encode()

    found = {tuple(decode(pieces)) for pieces in every_cut(stream)}

    assert found == {tuple(Event(data.encode(), kind) for data, kind in expected)}


def test_line_endings_may_be_mixed() -> None:
    stream = b"data: 1\r\rdata: 2\n\r\ndata: 3\r\n\ndata: 4\n\r"

    found = {tuple(event.data for event in decode(pieces)) for pieces in every_cut(stream)}

    assert found == {(b"1", b"2", b"3", b"4")}


def test_an_event_is_given_as_soon_as_its_blank_line_is_there() -> None:
    decoder = Decoder()

    found = [
        len(list(decoder.feed(piece))) for piece in (b"data: 1\r\n", b"\r", b"\n", b"data: 2\n\n")
    ]

    assert found == [0, 1, 0, 1]


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_line_above_its_bound_is_refused(size: int) -> None:
    decoder = Decoder(max_line_bytes=100)
    stream = b"data: " + b"x" * 95 + b"\n\n"

    with pytest.raises(EventTooLongError):
        decode([stream[at : at + size] for at in range(0, len(stream), size)], decoder)


def test_a_line_at_its_bound_is_taken() -> None:
    decoder = Decoder(max_line_bytes=100)

    found = decode([b"data: " + b"x" * 94 + b"\n\n"], decoder)

    assert found == [Event(b"x" * 94)]


def test_an_event_above_its_bound_is_refused_although_its_lines_are_short() -> None:
    decoder = Decoder(max_event_bytes=100)

    with pytest.raises(EventTooLongError):
        decode([b"data: 12345678\n"] * 20, decoder)


def test_what_came_before_a_line_above_its_bound_is_given() -> None:
    decoder = Decoder(max_line_bytes=100)
    found = decoder.feed(b"data: 1\n\ndata: " + b"x" * 200)

    assert next(found) == Event(b"1")
    with pytest.raises(EventTooLongError):
        next(found)


def test_many_empty_data_lines_are_bounded_too() -> None:
    decoder = Decoder(max_event_bytes=100)

    with pytest.raises(EventTooLongError):
        decode([b"data:\n"] * 200, decoder)


def test_a_long_line_in_small_pieces_is_joined_once() -> None:
    decoder = Decoder()
    pieces = [b"x"] * 200_000

    found = decode([b"data: ", *pieces, b"\n\n"], decoder)

    # A decoder that joins at every piece would copy 20 GB here, and hit the test's time limit.
    assert [len(event.data) for event in found] == [200_000]
