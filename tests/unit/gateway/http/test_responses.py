"""Tests how requests for responses are read, and how responses are written."""

from collections.abc import AsyncGenerator
from typing import Any

import orjson
import pytest
from openai.types.responses import Response
from openai.types.responses.response_create_params import (
    ResponseCreateParamsNonStreaming,
    ResponseCreateParamsStreaming,
)
from pydantic import ValidationError

from gateway.http.body import wrong_field
from gateway.http.failing import failure_of
from gateway.http.responses_answer import ResponseEvents, response
from gateway.http.responses_request import ResponsesRequest
from services.runtime.call import Identity, Inbound
from services.runtime.clock import ManualClock
from services.runtime.errors import (
    DependencyFailedError,
    InvalidArgumentError,
    Origin,
    QuotaExceededError,
)
from sixhop.gateway.v1 import gateway_pb2
from sixhop.type.v1 import chat_pb2, generation_pb2, run_pb2, usage_pb2
from tests.requirements import requirement

pytestmark = requirement("http:responses")

TOOL = {"type": "function", "name": "weather", "parameters": {"type": "object"}, "strict": True}
CALLED = {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{}"}
OTHER = {**CALLED, "call_id": "c2"}
RESULT = {"type": "function_call_output", "call_id": "c1", "output": "sunny"}
CALL = chat_pb2.ToolCall(id="c1", name="weather", arguments="{}")
USAGE = usage_pb2.Usage(input_token_count=3, output_token_count=4)


def read(**fields: Any) -> ResponsesRequest:
    """Return a request as the door reads it.

    Raises:
        InvalidArgumentError: it does not take it.
    """
    content = orjson.dumps({"input": "Hello", **fields})
    try:
        return ResponsesRequest.model_validate_json(content)
    except ValidationError as error:
        raise wrong_field(error, content) from None


def question(**fields: Any) -> run_pb2.Question:
    """Return what is asked of the suite."""
    return read(**fields).ask_request(100).question


def said(role: "chat_pb2.ChatRole.ValueType", content: str = "", **more: Any) -> Any:
    """Return a message of a history."""
    return chat_pb2.ChatMessage(role=role, content=content, **more)


def test_a_conversation_of_items_travels_whole() -> None:
    asked = question(
        instructions="Be kind.",
        input=[
            {"role": "developer", "content": "And brief."},
            {"role": "user", "content": [{"type": "input_text", "text": "Hello"}]},
            {
                "type": "message",
                "role": "assistant",
                "id": "msg_1",
                "status": "completed",
                "content": [{"type": "output_text", "text": "Let me see.", "annotations": []}],
            },
            CALLED,
            {**OTHER, "id": "fc_c2", "status": "completed"},
            RESULT,
            {**RESULT, "call_id": "c2", "output": [{"type": "input_text", "text": "rain"}]},
            {"role": "user", "content": "Thank you"},
        ],
    )

    calls = [CALL, chat_pb2.ToolCall(id="c2", name="weather", arguments="{}")]
    assert asked.text == "Thank you"
    assert list(asked.history) == [
        said(chat_pb2.CHAT_ROLE_SYSTEM, "Be kind."),
        said(chat_pb2.CHAT_ROLE_SYSTEM, "And brief."),
        said(chat_pb2.CHAT_ROLE_USER, "Hello"),
        said(chat_pb2.CHAT_ROLE_ASSISTANT, "Let me see.", tool_calls=calls),
        said(chat_pb2.CHAT_ROLE_TOOL, "sunny", tool_call_id="c1"),
        said(chat_pb2.CHAT_ROLE_TOOL, "rain", tool_call_id="c2"),
    ]


def test_calls_without_words_are_a_message_of_their_own() -> None:
    asked = question(input=[{"role": "user", "content": "Hello"}, CALLED, RESULT, OTHER, RESULT])

    assert asked.text == ""
    assert [len(each.tool_calls) for each in asked.history] == [0, 1, 0, 1, 0]


def test_a_word_that_is_too_long_for_a_question_ends_the_history() -> None:
    asked = question(input="x" * 101)

    assert asked.text == ""
    assert list(asked.history) == [said(chat_pb2.CHAT_ROLE_USER, "x" * 101)]


def test_options_travel() -> None:
    asked = question(
        tools=[TOOL],
        tool_choice={"type": "function", "name": "weather"},
        parallel_tool_calls=False,
        max_output_tokens=5,
        temperature=0,
        top_p=1,
        text={"format": {"type": "json_schema", "name": "n", "schema": {}, "strict": True}},
    )

    assert list(asked.tools) == [
        chat_pb2.ToolOffer(name="weather", arguments_schema='{"type":"object"}', strict=True)
    ]
    assert asked.tool_choice == "weather"
    assert asked.generation == generation_pb2.GenerationOptions(
        max_output_tokens=5,
        temperature=0.0,
        top_p=1.0,
        single_tool_call=True,
        response_format=generation_pb2.ResponseFormat(
            kind="json_schema", name="n", schema="{}", strict=True
        ),
    )
    assert question().HasField("generation")


READ = {
    "input", "model", "instructions", "stream", "tools", "tool_choice", "parallel_tool_calls",
    "max_output_tokens", "temperature", "top_p", "text",
}  # fmt: skip
NEUTRAL = {
    "store": False, "background": False, "previous_response_id": None, "conversation": None,
    "truncation": "disabled", "top_logprobs": 0, "include": ["reasoning.encrypted_content"],
    "access_programs": None, "background_options": None, "context_management": None,
    "image": None, "moderation": None, "prompt": None,
}  # fmt: skip
UNREAD = {
    "metadata": {"a": "b"}, "max_tool_calls": 3, "prompt_cache_key": "k",
    "prompt_cache_options": {}, "prompt_cache_retention": "24h", "reasoning": {"effort": "low"},
    "safety_identifier": "s", "service_tier": "auto", "stream_options": {}, "user": "ann",
}  # fmt: skip


def test_it_is_decided_about_every_field_that_openais_client_can_send() -> None:
    assert question(**NEUTRAL, **UNREAD) == question()
    sends = {
        name
        for kind in (ResponseCreateParamsNonStreaming, ResponseCreateParamsStreaming)
        for name in kind.__annotations__
    }
    assert sends - READ - set(NEUTRAL) - set(UNREAD) == set()
    assert len(sends) > 30


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"store": True}, "store"),
        ({"background": True}, "background"),
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"truncation": "auto"}, "truncation"),
        ({"include": ["message.output_text.logprobs"]}, "include"),
        ({"prompt": {"id": "p"}}, "prompt"),
        ({"top_k": 1}, "top_k"),
        ({"input": ""}, "input"),
        ({"input": []}, "input"),
        ({"input": 5}, "input"),
        ({"input": [{"role": "user"}]}, "input[0].content"),
        ({"input": [{"type": "function_call", "name": "x"}]}, "input[0].call_id"),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
        ({"text": {"format": {"type": "json_schema", "name": "x"}}}, "text.format.schema"),
    ],
)
def test_what_is_no_such_request_is_refused_by_its_field(fields: Any, param: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        read(**fields)

    assert caught.value.field == param


@pytest.mark.parametrize(
    ("items", "param"),
    [
        ([{"type": "item_reference", "id": "x"}], "input[0].type"),
        ([{"type": "reasoning", "id": "x", "summary": []}], "input[0].type"),
        ([{"role": "user", "content": [{"type": "input_image"}]}], "input[0].content[0].type"),
        ([{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}], "input"),
    ],
)
def test_what_no_run_can_be_given_is_refused_by_its_field(items: Any, param: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        question(input=items)

    assert caught.value.field == param


@pytest.mark.parametrize(
    ("ours", "clients"),
    [
        ("question.history[0].content", "instructions"),
        ("question.history[1].content", "input[0].content"),
        ("question.history[2].tool_calls[0].name", "input[1].name"),
        ("question.history[3].tool_call_id", "input[2].call_id"),
        ("question.text", "input[3].content"),
        ("question.history", "input"),
        ("question.tools[1].arguments_schema", "tools[1].parameters"),
        ("question.generation.response_format.schema", "text.format.schema"),
        ("question.generation.max_output_tokens", "max_output_tokens"),
        ("agent", "model"),
    ],
)
def test_clients_are_told_of_a_field_by_the_name_that_they_sent(ours: str, clients: str) -> None:
    hello = {"role": "user", "content": "Hello"}
    asked = read(instructions="Be kind.", input=[hello, CALLED, RESULT, hello])

    assert asked.naming.name(ours) == clients


def inbound() -> Inbound:
    """Return a call as it has arrived."""
    return Inbound("gateway", "Run", True, 0.0, 10.0, Identity(run_id="r", request_id="q"))


def text(piece: str) -> run_pb2.RunEvent:
    """Return an event of text."""
    return run_pb2.RunEvent(text_delta=run_pb2.TextDelta(text=piece))


def finished(reason: str = "stop") -> run_pb2.RunEvent:
    """Return the last event of a run."""
    end = run_pb2.RunFinished(agent="chat", model="m", usage=USAGE, finish_reason=reason)
    return run_pb2.RunEvent(finished=end)


def parsed(written: bytes) -> list[dict[str, Any]]:
    """Return the events of a stream, and hold them to counting without gaps."""
    blocks = [block.split("\n") for block in written.decode().split("\n\n")[:-1]]
    events = [orjson.loads(data.removeprefix("data: ")) for _, data in blocks]
    assert [kind.removeprefix("event: ") for kind, _ in blocks] == [e["type"] for e in events]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    return events


async def streamed(clock: ManualClock, *events: run_pb2.RunEvent) -> list[dict[str, Any]]:
    """Return the events of a response that ends as it should."""

    async def responses() -> AsyncGenerator[run_pb2.RunEvent, None]:
        for event in events:
            yield event

    written = ResponseEvents(read(), inbound(), clock)
    return parsed(b"".join([part async for part in written.of(responses())]))


async def test_a_text_is_opened_told_and_closed(clock: ManualClock) -> None:
    events = await streamed(clock, text("Hel"), text("lo"), finished())

    assert [event["type"].removeprefix("response.") for event in events] == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    whole = Response.model_validate(events[-1]["response"])
    assert (whole.status, whole.output_text, whole.model) == ("completed", "Hello", "m")
    assert whole.usage is not None
    assert whole.usage.total_tokens == 7
    assert events[-1]["response"]["sixhop"]["agent"] == "chat"


async def test_calls_come_after_the_text_that_goes_with_them(clock: ManualClock) -> None:
    call = run_pb2.RunEvent(tool_call=CALL)
    events = await streamed(clock, text("x"), call, call, finished("tool_calls"))

    done = [e for e in events if e["type"] == "response.output_item.done"]
    assert [(e["output_index"], e["item"]["type"]) for e in done] == [
        (0, "message"),
        (1, "function_call"),
        (2, "function_call"),
    ]
    assert [e["item"] for e in done] == events[-1]["response"]["output"]
    assert done[1]["item"]["call_id"] == "c1"
    assert events[-1]["response"]["status"] == "completed"


async def test_a_text_that_ends_at_its_limit_is_incomplete(clock: ManualClock) -> None:
    events = await streamed(clock, text("x"), finished("length"))

    assert events[-1]["type"] == "response.incomplete"
    assert events[-1]["response"]["incomplete_details"] == {"reason": "max_output_tokens"}
    assert events[-1]["response"]["output"][0]["status"] == "incomplete"


async def test_an_empty_answer_is_a_message_all_the_same(clock: ManualClock) -> None:
    events = await streamed(clock, finished())

    assert Response.model_validate(events[-1]["response"]).output_text == ""
    assert len(events[-1]["response"]["output"]) == 1


async def test_text_that_is_begun_anew_never_follows_what_was_sent(clock: ManualClock) -> None:
    again = run_pb2.RunEvent(restarted=run_pb2.Restarted(reason="r"))

    with pytest.raises(DependencyFailedError, match="cannot be taken back"):
        await streamed(clock, text("x"), again, text("y"), finished())


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (DependencyFailedError("m", "no", cause="x", origin=Origin("llm")), "server_error"),
        (QuotaExceededError("no"), "rate_limit_exceeded"),
        (InvalidArgumentError("input", "no"), "invalid_prompt"),
    ],
)
def test_a_failure_is_an_event_of_its_own(clock: ManualClock, error: Any, code: str) -> None:
    written = ResponseEvents(read(), inbound(), clock)

    events = parsed(written.fail(failure_of(error, remaining_s=1.0)))

    assert events[-1]["type"] == "response.failed"
    failed = Response.model_validate(events[-1]["response"])
    assert (failed.status, failed.error and failed.error.code) == ("failed", code)
    assert events[-1]["response"]["error"]["reason"] == error.reason
    assert events[-1]["response"]["error"]["remaining_ms"] == 1000


def test_a_whole_answer_is_a_response(clock: ManualClock) -> None:
    asked = read(tools=[TOOL], metadata={"a": "b"}, instructions="Be kind.")
    answer = gateway_pb2.AskResponse(
        run_id="r", text="x", model="m", usage=USAGE, tool_calls=[CALL], finish_reason="tool_calls"
    )

    written = response(asked, answer, inbound(), clock)

    whole = Response.model_validate(written)
    assert [item.type for item in whole.output] == ["message", "function_call"]
    assert (whole.metadata, whole.instructions) == ({"a": "b"}, "Be kind.")
    assert whole.tools[0].type == "function"
