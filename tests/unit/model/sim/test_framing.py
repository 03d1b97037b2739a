"""Shows that every framing carries the same events, in the bytes that it names."""

import pytest

from services.model.sim.faults import read_rule
from services.model.sim.framing import Framer
from services.model.sim.vocabulary import FAULTS
from services.model.sse import Decoder

DATA = ['{"a": "é🙂 \u2028 x", "b": [1, 2]}'.encode(), b'{"c": {}}', b"[DONE]"]


def framer(name: str) -> Framer:
    return Framer(read_rule(name, FAULTS).fault)


def decoded(name: str) -> list[bytes]:
    framing, decoder = framer(name), Decoder()
    found: list[bytes] = []
    for data in DATA:
        for piece in framing.pieces(framing.comment() + framing.event(data)):
            found += [event.data for event in decoder.feed(piece)]
    return found


@pytest.mark.parametrize(
    "name",
    [
        "none",
        "crlf",
        "cr",
        "mixed-lines",
        "bom",
        "one-byte",
        "split-utf8",
        "no-space",
        "extra-events",
        "mixed-lines+bom+one-byte+no-space+extra-events",
    ],
)
def test_a_strict_reader_gets_the_same_events_from_every_framing(name: str) -> None:
    assert decoded(name) == DATA


def test_data_in_several_lines_is_the_same_json() -> None:
    assert [data.replace(b"\n", b"").replace(b" ", b"") for data in decoded("multiline")] == [
        data.replace(b" ", b"") for data in DATA
    ]


def test_each_framing_is_what_it_says() -> None:
    assert framer("none").event(b"x") == b"data: x\n\n"
    assert framer("crlf").event(b"x") == b"data: x\r\n\r\n"
    assert framer("cr").event(b"x") == b"data: x\r\r"
    assert framer("bom").event(b"x") == b"\xef\xbb\xbfdata: x\n\n"
    assert framer("no-space").event(b"x") == b"data:x\n\n"
    assert framer("none").event(b"x", "error") == b"event: error\ndata: x\n\n"
    assert framer("multiline").event(b'{"a":1}').count(b"data: ") == 3
    extra = framer("extra-events")
    assert b"retry: 3000\n\n" in b"".join(extra.event(b"x") for _ in range(4))


def test_only_the_first_bytes_have_the_mark() -> None:
    one = framer("bom")

    assert (one.comment() + one.event(b"x")).count(b"\xef\xbb\xbf") == 1


def test_a_split_inside_utf8_leaves_no_piece_with_a_whole_character() -> None:
    pieces = framer("split-utf8").pieces("é🙂".encode())

    assert b"".join(pieces) == "é🙂".encode()
    for piece in pieces:
        with pytest.raises(UnicodeDecodeError):
            piece.decode()
