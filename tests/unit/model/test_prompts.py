"""Turns requests into prompts, or says what is wrong with them."""

from dataclasses import fields
from typing import Any

import pytest

from services.model.backend import Capabilities, Prompt
from services.model.config import ModelSettings
from services.model.service import to_prompt
from services.runtime.conversation import Message, ToolCall, ToolOffer
from services.runtime.errors import InvalidArgumentError
from services.runtime.generation import to_request
from services.runtime.generation_options import NO_OPTIONS, GenerationOptions, ResponseFormat
from sixhop.model.v1 import model_pb2
from sixhop.type.v1 import chat_pb2, generation_pb2
from tests.requirements import requirement

SETTINGS = ModelSettings(max_prompt_bytes=100, max_output_tokens=50)
CAN = Capabilities(
    tools=True,
    strict_tools=True,
    single_tool_call=True,
    seed=True,
    json_object=True,
    json_schema=True,
    prefill=True,
)
LONG = f'{{"a": "{"b" * 90}"}}'
USER = chat_pb2.ChatMessage(role=chat_pb2.CHAT_ROLE_USER, content="Hello")
SAID = chat_pb2.ChatMessage(role=chat_pb2.CHAT_ROLE_ASSISTANT, content="Well")
Request = model_pb2.GenerateRequest


def offer(name: str = "sql", schema: str = '{"type": "object"}') -> chat_pb2.ToolOffer:
    return chat_pb2.ToolOffer(name=name, description="Asks.", arguments_schema=schema)


def form(
    kind: str = "json_schema", name: str = "rows", schema: str = '{"type": "array"}'
) -> generation_pb2.ResponseFormat:
    return generation_pb2.ResponseFormat(kind=kind, name=name, schema=schema)


FORM = form()


def calling(*ids: str, **more: str) -> chat_pb2.ChatMessage:
    calls = [chat_pb2.ToolCall(id=each, name="sql", arguments="{}") for each in ids]
    return chat_pb2.ChatMessage(role=chat_pb2.CHAT_ROLE_ASSISTANT, tool_calls=calls, **more)


def result(of: str, content: str = "7") -> chat_pb2.ChatMessage:
    return chat_pb2.ChatMessage(role=chat_pb2.CHAT_ROLE_TOOL, tool_call_id=of, content=content)


def test_a_request_becomes_a_prompt() -> None:
    system = chat_pb2.ChatMessage(role=chat_pb2.CHAT_ROLE_SYSTEM, content="Be short.")
    request = Request(messages=[system, USER], max_output_tokens=10, temperature=0)

    prompt = to_prompt(request, SETTINGS, Capabilities())

    assert prompt.messages == [Message("system", "Be short."), Message("user", "Hello")]
    assert (prompt.max_output_tokens, prompt.temperature) == (10, 0.0)


def test_tools_calls_results_and_reasoning_become_a_prompt() -> None:
    asked = calling("a", "b", reasoning="Hm.")
    request = Request(
        messages=[USER, asked, result("b"), result("a", "")], tools=[offer()], tool_choice="sql"
    )

    prompt = to_prompt(request, SETTINGS, CAN)

    calls = (ToolCall("a", "sql", "{}"), ToolCall("b", "sql", "{}"))
    assert list(prompt.tools) == [ToolOffer("sql", "Asks.", '{"type": "object"}')]
    assert prompt.tool_choice == "sql"
    assert prompt.messages[1:] == [
        Message("assistant", "", calls, reasoning="Hm."),
        Message("tool", "7", tool_call_id="b"),
        Message("tool", "", tool_call_id="a"),
    ]


def test_an_earlier_tool_round_may_be_told_to_a_model_without_tools() -> None:
    prompt = to_prompt(
        Request(messages=[USER, calling("a"), result("a")]), SETTINGS, Capabilities()
    )

    assert len(prompt.messages) == 3


def test_what_is_left_out_is_left_to_the_settings_and_to_the_provider() -> None:
    prompt = to_prompt(Request(messages=[USER]), SETTINGS, CAN)

    assert (prompt.max_output_tokens, prompt.temperature) == (50, None)
    assert (list(prompt.tools), prompt.tool_choice, prompt.continues_last) == ([], "", False)
    assert (prompt.top_p, prompt.stop, prompt.seed, prompt.response_format) == (
        None,
        (),
        None,
        None,
    )


