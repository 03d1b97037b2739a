"""Holds the chat agent to the model's words, and to its error."""

import pytest

from services.domain.agents.chat import AGENT, MAX_OUTPUT_TOKENS
from services.domain.events import TextDelta
from services.runtime.conversation import Message, ToolCall, ToolOffer
from services.runtime.errors import DependencyFailedError, Origin
from services.runtime.generation_options import GenerationOptions, ResponseFormat
from services.runtime.output_limit import LimitedBy, OutputLimit
from tests.requirements import requirement
from tests.unit.domain.database import Database
from tests.unit.domain.running import Model, Tools, answered, degraded_of, reasons_of, text_of

LOOK_UP = ToolOffer("look_up", "Finds parcels.", "{}")
CALLS = (ToolCall("a", "look_up", '{"parcel": 7}'), ToolCall("b", "look_up", '{"parcel": 8}'))
ROUND = (
    Message("user", "Where are parcels 7 and 8?"),
    Message("assistant", "", CALLS),
    Message("tool", "In port.", tool_call_id="a"),
    Message("tool", "At sea.", tool_call_id="b"),
)


async def test_words_of_the_model_are_the_answer(database: Database) -> None:
    model = Model("Hel", "lo!")

    answer, events = await answered(AGENT, "Hi", Tools(database, "none"), model=model)

    assert (text_of(events), answer.model) == ("Hello!", "tiny")
    assert answer.usage.output_token_count == 5


async def test_model_that_fails_is_the_error(database: Database) -> None:
    failure = DependencyFailedError("model", "gone", cause="unavailable", origin=Origin("model"))
    model = Model(failure=failure)

    with pytest.raises(DependencyFailedError):
        await answered(AGENT, "Hi", Tools(database, "none"), model=model)


async def test_language_of_the_question_is_asked_for(database: Database) -> None:
    model = Model("你好")

    await answered(AGENT, "你好", Tools(database, "none"), model=model, language="zh")

    assert "简体中文" in model.asked[0][0].content


async def test_the_model_is_told_which_tools_cannot_be_used(database: Database) -> None:
    tools, well, sick = Tools(database, "none"), Model("Hello!"), Model("Hello!")

    await answered(AGENT, "What can you do?", tools, model=well)
    tools.out = {"search", "pdf"}
    await answered(AGENT, "What can you do?", tools, model=sick)

    note = "These tools cannot be used right now: pdf, search."
    assert note not in well.asked[0][0].content
    assert note in sick.asked[0][0].content


@requirement("gateway:history")
async def test_what_was_said_before_stands_between_rules_and_question(database: Database) -> None:
    model, tools = Model("Yes."), Tools(database, "none")
    history = [Message("user", "I am Ada."), Message("assistant", "Hello, Ada!")]

    await answered(AGENT, "Who am I?", tools, model=model, history=history)

    (asked,) = model.asked
    assert [message.role for message in asked] == ["system", "user", "assistant", "user"]
    assert list(asked[1:3]) == history
    assert asked[3].content == "Who am I?"


@requirement("conversing:tools", "conversing:deliveries")
async def test_the_callers_tools_are_offered_and_what_the_model_asks_for_comes_after_the_text(
    database: Database,
) -> None:
    model = Model("Let me ", "see.", finish_reason="tool_calls", calls=CALLS)
    options = GenerationOptions(tools=[LOOK_UP], tool_choice="required")

    answer, events = await answered(
        AGENT, "Where is 7?", Tools(database, "none"), model=model, options=options
    )

    (asked,) = model.options
    assert (asked.tools, asked.tool_choice) == ([LOOK_UP], "required")
    assert events == [TextDelta("Let me see."), *CALLS]
    assert answer.finish_reason == "tool_calls"


@requirement("conversing:tools")
async def test_without_a_question_the_end_of_the_history_is_answered(database: Database) -> None:
    model, long = Model("7 is in port."), Message("user", "word " * 5000)

    for history in (ROUND, [*ROUND, long]):
        answer, events = await answered(
            AGENT, "", Tools(database, "none"), model=model, history=history
        )

        assert list(model.asked[-1][1:]) == list(history)
        assert answer.finish_reason == "stop"
        assert degraded_of(events) == []


@requirement("conversing:system")
async def test_the_callers_rules_come_after_the_agents_own_in_one_message(
    database: Database,
) -> None:
    model = Model("Ahoy!")
    history = [Message("system", "Be a pirate."), Message("system", "Sing."), *ROUND]

    await answered(AGENT, "Hi", Tools(database, "none"), model=model, history=history)

    (asked,) = model.asked
    assert [message.role for message in asked].count("system") == 1
    assert asked[0].content.startswith("You are the assistant of sixhop.")
    assert asked[0].content.endswith("\n\nBe a pirate.\n\nSing.")
    assert tuple(asked[1:-1]) == ROUND


@requirement("conversing:system")
async def test_a_rule_that_the_caller_adds_later_stays_where_it_stands(database: Database) -> None:
    model = Model("Ahoy!")
    history = [Message("system", "Be a pirate."), *ROUND, Message("system", "Now sing.")]

    await answered(AGENT, "Hi", Tools(database, "none"), model=model, history=history)

    (asked,) = model.asked
    assert asked[0].content.endswith("\n\nBe a pirate.")
    assert asked[1:] == [*history[1:], Message("user", "Hi")]


@requirement("conversing:options", "conversing:length")
async def test_the_caller_says_how_to_generate_and_for_the_rest_the_agent_does(
    database: Database,
) -> None:
    model, tools = Model("{}"), Tools(database, "none")
    form = ResponseFormat(kind="json_object")
    wanted = GenerationOptions(temperature=0.5, top_p=0.9, stop=("x",), seed=7)
    limited = GenerationOptions(max_output_tokens=5000, response_format=form)

    for options in (None, wanted, limited):
        await answered(AGENT, "Hi", tools, model=model, options=options)

    assert model.options == [
        GenerationOptions(max_output_tokens=MAX_OUTPUT_TOKENS),
        GenerationOptions(
            max_output_tokens=MAX_OUTPUT_TOKENS, temperature=0.5, top_p=0.9, stop=("x",), seed=7
        ),
        limited,
    ]


@requirement("conversing:length")
@pytest.mark.parametrize(
    ("options", "text", "whose"),
    [
        (None, "Half an …", "that this agent sets"),
        (GenerationOptions(max_output_tokens=5), "Half an", "that was asked for"),
    ],
)
async def test_a_cut_answer_says_so_and_is_left_as_it_is_for_who_reads_the_finish_reason(
    database: Database, options: GenerationOptions | None, text: str, whose: str
) -> None:
    limit = OutputLimit(5, LimitedBy.CALLER)
    model = Model("Half an", finish_reason="length", limit=limit)

    answer, events = await answered(
        AGENT, "Hi", Tools(database, "none"), model=model, options=options
    )

    assert text_of(events) == text
    assert answer.finish_reason == "length"
    assert answer.missing == ("the end of the answer",)
    assert degraded_of(events) == [("partial", "answer")]
    assert reasons_of(events) == [f"tiny was cut off at the limit of 5 tokens {whose}"]
