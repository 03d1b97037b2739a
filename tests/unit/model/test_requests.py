"""Writes prompts for every dialect of the table, and never a field that one does not know."""

from dataclasses import replace
from typing import Any

import pytest

from services.model.backend import Prompt, Provider
from services.model.dialects import DEEPSEEK, DIALECTS, LLAMA_CPP, OPENAI, QWEN, VLLM
from services.model.requests import request_body, request_url
from services.runtime.conversation import Message, ToolCall, ToolOffer
from services.runtime.generation_options import ResponseFormat
from tests.requirements import requirement

OFFER = ToolOffer("sql", "Asks.", '{"type":"object"}')
CALLED = Message("assistant", "", (ToolCall("a", "sql", '{"q":1}'),), reasoning="Hm.")
ROUND = [Message("user", "How many?"), CALLED, Message("tool", "7", tool_call_id="a")]
BEGUN = [Message("user", "How many?"), Message("assistant", "There are")]
COMMON = {"model", "messages", "stream", "stream_options", "max_tokens"}


def provider(dialect: str, **more: Any) -> Provider:
    found = DIALECTS[dialect]
    known = Provider(
        base_url="https://host/v1",
        model="m",
        dialect=found,
        can=found.capabilities,
        max_tokens_field=found.max_tokens_field,
        thinks=found.thinks,
    )
    return replace(known, **more)


def body(dialect: str, prompt: Prompt, **more: Any) -> dict[str, Any]:
    return dict(request_body(provider(dialect, **more), prompt))


@pytest.mark.parametrize(
    ("dialect", "extra"),
    [
        ("plain", set()),
        ("deepseek", {"thinking"}),
        ("vllm", set()),
        ("llama.cpp", set()),
        ("qwen", set()),
        ("openai", {"max_completion_tokens"}),
    ],
)
def test_a_plain_question_has_only_fields_that_the_dialect_knows(
    dialect: str, extra: set[str]
) -> None:
    made = body(dialect, Prompt([Message("user", "Hello", reasoning="x")], max_output_tokens=10))

    expected = COMMON | extra
    assert set(made) == (expected - {"max_tokens"} if dialect == "openai" else expected)
    assert made["messages"] == [{"role": "user", "content": "Hello"}]


def test_every_dialect_is_in_the_list_above() -> None:
    assert set(DIALECTS) == {"plain", "deepseek", "vllm", "llama.cpp", "qwen", "openai"}


def test_deepseek_gets_its_reasoning_back_with_tool_calls_even_an_empty_one() -> None:
    silent = Message("assistant", "", (ToolCall("b", "sql", "{}"),))
    said = Message("assistant", "Seven.", reasoning="Sure.")
    told = Message("tool", "8", tool_call_id="b")

    made = body("deepseek", Prompt([*ROUND, said, silent, told], max_output_tokens=10))["messages"]

    assert made[1]["reasoning_content"] == "Hm."
    assert "reasoning_content" not in made[3]
    assert made[4]["reasoning_content"] == ""


@pytest.mark.parametrize("dialect", sorted(set(DIALECTS) - {"deepseek"}))
def test_no_other_vendor_ever_sees_reasoning(dialect: str) -> None:
    assert "Hm." not in str(body(dialect, Prompt(ROUND, max_output_tokens=10)))


@pytest.mark.parametrize("dialect", ["deepseek", "qwen", "openai"])
def test_tool_rounds_are_sent_as_they_were(dialect: str) -> None:
    made = body(dialect, Prompt(ROUND, max_output_tokens=10, tools=(OFFER,)))

    call = {"id": "a", "type": "function", "function": {"name": "sql", "arguments": '{"q":1}'}}
    assert made["messages"][1]["tool_calls"] == [call]
    assert made["messages"][2] == {"role": "tool", "content": "7", "tool_call_id": "a"}
    assert made["tools"] == [
        {
            "type": "function",
            "function": {"name": "sql", "description": "Asks.", "parameters": {"type": "object"}},
        }
    ]


def test_a_model_without_tools_is_told_of_earlier_rounds_in_words() -> None:
    made = body("plain", Prompt(ROUND, max_output_tokens=10))

    assert set(made) == COMMON
    assert made["messages"][1:] == [
        {"role": "assistant", "content": 'Called sql as a: {"q":1}'},
        {"role": "user", "content": "Result of a: 7"},
    ]


RULED = [
    Message("system", "Be kind."),
    *ROUND,
    Message("system", "Now be brief."),
    Message("user", "And today?"),
]


@pytest.mark.parametrize("dialect", [*DIALECTS])
@requirement("conversing:system")
def test_a_later_rule_stands_in_its_place_only_where_the_model_takes_it(dialect: str) -> None:
    made = body(dialect, Prompt(RULED, max_output_tokens=10))["messages"]

    told = [each["content"] for each in made if each["role"] == "system"]
    if dialect == "openai":
        assert [each["role"] for each in made] == [each.role for each in RULED]
        assert told == ["Be kind.", "Now be brief."]
    else:
        assert made[0]["role"] == "system"
        assert told == ["Be kind.\n\nNow be brief."]
        assert len(made) == len(RULED) - 1


def test_the_settings_say_that_a_model_takes_later_rules() -> None:
    can = replace(DIALECTS["vllm"].capabilities, late_rules=True)

    made = body("vllm", Prompt(RULED, max_output_tokens=10), can=can)["messages"]

    assert made[-2] == {"role": "system", "content": "Now be brief."}