def test_the_settings_limit_what_a_caller_may_ask_for() -> None:
    prompt = to_prompt(Request(messages=[USER], max_output_tokens=5000), SETTINGS, CAN)

    assert prompt.max_output_tokens == 50


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (Request(), "messages"),
        (Request(messages=[USER] * 1001), "messages"),
        (Request(messages=[USER] * 21), "messages"),
        (Request(messages=[USER, chat_pb2.ChatMessage(content="x")]), "messages[1].role"),
        (
            Request(messages=[chat_pb2.ChatMessage(role=chat_pb2.CHAT_ROLE_USER)]),
            "messages[0].content",
        ),
        (Request(messages=[USER], max_output_tokens=-1), "max_output_tokens"),
        (Request(messages=[USER], temperature=2.1), "temperature"),
        (Request(messages=[USER], temperature=float("nan")), "temperature"),
        (Request(messages=[USER], top_p=0), "top_p"),
        (Request(messages=[USER], stop=[""]), "stop"),
        (Request(messages=[USER], response_format=form(kind="yaml")), "response_format.kind"),
        (Request(messages=[USER], response_format=FORM, tools=[offer(schema=LONG)]), "messages"),
        (Request(messages=[USER], response_format=form(schema=LONG)), "messages"),
        (Request(messages=[USER], single_tool_call=True), "single_tool_call"),
        (Request(messages=[USER, calling("a")]), "messages"),
        (Request(messages=[USER, calling("a", "b"), result("a"), USER]), "messages[3]"),
        (Request(messages=[USER, calling("a"), USER, result("a")]), "messages[2]"),
        (Request(messages=[USER, result("a")]), "messages[1].tool_call_id"),
        (Request(messages=[calling("a"), result("b")]), "messages[1].tool_call_id"),
        (Request(messages=[calling("a"), result("a"), result("a")]), "messages[2].tool_call_id"),
        (Request(messages=[calling("a"), result("")]), "messages[1].tool_call_id"),
        (Request(messages=[calling("a", "a"), result("a")]), "messages[0].tool_calls"),
        (Request(messages=[calling(""), result("a")]), "messages[0].tool_calls[0]"),
        (
            Request(
                messages=[
                    chat_pb2.ChatMessage(role=USER.role, tool_calls=calling("a").tool_calls),
                ]
            ),
            "messages[0].tool_calls",
        ),
        (Request(messages=[USER], tools=[offer()] * 129), "tools"),
        (Request(messages=[USER], tools=[offer(), offer()]), "tools"),
        (Request(messages=[USER], tools=[offer(""), offer()]), "tools[0].name"),
        (Request(messages=[USER], tools=[offer("a b")]), "tools[0].name"),
        (Request(messages=[USER], tools=[offer("required")]), "tools[0].name"),
        (Request(messages=[USER], tools=[offer(schema="{")]), "tools[0].arguments_schema"),
        (Request(messages=[USER], tools=[offer(schema="[]")]), "tools[0].arguments_schema"),
        (Request(messages=[USER], tools=[offer()], tool_choice="other"), "tool_choice"),
        (Request(messages=[USER], tool_choice="required"), "tool_choice"),
        (Request(messages=[USER], continues_last=True), "continues_last"),
        (
            Request(messages=[USER, calling("a"), result("a")], continues_last=True),
            "continues_last",
        ),
    ],
)
def test_a_request_that_cannot_be_used_is_refused_by_field(
    request_: model_pb2.GenerateRequest, field: str
) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        to_prompt(request_, SETTINGS, CAN)

    assert caught.value.field == field


@pytest.mark.parametrize("choice", ["", "auto", "none", "required", "sql"])
def test_every_way_to_choose_a_tool_is_taken(choice: str) -> None:
    request = Request(messages=[USER], tools=[offer(), offer("mail")], tool_choice=choice)

    assert to_prompt(request, SETTINGS, CAN).tool_choice == choice


