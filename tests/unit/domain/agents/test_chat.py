"""Holds the chat agent to the model's words, and to its error."""

import pytest

from services.domain.agents.chat import AGENT
from services.runtime.conversation import Message
from services.runtime.errors import DependencyFailedError, Origin
from tests.requirements import requirement
from tests.unit.domain.database import Database
from tests.unit.domain.running import Model, Tools, answered, text_of


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
