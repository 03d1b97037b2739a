"""Tests how requests for chat completions are read: honoured whole, or refused by the field."""

from typing import Any

import orjson
import pytest
from openai.types.chat.completion_create_params import (
    CompletionCreateParamsNonStreaming,
    CompletionCreateParamsStreaming,
)
from pydantic import ValidationError

from gateway.http.body import wrong_field
from gateway.http.chat_fields import MAX_ITEMS
from gateway.http.chat_request import ChatRequest
from services.runtime.errors import InvalidArgumentError, Origin
from sixhop.type.v1 import chat_pb2, generation_pb2, run_pb2
from tests.requirements import requirement

pytestmark = requirement("http:requests-are-read-or-refused")

LONGEST = 100
HELLO = {"role": "user", "content": "Hello"}
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Tells it.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        "strict": True,
    },
}
CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
CALLED = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "sunny"}


def read(**fields: Any) -> ChatRequest:
    """Return a request as the door reads it.

    Raises:
        InvalidArgumentError: it does not take it.
    """
    content = orjson.dumps({"messages": [HELLO], **fields})
    try:
        return ChatRequest.model_validate_json(content)
    except ValidationError as error:
        raise wrong_field(error, content) from None


def question(**fields: Any) -> run_pb2.Question:
    """Return what is asked of the suite."""
    return read(**fields).ask_request(LONGEST).question


def test_a_conversation_travels_whole() -> None:
    asked = question(
        messages=[
            {"role": "system", "content": "Be kind."},
            {"role": "developer", "content": [{"type": "text", "text": "And brief."}]},
            HELLO,
            {**CALLED, "content": "Let me see.", "reasoning_content": "Hm.", "refusal": None},
            {
                **RESULT,
                "content": [{"type": "text", "text": "sun"}, {"type": "text", "text": "ny"}],
            },
            {"role": "user", "content": [{"type": "text", "text": "Thank you"}], "name": "ann"},
        ]
    )

    assert asked.text == "Thank you"
    assert list(asked.history) == [
        chat_pb2.ChatMessage(role=chat_pb2.CHAT_ROLE_SYSTEM, content="Be kind."),
        chat_pb2.ChatMessage(role=chat_pb2.CHAT_ROLE_SYSTEM, content="And brief."),
        chat_pb2.ChatMessage(role=chat_pb2.CHAT_ROLE_USER, content="Hello"),
        chat_pb2.ChatMessage(
            role=chat_pb2.CHAT_ROLE_ASSISTANT,
            content="Let me see.",
            reasoning="Hm.",
            tool_calls=[chat_pb2.ToolCall(id="c1", name="weather", arguments="{}")],
        ),
        chat_pb2.ChatMessage(role=chat_pb2.CHAT_ROLE_TOOL, content="sunny", tool_call_id="c1"),
    ]


def test_a_conversation_may_end_with_a_tools_result() -> None:
    asked = question(messages=[HELLO, CALLED, RESULT], tools=[TOOL])

    assert asked.text == ""
    assert asked.history[-1].role == chat_pb2.CHAT_ROLE_TOOL


def test_a_word_that_is_too_long_for_a_question_ends_the_history() -> None:
    fits, exceeds = "x" * LONGEST, "x" * (LONGEST + 1)

    short = question(messages=[HELLO, CALLED, RESULT, {"role": "user", "content": fits}])
    long = question(messages=[HELLO, CALLED, RESULT, {"role": "user", "content": exceeds}])

    assert (short.text, len(short.history)) == (fits, 3)
    assert (long.text, len(long.history)) == ("", 4)
    assert long.history[-1] == chat_pb2.ChatMessage(role=chat_pb2.CHAT_ROLE_USER, content=exceeds)


def test_tools_travel_with_the_choice_among_them() -> None:
    named = {"type": "function", "function": {"name": "weather"}}
    asked = question(tools=[TOOL], tool_choice=named, parallel_tool_calls=False)

    assert list(asked.tools) == [
        chat_pb2.ToolOffer(
            name="weather",
            description="Tells it.",
            arguments_schema='{"type":"object","properties":{"city":{"type":"string"}}}',
            strict=True,
        )
    ]
    assert asked.tool_choice == "weather"
    assert asked.generation.single_tool_call
    assert question(tools=[TOOL], tool_choice="required").tool_choice == "required"
    assert question(tools=[{"type": "function", "function": {"name": "x"}}]).tools == [
        chat_pb2.ToolOffer(name="x")
    ]


def test_options_of_generation_travel() -> None:
    schema = {"type": "object"}
    asked = question(
        max_completion_tokens=5,
        temperature=0,
        top_p=1,
        stop="end",
        seed=-3,
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "n", "description": "d", "schema": schema, "strict": False},
        },
    )

    assert asked.generation == generation_pb2.GenerationOptions(
        max_output_tokens=5,
        temperature=0.0,
        top_p=1.0,
        stop=["end"],
        seed=-3,
        response_format=generation_pb2.ResponseFormat(
            kind="json_schema", name="n", description="d", schema='{"type":"object"}', strict=False
        ),
    )