@requirement("conversing:refused")
@pytest.mark.parametrize(
    ("request_", "field", "setting"),
    [
        (Request(messages=[USER], tools=[offer()]), "tools", "set `tools`"),
        (Request(messages=[USER], seed=0), "seed", "set `seed`"),
        (
            Request(messages=[USER], response_format=form("json_object", "", "")),
            "response_format",
            "set `json_object`",
        ),
        (Request(messages=[USER], response_format=FORM), "response_format", "set `json_schema`"),
        (
            Request(messages=[USER, SAID], continues_last=True),
            "continues_last",
            "set `prefill`",
        ),
    ],
)
def test_what_the_model_cannot_do_is_refused_and_names_the_setting(
    request_: model_pb2.GenerateRequest, field: str, setting: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=setting) as caught:
        to_prompt(request_, SETTINGS, Capabilities())

    assert caught.value.field == field


@requirement("conversing:options")
@pytest.mark.parametrize("strict", [None, False, True])
@pytest.mark.parametrize("number", [0.0, 0.5])
def test_what_a_hop_asks_for_is_what_the_model_hop_reads(
    strict: bool | None, number: float
) -> None:
    form = ResponseFormat(
        kind="json_schema", name="rows", description="All.", schema="{}", strict=strict
    )
    options = GenerationOptions(
        max_output_tokens=7,
        temperature=number,
        top_p=1 - number,
        stop=("END", "x"),
        seed=int(number),
        response_format=form,
        tools=[ToolOffer("sql", "Asks.", "{}", strict=True), ToolOffer("mail", "", "")],
        tool_choice="sql",
        single_tool_call=True,
    )

    read = to_prompt(to_request([Message("user", "Hello")], options), SETTINGS, CAN)

    assert read == Prompt([Message("user", "Hello")], **_fields(options))


def test_what_no_hop_asks_for_is_not_read() -> None:
    read = to_prompt(to_request([Message("user", "Hello")], NO_OPTIONS), SETTINGS, CAN)

    assert read == Prompt([Message("user", "Hello")], max_output_tokens=50, tools=[])


def _fields(options: GenerationOptions) -> dict[str, Any]:
    return {field.name: getattr(options, field.name) for field in fields(options)}


@requirement("conversing:refused")
@pytest.mark.parametrize(
    ("request_", "field", "setting"),
    [
        (
            Request(
                messages=[USER],
                tools=[chat_pb2.ToolOffer(name="sql", arguments_schema="{}", strict=True)],
            ),
            "tools",
            "set `strict_tools`",
        ),
        (
            Request(messages=[USER], tools=[offer()], single_tool_call=True),
            "single_tool_call",
            "set `single_tool_call`",
        ),
    ],
)
def test_a_model_that_only_calls_tools_is_held_to_nothing_more(
    request_: model_pb2.GenerateRequest, field: str, setting: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=setting) as caught:
        to_prompt(request_, SETTINGS, Capabilities(tools=True))

    assert caught.value.field == field


def test_every_option_becomes_a_part_of_the_prompt() -> None:
    request = Request(
        messages=[USER],
        top_p=0.5,
        stop=["END", "\n\n"],
        seed=0,
        response_format=form("json_schema", "rows", "{}"),
        tools=[offer()],
        single_tool_call=True,
    )
    request.response_format.strict = False

    prompt = to_prompt(request, SETTINGS, CAN)

    assert (prompt.top_p, prompt.stop, prompt.seed) == (0.5, ("END", "\n\n"), 0)
    assert prompt.response_format == ResponseFormat(
        kind="json_schema", name="rows", schema="{}", strict=False
    )
    assert prompt.single_tool_call


def test_an_answer_that_has_begun_may_be_gone_on_from() -> None:
    request = Request(messages=[USER, SAID], continues_last=True)

    assert to_prompt(request, SETTINGS, CAN).continues_last


def test_bytes_count_and_not_characters() -> None:
    chinese = chat_pb2.ChatMessage(role=chat_pb2.CHAT_ROLE_USER, content="数" * 40)

    with pytest.raises(InvalidArgumentError, match="120 bytes"):
        to_prompt(Request(messages=[chinese]), SETTINGS, CAN)
