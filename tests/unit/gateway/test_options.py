"""Holds the front door to refusing tools and options that no model could be given."""

import pytest

from gateway.config import GatewaySettings
from gateway.question import check_question
from services.runtime.errors import InvalidArgumentError
from sixhop.type.v1.chat_pb2 import (
    CHAT_ROLE_ASSISTANT,
    CHAT_ROLE_TOOL,
    CHAT_ROLE_USER,
    ChatMessage,
    ToolCall,
    ToolOffer,
)
from sixhop.type.v1.generation_pb2 import GenerationOptions, ResponseFormat
from sixhop.type.v1.run_pb2 import Question
from tests.requirements import requirement

SETTINGS = GatewaySettings(max_tools_bytes=4000, max_format_bytes=100)
LOOK_UP = ToolOffer(name="look_up", description="Finds.", arguments_schema='{"type": "object"}')
ROWS = ResponseFormat(kind="json_schema", name="rows", schema='{"type": "object"}')
ROUND = [
    ChatMessage(role=CHAT_ROLE_USER, content="Where is parcel 7?"),
    ChatMessage(role=CHAT_ROLE_ASSISTANT, tool_calls=[ToolCall(id="a", name="look_up")]),
    ChatMessage(role=CHAT_ROLE_TOOL, tool_call_id="a", content="In port."),
]
SAID = ChatMessage(role=CHAT_ROLE_ASSISTANT, content="It is in port.")


def nested(levels: int) -> str:
    """Return JSON of so many levels."""
    inner = "{}" if levels % 2 else "[]"
    for level in range(levels - 1, 0, -1):
        inner = f'{{"a": {inner}}}' if level % 2 else f"[{inner}]"
    return inner


def asked(**more: object) -> Question:
    return Question(text="Where is it?", **more)  # type: ignore[arg-type]


def generated(**options: object) -> Question:
    return asked(generation=GenerationOptions(**options))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "question",
    [
        asked(tools=[LOOK_UP]),
        asked(tools=[LOOK_UP, ToolOffer(name="A-z_0" * 12)], tool_choice="look_up"),
        asked(tools=[LOOK_UP], tool_choice="required"),
        asked(tools=[ToolOffer(name="x" * 64, strict=True)]),
        asked(tool_choice="none"),
        asked(tools=[ToolOffer(name="a", arguments_schema=nested(201))]),
        generated(),
        generated(max_output_tokens=7, temperature=0, top_p=1, stop=["x" * 256] * 4, seed=-1),
        generated(response_format=ResponseFormat(kind="text")),
        generated(response_format=ResponseFormat(kind="json_object")),
        generated(response_format=ROWS),
        Question(history=ROUND, tools=[LOOK_UP]),
        Question(text=" ", history=ROUND),
        Question(text=" ", history=[*ROUND, SAID, *ROUND[:1]]),
    ],
)
def test_what_a_model_could_be_asked_for_passes(question: Question) -> None:
    check_question(question, SETTINGS)


@requirement("conversing:checks", "conversing:one-rule")
@pytest.mark.parametrize(
    ("question", "field", "fix"),
    [
        (
            asked(tools=[ToolOffer(name="a", description="x" * 4000)]),
            "question.tools",
            "shorten their descriptions",
        ),
        (asked(tools=[LOOK_UP, LOOK_UP]), "question.tools", "offer each tool once"),
        (asked(tools=[LOOK_UP, ToolOffer()]), "question.tools[1].name", "1 to 64 letters"),
        (asked(tools=[ToolOffer(name="a b")]), "question.tools[0].name", "1 to 64 letters"),
        (asked(tools=[ToolOffer(name="x" * 65)]), "question.tools[0].name", "1 to 64 letters"),
        (asked(tools=[ToolOffer(name="auto")]), "question.tools[0].name", "none of auto"),
        (
            asked(tools=[ToolOffer(name="a", arguments_schema="[]")]),
            "question.tools[0].arguments_schema",
            "an object",
        ),
        (
            asked(tools=[ToolOffer(name="a", arguments_schema="{")]),
            "question.tools[0].arguments_schema",
            "an object",
        ),
        (
            asked(tools=[ToolOffer(name="a", arguments_schema=nested(301))]),
            "question.tools[0].arguments_schema",
            "no deeper than 200",
        ),
        (asked(tools=[LOOK_UP], tool_choice="x"), "question.tool_choice", "offered: look_up"),
        (asked(tool_choice="required"), "question.tool_choice", "offered: none"),
        (generated(max_output_tokens=-1), "question.generation.max_output_tokens", "positive"),
        (generated(temperature=2.1), "question.generation.temperature", "0 to 2"),
        (generated(temperature=float("nan")), "question.generation.temperature", "0 to 2"),
        (generated(top_p=0), "question.generation.top_p", "up to 1"),
        (generated(top_p=1.1), "question.generation.top_p", "up to 1"),
        (generated(stop=["x"] * 5), "question.generation.stop", "at most 4"),
        (generated(stop=["x", ""]), "question.generation.stop", "1 to 256 characters"),
        (generated(stop=["x" * 257]), "question.generation.stop", "1 to 256 characters"),
        (
            generated(single_tool_call=True),
            "question.generation.single_tool_call",
            "offer a tool",
        ),
        (
            generated(response_format=ResponseFormat(kind="yaml")),
            "question.generation.response_format.kind",
            "json_object or json_schema",
        ),
        (
            generated(response_format=ResponseFormat(kind="json_object", schema="{}")),
            "question.generation.response_format",
            "json_schema alone",
        ),
        (
            generated(response_format=ResponseFormat(kind="json_schema", schema="{}")),
            "question.generation.response_format.name",
            "1 to 64 letters",
        ),
        (
            generated(response_format=ResponseFormat(kind="json_schema", name="rows")),
            "question.generation.response_format.schema",
            "an object",
        ),
        (
            generated(response_format=ResponseFormat(kind="json_schema", schema="x" * 100)),
            "question.generation.response_format",
            "bytes, the limit is 100",
        ),
        (Question(), "question.text", "or end the history with"),
        (Question(text=" ", history=[SAID]), "question.text", "ask something"),
        (Question(history=[*ROUND[:1], SAID]), "question.text", "ask something"),
        (Question(history=ROUND[:2]), "question.text", "ask something"),
        (Question(tools=[LOOK_UP]), "question.text", "ask something"),
    ],
)
def test_what_no_model_could_be_asked_for_is_refused_by_field_and_fix(
    question: Question, field: str, fix: str
) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        check_question(question, SETTINGS)

    assert caught.value.field == field
    assert fix in caught.value.problem


def test_so_many_tools_are_the_most() -> None:
    offers = [ToolOffer(name=f"t{number}") for number in range(129)]

    check_question(asked(tools=offers[:128]), GatewaySettings())
    with pytest.raises(InvalidArgumentError, match="has 129 tools; send at most 128"):
        check_question(asked(tools=offers), GatewaySettings())


def test_a_refusal_never_repeats_at_length_what_was_sent() -> None:
    offers = [ToolOffer(name=f"{number:064}") for number in range(128)]
    wanted = [ToolCall(id=f"{number:09}" * 100, name="x") for number in range(100)]
    unanswered = ChatMessage(role=CHAT_ROLE_ASSISTANT, tool_calls=wanted)

    for question in (asked(tools=offers, tool_choice="x"), asked(history=[unanswered])):
        with pytest.raises(InvalidArgumentError) as caught:
            check_question(question, GatewaySettings())
        assert len(caught.value.message) < 1000
