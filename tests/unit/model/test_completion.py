"""Holds streams of all endings to the contract: no finish reason, no success."""

from collections.abc import Sequence
from typing import Any

import orjson
import pytest

from services.model.backend import Finish, Growth, Provider, Reasoning, Text, ToolCallPart
from services.model.completion import DONE, Completion
from services.model.refusal import Exchange
from services.model.sse import Event
from services.runtime.compression.tokens import estimate_prompt_tokens
from services.runtime.conversation import Message, ToolCall, ToolOffer
from services.runtime.errors import Code, DependencyFailedError, SixhopError
from services.runtime.generation import Usage

PROVIDER = Provider(base_url="http://provider/v1", model="asked", api_key="sk-secret-1234")
PROMPT = [Message("user", "Tell me about order 1043 of Alice Chen, please.")]
TOOLS = [ToolOffer("sql", "Asks.", "{}")]

END = Event(DONE)


def chunk(content: Any = None, finish: Any = None, *, reasoning: Any = None, **more: Any) -> Event:
    delta = {"content": content}
    if reasoning is not None:
        delta["reasoning_content"] = reasoning
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return Event(orjson.dumps({"choices": [choice], **more}))


def data(value: Any, kind: str = "message") -> Event:
    return Event(value if isinstance(value, bytes) else orjson.dumps(value), kind)


def calls(*deltas: Any, finish: str | None = None) -> Event:
    choice = {"index": 0, "delta": {"tool_calls": list(deltas)}, "finish_reason": finish}
    return Event(orjson.dumps({"choices": [choice]}))


def called(index: int = 0, **function: str) -> dict[str, Any]:
    return {"index": index, "id": f"call-{index}", "type": "function", "function": function}


def read(events: Sequence[Event]) -> tuple[list[Growth], Finish]:
    pieces, end = read_all(events)
    assert len(end) == 1
    assert isinstance(end[0], Finish)
    return pieces, end[0]


def read_all(
    events: Sequence[Event], tools: Sequence[ToolOffer] = ()
) -> tuple[list[Growth], list[ToolCall | Finish]]:
    completion = Completion(Exchange(PROVIDER, PROMPT, tools))
    pieces = [piece for event in events for piece in completion.take(event)]
    return pieces, completion.end()


@pytest.mark.parametrize("reason", ["stop", "length"])
def test_a_real_finish_reason_is_success_and_is_told(reason: str) -> None:
    pieces, finish = read([chunk("Hel"), chunk("lo"), chunk(finish=reason, model="served"), END])

    assert pieces == [Text("Hel"), Text("lo")]
    assert (finish.model, finish.finish_reason) == ("served", reason)


def test_an_answer_with_a_finish_reason_is_whole_without_done() -> None:
    _, finish = read([chunk("Hello", "stop")])

    assert finish.finish_reason == "stop"


CUT = (Code.ABORTED, "TRUNCATED", "truncated")
FAILED = (Code.ABORTED, "PROVIDER_ERROR", "provider_error")
NO_CHUNK = (Code.ABORTED, "PROTOCOL_ERROR", "unexpected_event")
NO_JSON = (Code.ABORTED, "PROTOCOL_ERROR", "bad_json")

OLD_CALL = (Code.ABORTED, "PROTOCOL_ERROR", "function_call")

