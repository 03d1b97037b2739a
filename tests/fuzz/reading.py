"""Reads a stream of bytes as the client of the provider does, and judges what comes of it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import orjson

from services.model.backend import Finish, Piece, Provider, Reasoning, Text
from services.model.completion import COMPLETE_REASONS, Completion
from services.model.refusal import Exchange
from services.model.sse import Decoder, Event, EventTooLongError
from services.runtime.conversation import Message, ToolCall, ToolOffer
from services.runtime.errors import SixhopError

MAX_LINE_BYTES = 4096
MAX_EVENT_BYTES = 8192
MAX_WRITTEN_TOKENS = 4000
"""Small, so that their bounds are reached."""

EXCHANGE = Exchange(
    Provider(base_url="http://provider/v1", model="m", max_written_tokens=MAX_WRITTEN_TOKENS),
    [Message("user", "How many orders?")],
    [ToolOffer("sql", "Asks.", "{}")],
)


@dataclass(frozen=True, slots=True)
class Reading:
    """Is what came of one stream."""

    text: str
    reasoning: str
    calls: tuple[ToolCall, ...]
    finish: Finish | None
    failure: str
    """The cause of the error that ended it; empty after a success."""


def read(pieces: Sequence[bytes]) -> Reading:
    """Return what comes of a stream that arrives in these pieces."""
    completion = Completion(EXCHANGE)
    given: list[Piece] = []
    failure = ""
    try:
        for event in _events(pieces, completion):
            # One by one: what an event says before it fails counts.
            for piece in completion.take(event):
                given.append(piece)  # noqa: PERF402
        given += completion.end()
    except SixhopError as error:
        failure = _cause(error)
    except EventTooLongError:
        failure = "event_too_long"
    finish = given[-1] if given else None
    return Reading(
        "".join(each.text for each in given if isinstance(each, Text)),
        "".join(each.text for each in given if isinstance(each, Reasoning)),
        tuple(each for each in given if isinstance(each, ToolCall)),
        finish if isinstance(finish, Finish) else None,
        failure,
    )


def _events(pieces: Sequence[bytes], completion: Completion) -> Iterator[Event]:
    decoder = Decoder(max_line_bytes=MAX_LINE_BYTES, max_event_bytes=MAX_EVENT_BYTES)
    for piece in pieces:
        for event in decoder.feed(piece):
            yield event
            if completion.done:
                return


def _cause(error: SixhopError) -> str:
    assert error.origin is not None
    assert error.origin.hop == "llm"
    assert error.cause
    return error.cause


def cut(data: bytes, places: Sequence[int]) -> list[bytes]:
    """Return the bytes in pieces."""
    bounds = sorted({place % (len(data) + 1) for place in places})
    edges = [0, *bounds, len(data)]
    return [data[start:end] for start, end in pairwise(edges)]


def judge(data: bytes, places: Sequence[int]) -> Reading:
    """Read a stream whole and in pieces, and hold what comes of it to its promises.

    Raises:
        AssertionError: one is broken.
    """
    whole, pieces = read([data]), read(cut(data, places))
    assert whole == pieces, (whole, pieces)
    assert (whole.finish is None) is bool(whole.failure)
    assert all(call.id and call.name for call in whole.calls)
    if whole.finish is not None:
        assert _says_that_it_is_whole(data), whole
        assert whole.finish.usage.output_token_count >= 0
    assert len(whole.text) + len(whole.reasoning) <= 8 * MAX_WRITTEN_TOKENS + len(data)
    return whole


def _says_that_it_is_whole(data: bytes) -> bool:
    """Tell, by other means than the decoder, whether a finish reason stands in the bytes."""
    lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    joined = b"\n".join(lines)
    return any(f'"{reason}"'.encode() in joined for reason in COMPLETE_REASONS) or any(
        _reason_in(line) for line in lines
    )


def _reason_in(line: bytes) -> bool:
    # A reason may be written with escapes.
    try:
        value = orjson.loads(line.partition(b":")[2])
    except orjson.JSONDecodeError:
        return b"\\u" in line
    return any(reason in orjson.dumps(value).decode() for reason in COMPLETE_REASONS)