def test_rules_that_all_come_first_are_sent_as_they_are() -> None:
    rules = [Message("system", "Be kind."), Message("system", "Be brief.")]

    made = body("plain", Prompt([*rules, Message("user", "Hi")], max_output_tokens=10))

    assert [each["role"] for each in made["messages"]] == ["system", "system", "user"]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("", None),
        ("auto", "auto"),
        ("none", "none"),
        ("required", "required"),
        ("sql", {"type": "function", "function": {"name": "sql"}}),
    ],
)
def test_a_choice_of_tools_is_sent_as_the_protocol_says(choice: str, expected: Any) -> None:
    made = body("openai", Prompt(ROUND, max_output_tokens=10, tools=(OFFER,), tool_choice=choice))

    assert made.get("tool_choice") == expected


@requirement("conversing:options")
def test_numbers_stops_and_a_seed_are_sent_as_they_were() -> None:
    made = body("vllm", Prompt(ROUND, temperature=0.0, top_p=0.5, stop=("END", "x"), seed=0))

    assert (made["temperature"], made["top_p"], made["seed"]) == (0.0, 0.5, 0)
    assert made["stop"] == ["END", "x"]


@requirement("conversing:options")
@pytest.mark.parametrize(
    ("form", "expected"),
    [
        (ResponseFormat(kind="json_object"), {"type": "json_object"}),
        (
            ResponseFormat(kind="json_schema", name="rows", schema='{"type":"array"}'),
            {"type": "json_schema", "json_schema": {"name": "rows", "schema": {"type": "array"}}},
        ),
        (
            ResponseFormat(
                kind="json_schema", name="rows", description="All.", schema="{}", strict=False
            ),
            {
                "type": "json_schema",
                "json_schema": {
                    "name": "rows",
                    "description": "All.",
                    "schema": {},
                    "strict": False,
                },
            },
        ),
    ],
)
def test_a_response_format_is_sent_as_the_protocol_says(
    form: ResponseFormat, expected: Any
) -> None:
    assert body("openai", Prompt(ROUND, response_format=form))["response_format"] == expected


@requirement("conversing:options")
def test_a_strict_tool_and_a_single_call_are_told() -> None:
    prompt = Prompt(ROUND, tools=(replace(OFFER, strict=True), OFFER), single_tool_call=True)

    made = body("openai", prompt)

    assert [tool["function"].get("strict") for tool in made["tools"]] == [True, None]
    assert made["parallel_tool_calls"] is False


def test_the_settings_change_numbers_but_not_what_an_answer_is() -> None:
    form = ResponseFormat(kind="json_object")
    extra = {"top_p": 0.1, "seed": None, "stop": ["y"], "response_format": {"type": "text"}}

    made = body(
        "vllm",
        Prompt(ROUND, top_p=0.5, seed=7, stop=("x",), response_format=form),
        extra_body=extra,
    )

    assert made["top_p"] == 0.1
    assert "seed" not in made
    assert (made["stop"], made["response_format"]) == (["x"], {"type": "json_object"})


def test_without_tools_nothing_is_said_of_them() -> None:
    made = body("openai", Prompt(ROUND, max_output_tokens=10, tool_choice="none"))

    assert not {"tools", "tool_choice"} & set(made)


@pytest.mark.parametrize(
    ("dialect", "last", "more"),
    [
        ("deepseek", {"prefix": True}, {}),
        ("qwen", {"partial": True}, {}),
        ("llama.cpp", {}, {}),
        ("vllm", {}, {"continue_final_message": True, "add_generation_prompt": False}),
    ],
)
def test_each_dialect_goes_on_from_an_answer_in_its_own_way(
    dialect: str, last: dict[str, Any], more: dict[str, Any]
) -> None:
    plain = body(dialect, Prompt(BEGUN, max_output_tokens=10))
    made = body(dialect, Prompt(BEGUN, max_output_tokens=10, continues_last=True))

    assert made == {
        **plain,
        **more,
        "messages": [
            plain["messages"][0],
            {"role": "assistant", "content": "There are", **last},
        ],
    }


@pytest.mark.parametrize(
    ("dialect", "base_url", "continues", "expected"),
    [
        ("deepseek", "https://api.deepseek.com", False, "https://api.deepseek.com"),
        ("deepseek", "https://api.deepseek.com", True, "https://api.deepseek.com/beta"),
        ("deepseek", "https://api.deepseek.com/v1", True, "https://api.deepseek.com/beta"),
        ("vllm", "http://host:8000/v1", True, "http://host:8000/v1"),
    ],
)
def test_a_continuation_goes_where_the_dialect_serves_it(
    dialect: str, base_url: str, continues: bool, expected: str
) -> None:
    found = provider(dialect, base_url=base_url)

    url = request_url(found, Prompt(BEGUN, max_output_tokens=10, continues_last=continues))

    assert url == f"{expected}/chat/completions"


@pytest.mark.parametrize("dialect", [DEEPSEEK, VLLM, LLAMA_CPP, QWEN], ids=lambda each: each.name)
@pytest.mark.parametrize("thinks", [True, False])
def test_thinking_is_switched_in_the_words_of_the_dialect(dialect: Any, thinks: bool) -> None:
    made = body(dialect.name, Prompt(BEGUN, max_output_tokens=10), thinks=thinks)

    wanted = dialect.thinking_on if thinks else dialect.thinking_off
    assert wanted
    assert {name: made.get(name) for name in wanted} == wanted


def test_the_settings_have_the_last_word_and_cannot_break_the_stream() -> None:
    extra = {"thinking": None, "stream_options": None, "stream": False, "seed": 7}

    made = body("deepseek", Prompt(BEGUN, max_output_tokens=10, temperature=0.5), extra_body=extra)

    assert made["stream"] is True
    assert made["seed"] == 7
    assert made["temperature"] == 0.5
    assert not {"thinking", "stream_options"} & set(made)
    assert OPENAI.max_tokens_field not in made
