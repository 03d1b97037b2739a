"""Feeds the client of the provider what no provider should send, cut anywhere."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.reading import MAX_LINE_BYTES, judge, read

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 99) | st.text(max_size=6) | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
TEXT = st.text(st.sampled_from('a数😀\u2028\u2029\u0085\x0b\x0c\\"{}'), max_size=8)


def sometimes(good: st.SearchStrategy[Any], bad: st.SearchStrategy[Any] = JSON) -> Any:
    """Draw what is as it should be nine times of ten."""
    return st.integers(0, 9).flatmap(lambda number: good if number else bad)


FUNCTION = st.fixed_dictionaries(
    {}, optional={"name": sometimes(st.just("sql")), "arguments": sometimes(TEXT)}
)
CALL = st.fixed_dictionaries(
    {"index": sometimes(st.integers(0, 2))},
    optional={
        "id": sometimes(st.sampled_from(["a", "b", ""])),
        "type": sometimes(st.just("function")),
        "function": sometimes(FUNCTION),
    },
)
DELTA = st.fixed_dictionaries(
    {},
    optional={
        "role": st.just("assistant"),
        "content": sometimes(TEXT | st.none()),
        "reasoning_content": sometimes(TEXT),
        "tool_calls": sometimes(st.lists(CALL, max_size=3)),
        "function_call": JSON,
    },
)
REASON = st.sampled_from([None, None, None, "", "stop", "length", "tool_calls", "content_filter"])
CHOICE = st.fixed_dictionaries(
    {"delta": sometimes(DELTA), "finish_reason": sometimes(REASON)},
    optional={"index": sometimes(st.just(0))},
)
USAGE = st.fixed_dictionaries({"prompt_tokens": JSON, "completion_tokens": JSON})
CHUNK = st.fixed_dictionaries(
    {"choices": sometimes(st.lists(CHOICE, max_size=2))},
    optional={"usage": sometimes(USAGE), "model": sometimes(TEXT), "error": JSON},
)
ENDING = st.sampled_from(["\n", "\r", "\r\n"])
KIND = st.sampled_from(["", "", "", "event: error\n", "event: message\n", "id: 7\n", "retry: 1\n"])


def event(value: Any, kind: str, ending: str) -> bytes:
    """Return one event; a number that JSON does not know is one more malformed event."""
    text = f"{kind}data: {json.dumps(value, ensure_ascii=False)}\n\n"
    return text.replace("\n", ending).encode("utf-8", "surrogatepass")


BLOCK = st.one_of(
    st.builds(event, CHUNK, KIND, ENDING),
    st.builds(event, CHUNK, KIND, ENDING),
    st.builds(event, JSON, KIND, ENDING),
    st.sampled_from(
        [b": keep-alive\n\n", b"data: [DONE]\n\n", b"data:\n\n", b"\xef\xbb\xbf", b"\r\n", b"data"]
    ),
    st.binary(max_size=20),
)
STREAM = st.lists(BLOCK, max_size=8).map(b"".join)
PLACES = st.lists(st.integers(0, 4000), max_size=12)


@given(STREAM, PLACES)
@settings(max_examples=400, deadline=None)
def test_whatever_comes_ends_in_a_whole_answer_or_in_a_named_error(
    stream: bytes, places: list[int]
) -> None:
    judge(stream, places)


@given(st.binary(max_size=300), PLACES)
@settings(max_examples=200, deadline=None)
def test_noise_never_passes_for_an_answer(stream: bytes, places: list[int]) -> None:
    assert judge(stream, places).failure


@pytest.mark.parametrize(
    "endless",
    [b"x", b"data: x", b"data:\n", b"data: x\n", b"event: x", b":", b": x\n\n"],
    ids=repr,
)
def test_an_endless_stream_takes_bounded_memory(endless: bytes) -> None:
    found = read([endless] * (4 * MAX_LINE_BYTES))

    # Comments are thrown away as they come; all else is refused at its bound.
    comments = endless.endswith(b"\n\n")
    assert found.failure == ("truncated" if comments else "event_too_long")


STREAMS = {
    "text": (
        ': hi\n\n{"choices":[{"delta":{"role":"assistant","content":null}}]}\n\n'
        '{"choices":[{"delta":{"content":"数\u2028😀"}}]}\n\n: keep-alive\n\n'
        '{"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n[DONE]\n\n'
    ),
    "reasoning and tools": (
        '{"choices":[{"delta":{"reasoning_content":"Hm. "}}]}\n\n'
        '{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":'
        '{"name":"sql","arguments":""}}]}}]}\n\n'
        '{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\\"数\\":1}"}}'
        ']},"finish_reason":"tool_calls"}]}\n\n'
        '{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4}}\n\n[DONE]\n\n'
    ),
    "an error": '{"choices":[{"delta":{"content":"a"}}]}\n\n{"error":{"message":"died"}}\n\n',
    "an error by its kind": '{"choices":[{"delta":{"content":"a"}}]}\n\n!{"message":"died"}\n\n',
    "a cut": '{"choices":[{"delta":{"content":"数"}}]}\n\n',
    "half an event": '{"choices":[{"delta":{"content":"数"}}]}\n\n{"choices":[{"del',
    "several lines": '{"choices":\n[{"delta":{"content":"a"},\n"finish_reason":"stop"}]}\n\n',
}


def on_the_wire(stream: str) -> str:
    lines = []
    for line in stream.split("\n"):
        if not line or line.startswith(":"):
            lines.append(line)
        elif line.startswith("!"):
            lines += ["event: error", f"data: {line[1:]}"]
        else:
            lines.append(f"data: {line}")
    return "\n".join(lines)


@pytest.mark.parametrize("ending", ["\n", "\r", "\r\n"], ids=["LF", "CR", "CRLF"])
@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["no mark", "a byte order mark"])
@pytest.mark.parametrize("case", STREAMS)
def test_what_is_understood_does_not_depend_on_where_the_network_cuts(
    case: str, mark: str, ending: str
) -> None:
    stream = (mark + on_the_wire(STREAMS[case]).replace("\n", ending)).encode()
    whole = read([stream])

    assert read([stream[at : at + 1] for at in range(len(stream))]) == whole
    for at in range(1, len(stream)):
        assert read([stream[:at], stream[at:]]) == whole
    assert bool(whole.failure) is (case not in ("text", "reasoning and tools", "several lines"))