def test_who_asks_without_options_still_reads_the_finish_reason() -> None:
    asked = question()

    assert asked.HasField("generation")
    assert asked.generation == generation_pb2.GenerationOptions()


def test_the_older_name_of_the_token_limit_counts_as_well() -> None:
    assert question(max_tokens=7).generation.max_output_tokens == 7
    assert question(max_tokens=7, max_completion_tokens=7).generation.max_output_tokens == 7


def test_the_model_is_an_agent_or_lets_routing_choose() -> None:
    assert read(model="reports").ask_request(LONGEST).agent == "reports"
    assert read(model="auto").ask_request(LONGEST).agent == ""
    assert read().ask_request(LONGEST).agent == ""


def test_text_is_delivered_as_the_body_says_or_else_as_usual() -> None:
    assert read().run_request("live", LONGEST).delivery == run_pb2.DELIVERY_LIVE
    said = read(sixhop={"delivery": "buffered"}).run_request("live", LONGEST)
    assert said.delivery == run_pb2.DELIVERY_BUFFERED


def test_files_travel_with_the_question() -> None:
    asked = question(
        sixhop={
            "language": "zh",
            "session_id": "s",
            "sources": [{"name": "a.csv", "content_base64": "YSxi"}, {"name": "b.csv"}],
        }
    )

    assert (asked.language, asked.session_id) == ("zh", "s")
    assert [(each.name, each.content) for each in asked.sources] == [
        ("a.csv", b"a,b"),
        ("b.csv", b""),
    ]


NEUTRAL = {
    "n": 1,
    "logprobs": False,
    "top_logprobs": 0,
    "presence_penalty": 0,
    "frequency_penalty": 0.0,
    "logit_bias": {},
    "modalities": ["text"],
    "audio": None,
    "function_call": None,
    "functions": None,
    "moderation": None,
    "prediction": None,
    "web_search_options": None,
}
UNREAD = {
    "metadata": {"a": "b"},
    "prompt_cache_key": "k",
    "prompt_cache_options": {"ttl": "30m"},
    "prompt_cache_retention": "24h",
    "reasoning_effort": "low",
    "safety_identifier": "s",
    "service_tier": "auto",
    "store": True,
    "user": "ann",
    "verbosity": "low",
}
READ = {
    "messages", "model", "stream", "stream_options", "tools", "tool_choice", "parallel_tool_calls",
    "max_completion_tokens", "max_tokens", "temperature", "top_p", "stop", "seed",
    "response_format",
}  # fmt: skip


def test_what_would_not_change_the_answer_is_taken() -> None:
    assert question(**NEUTRAL, **UNREAD) == question()
    assert question(**dict.fromkeys(NEUTRAL)) == question(**dict.fromkeys(UNREAD)) == question()