FAULTS: dict[str, tuple[list[Event], Code, str, str]] = {
    "bytes end without a finish reason": ([chunk("a")], *CUT),
    "nothing at all": ([], *CUT),
    "[DONE] without a finish reason": ([chunk("a"), END], *CUT),
    "[DONE] alone": ([END], *CUT),
    "usage and [DONE] only": (
        [data({"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}), END],
        *CUT,
    ),
    "an empty finish reason is none": ([chunk("a", ""), END], *CUT),
    "content filter": (
        [chunk("a"), chunk(finish="content_filter"), END],
        Code.ABORTED,
        "CONTENT_FILTERED",
        "content_filter",
    ),
    "cut by the provider's load": (
        [chunk("a"), chunk(finish="insufficient_system_resource"), END],
        Code.RESOURCE_EXHAUSTED,
        "PROVIDER_OVERLOADED",
        "insufficient_system_resource",
    ),
    "an unknown finish reason": (
        [chunk("a"), chunk(finish="abort"), END],
        *FAILED,
    ),
    "a finish reason that is no text": (
        [chunk(finish={"why": 1})],
        *FAILED,
    ),
    "an error in the stream": (
        [chunk("a"), data({"error": {"message": "died", "type": "server_error"}}), END],
        *FAILED,
    ),
    "an error in the stream that is text": (
        [data({"error": "died"})],
        *FAILED,
    ),
    "an error in the stream that names a status": (
        [data({"error": {"message": "slow down", "code": 429}})],
        Code.RESOURCE_EXHAUSTED,
        "PROVIDER_RATE_LIMITED",
        "rate_limit",
    ),
    "an error after the finish reason": (
        [chunk("a", "stop"), data({"error": {"message": "died"}})],
        *FAILED,
    ),
    "an event of kind error": (
        [chunk("a"), data({"message": "died"}, "error"), END],
        *FAILED,
    ),
    "an event of kind error that is no JSON": (
        [data(b"died", "error")],
        *FAILED,
    ),
    "an object without choices": (
        [chunk("a"), data({"message": "died"}), END],
        *FAILED,
    ),
    "bad JSON": ([chunk("a"), data(b'{"choices": [{"del')], *NO_JSON),
    "bad UTF-8": ([data(b'{"choices": "\xff"}')], *NO_JSON),
    "JSON that is no object": ([data([1])], *NO_CHUNK),
    "choices that are no list": (
        [data({"choices": {}})],
        *NO_CHUNK,
    ),
    "a choice that is no object": (
        [data({"choices": [1]})],
        *NO_CHUNK,
    ),
    "a delta that is no object": (
        [data({"choices": [{"delta": "a"}]})],
        *NO_CHUNK,
    ),
    "content that is no text": ([chunk(7)], *NO_CHUNK),
    "a second answer to the same prompt": (
        [chunk("a"), data({"choices": [{"index": 1, "delta": {"content": "b"}}]})],
        *NO_CHUNK,
    ),
    "a call of the retired kind": (
        [data({"choices": [{"delta": {"function_call": {"name": "sql"}}}]})],
        *OLD_CALL,
    ),
    "an end of the retired kind": ([chunk(finish="function_call")], *OLD_CALL),
    "tool calls that were told of and not sent": (
        [chunk("a"), chunk(finish="tool_calls")],
        Code.ABORTED,
        "PROTOCOL_ERROR",
        "no_tool_call",
    ),
    "tool calls without any tool": (
        [calls(called(name="sql"), finish="tool_calls")],
        Code.ABORTED,
        "PROTOCOL_ERROR",
        "unasked_tool_call",
    ),
    "content after the finish reason": (
        [chunk("a", "stop"), chunk("b")],
        *NO_CHUNK,
    ),
}


@pytest.mark.parametrize("case", FAULTS)
def test_any_other_end_is_an_error_of_the_provider(case: str) -> None:
    events, code, reason, cause = FAULTS[case]

    with pytest.raises(SixhopError) as caught:
        read(events)

    error = caught.value
    assert error.origin is not None
    assert (error.code, error.origin.hop, error.origin.reason, error.cause) == (
        code, "llm", reason, cause,
    )  # fmt: skip


def test_what_came_before_a_fault_was_given() -> None:
    pieces = Completion(Exchange(PROVIDER, PROMPT)).take(chunk("half", "content_filter"))

    assert next(pieces) == Text("half")
    with pytest.raises(SixhopError):
        next(pieces)


def test_nothing_counts_after_done() -> None:
    pieces, finish = read([chunk("a", "stop"), END, chunk("b"), data({"error": {"message": "x"}})])

    assert pieces == [Text("a")]
    assert finish.finish_reason == "stop"


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_reasoning_is_told_apart_from_the_answer(name: str) -> None:
    first = data({"choices": [{"delta": {"content": None, name: "Hm."}}]})

    pieces, _ = read([first, chunk("Yes", "stop")])

    assert pieces == [Reasoning("Hm."), Text("Yes")]


def test_roles_and_empty_deltas_add_nothing() -> None:
    events = [
        data({"choices": [{"delta": {"role": "assistant", "content": ""}}]}),
        data({"choices": [{"delta": None}]}),
        data({"choices": [{}]}),
        data({"choices": [{"delta": {"tool_calls": []}}], "error": None}),
        data({"choices": [{"delta": {"tool_calls": None, "function_call": None}}]}),
        chunk(finish="stop"),
    ]

    pieces, _ = read(events)

    assert pieces == []


def test_tool_calls_are_given_whole_before_the_end() -> None:
    events = [
        chunk("Let me see."),
        calls(called(name="sql", arguments="")),
        calls(called(1, name="mail", arguments="{}")),
        calls({"index": 0, "function": {"arguments": '{"q":'}}),
        calls({"index": 0, "function": {"arguments": "1}"}}),
        chunk(finish="tool_calls"),
        END,
    ]

    pieces, end = read_all(events, TOOLS)

    assert pieces == [
        Text("Let me see."),
        ToolCallPart("sql", 3),
        ToolCallPart("mail", 6),
        ToolCallPart("sql", 5),
        ToolCallPart("sql", 2),
    ]
    assert end[:2] == [ToolCall("call-0", "sql", '{"q":1}'), ToolCall("call-1", "mail", "{}")]
    assert isinstance(end[2], Finish)
    assert end[2].finish_reason == "tool_calls"
    # Eighteen letters and blanks, nine signs and digits, of the words and of both calls.
    assert end[2].usage.output_token_count == 10


def test_an_answer_that_stops_with_tool_calls_ends_for_them() -> None:
    _, end = read_all([calls(called(name="sql", arguments="{}"), finish="stop")], TOOLS)

    assert isinstance(end[-1], Finish)
    assert end[-1].finish_reason == "tool_calls"


def test_tool_calls_without_a_finish_reason_are_a_cut_answer() -> None:
    with pytest.raises(SixhopError) as caught:
        read_all([calls(called(name="sql", arguments="{}")), END], TOOLS)

    assert caught.value.cause == "truncated"


def test_tool_calls_after_the_finish_reason_are_refused() -> None:
    events = [chunk("a", "stop"), calls(called(name="sql"))]

    with pytest.raises(SixhopError) as caught:
        read_all(events, TOOLS)

    assert caught.value.cause == "unexpected_event"


def test_spaces_around_the_end_mark_do_no_harm() -> None:
    pieces, finish = read([chunk("a", "stop"), Event(b"[DONE] ")])

    assert (pieces, finish.finish_reason) == ([Text("a")], "stop")


def test_usage_comes_from_the_provider_and_the_last_one_counts() -> None:
    usage = {"prompt_tokens": 12, "completion_tokens": 3, "prompt_cache_hit_tokens": 4}
    early = chunk("a", usage={"prompt_tokens": 12, "completion_tokens": 1})

    _, finish = read([early, chunk("b", "stop"), data({"choices": [], "usage": usage}), END])

    assert finish.usage == Usage(12, 3, estimated=False)


@pytest.mark.parametrize(
    "usage", [None, {}, {"prompt_tokens": "12", "completion_tokens": 3}, {"prompt_tokens": -1}]
)
def test_usage_is_an_estimate_and_says_so_when_the_provider_gives_none(usage: Any) -> None:
    _, finish = read([chunk("数据" * 4), chunk("a" * 8, "stop", usage=usage), END])

    # Eight Chinese characters and eight letters were written.
    asked = estimate_prompt_tokens(PROMPT)
    assert finish.usage == Usage(asked, 6 + 2, estimated=True)


def test_a_provider_that_never_stops_writing_is_cut_off() -> None:
    with pytest.raises(DependencyFailedError) as caught:
        read([chunk("word " * 2_000) for _ in range(100)])

    assert caught.value.cause == "flood"