def test_it_is_decided_about_every_field_that_openais_client_can_send() -> None:
    sends = {
        name
        for kind in (CompletionCreateParamsNonStreaming, CompletionCreateParamsStreaming)
        for each in kind.__mro__
        for name in getattr(each, "__annotations__", {})
    } | set(CompletionCreateParamsNonStreaming.__annotations__)

    assert sends - READ - set(NEUTRAL) - set(UNREAD) == set()
    assert len(sends) > 30


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"n": 2}, "n"),
        ({"n": True}, "n"),
        ({"logprobs": True}, "logprobs"),
        ({"logprobs": 0}, "logprobs"),
        ({"top_logprobs": 3}, "top_logprobs"),
        ({"presence_penalty": 0.1}, "presence_penalty"),
        ({"frequency_penalty": -1}, "frequency_penalty"),
        ({"logit_bias": {"5": 1}}, "logit_bias"),
        ({"modalities": ["audio"]}, "modalities[0]"),
        ({"audio": {}}, "audio"),
        ({"functions": []}, "functions"),
        ({"function_call": "auto"}, "function_call"),
        ({"prediction": {}}, "prediction"),
        ({"moderation": {}}, "moderation"),
        ({"web_search_options": {}}, "web_search_options"),
        ({"top_k": 3}, "top_k"),
        ({"messages": []}, "messages"),
        ({"messages": "Hello"}, "messages"),
        ({"messages": [3]}, "messages[0]"),
        ({"messages": [{"role": "user"}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
        ({"messages": [{"role": "function", "content": "x"}]}, "messages[0]"),
        ({"messages": [{"role": "user", "content": [{"text": "x"}]}]},
         "messages[0].content[0].type"),
        ({"messages": [HELLO] * (MAX_ITEMS + 1)}, "messages"),
        ({"messages": [{**CALLED, "audio": {"id": "a"}}, HELLO]}, "messages[0].audio"),
        ({"messages": [{**CALLED, "function_call": {}}, HELLO]}, "messages[0].function_call"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].tool_call_id"),
        ({"model": 5}, "model"),
        ({"stream": "yes"}, "stream"),
        ({"temperature": "hot"}, "temperature"),
        ({"temperature": 2.1}, "temperature"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": "5"}, "max_tokens"),
        ({"seed": 2**63}, "seed"),
        ({"stop": ["a"] * 5}, "stop"),
        ({"stop": [5]}, "stop[0]"),
        ({"tools": [{"type": "custom", "custom": {"name": "x"}}]}, "tools[0].type"),
        ({"tools": [{"type": "function", "function": {}}]}, "tools[0].function.name"),
        ({"tool_choice": "some"}, "tool_choice"),
        ({"tool_choice": {"type": "allowed_tools"}}, "tool_choice.allowed_tools"),
        ({"response_format": {"type": "xml"}}, "response_format"),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema"),
        ({"sixhop": {"delivery": "fast"}}, "sixhop.delivery"),
        ({"sixhop": {"speed": 1}}, "sixhop.speed"),
    ],
)  # fmt: skip
def test_what_is_no_such_request_is_refused_by_its_field(fields: Any, param: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        read(**fields)

    assert caught.value.field == param
    assert caught.value.message.startswith(f"{param}: ")


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"messages": [HELLO, {"role": "assistant", "content": "Hi"}]}, "messages[1].role"),
        ({"messages": [{"role": "system", "content": "Hi"}]}, "messages[0].role"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]},
            "messages[0].content[0].type",
        ),
        ({"max_tokens": 5, "max_completion_tokens": 6}, "max_tokens"),
        ({"sixhop": {"sources": [{"name": "a", "content_base64": "?"}]}},
         "sixhop.sources[0].content_base64"),
        ({"sixhop": {"sources": [{"name": "a", "content_base64": "µ"}]}},
         "sixhop.sources[0].content_base64"),
        ({"tool_choice": {"type": "function", "function": {"name": ""}}},
         "tool_choice.function.name"),
    ],
)  # fmt: skip
def test_what_no_run_can_be_given_is_refused_by_its_field(fields: Any, param: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        question(**fields)

    assert caught.value.field == param


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b'{"messages": [{"role": "\xff"}]}'])
def test_what_is_no_json_is_refused_as_a_body(content: bytes) -> None:
    with pytest.raises(ValidationError) as caught:
        ChatRequest.model_validate_json(content)

    assert wrong_field(caught.value, content).field == "body"


def test_a_number_that_json_does_not_have_travels_in_no_schema() -> None:
    content = b'{"messages": [{"role": "user", "content": "x"}], "tools": [{"type": "function", '
    content += b'"function": {"name": "x", "parameters": {"minimum": NaN}}}]}'

    with pytest.raises(InvalidArgumentError) as caught:
        ChatRequest.model_validate_json(content).ask_request(LONGEST)

    assert caught.value.field == "tools[0].function.parameters"


def test_one_of_many_faults_is_told_and_the_others_cost_nothing() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        read(messages=[HELLO, *[{"role": "user", "content": 1}] * (MAX_ITEMS - 1)])

    assert caught.value.field == "messages[1].content"


@pytest.mark.parametrize(
    ("ours", "clients"),
    [
        ("question.text", "messages[2].content"),
        ("question.history[1].content", "messages[1].content"),
        ("question.history[0].reasoning", "messages[0].reasoning_content"),
        ("question.history[1].tool_calls[3].name", "messages[1].tool_calls[3].function.name"),
        ("question.history[1].tool_calls", "messages[1].tool_calls"),
        ("question.history", "messages"),
        ("question.history[9].role", "messages"),
        ("messages[5].content", "messages.content"),
        ("question.tools", "tools"),
        ("question.tools[4].name", "tools[4].function.name"),
        ("question.tools[4].arguments_schema", "tools[4].function.parameters"),
        ("tools[1].strict", "tools[1].function.strict"),
        ("question.tool_choice", "tool_choice"),
        ("question.generation.max_output_tokens", "max_completion_tokens"),
        ("question.generation.single_tool_call", "parallel_tool_calls"),
        ("question.generation.response_format.kind", "response_format.type"),
        ("response_format.schema", "response_format.json_schema.schema"),
        ("question.generation.temperature", "temperature"),
        ("seed", "seed"),
        ("agent", "model"),
        ("question", "messages"),
        ("question.language", "sixhop.language"),
        ("question.sources.name", "sixhop.sources.name"),
    ],
)
def test_clients_are_told_of_a_field_by_the_name_that_they_sent(ours: str, clients: str) -> None:
    naming = read(messages=[HELLO, CALLED, RESULT]).naming
    error = InvalidArgumentError(ours, "is wrong", origin=Origin("model"))

    naming.retell(error)

    assert (error.field, error.message) == (clients, f"{clients}: is wrong")
    assert error.details["field"] == clients
