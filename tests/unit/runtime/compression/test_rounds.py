"""Splits conversations into rounds."""

from hypothesis import given

from services.runtime.compression.rounds import split
from services.runtime.conversation import Message, ToolCall
from tests.requirements import requirement
from tests.unit.runtime.compression.conversations import (
    SYSTEM,
    chat,
    conversations,
    exchange,
    tool_exchange,
)


def sizes(messages: list[Message]) -> list[int]:
    """Return how many messages each round has."""
    return [len(each.messages) for each in split(messages).rounds]


def test_a_round_is_a_question_and_everything_up_to_the_next() -> None:
    parts = split(chat("one", "two"))

    assert parts.head == (SYSTEM,)
    assert [each.messages for each in parts.rounds] == [
        tuple(exchange("one")),
        tuple(exchange("two")),
    ]


def test_what_was_said_before_any_question_is_a_round() -> None:
    assert sizes([SYSTEM, Message("assistant", "welcome"), *exchange("one")]) == [1, 2]


def test_a_later_system_message_belongs_to_the_round_and_is_an_instruction() -> None:
    rule = Message("system", "Be brief.")

    parts = split([SYSTEM, *exchange("one"), rule, *exchange("two")])

    assert parts.rounds[0].instructions == (rule,)
    assert parts.rounds[0].talk == tuple(exchange("one"))


def test_a_round_with_tools_is_one() -> None:
    messages = tool_exchange("one", call_id="a", result="1")

    assert sizes([*messages, *exchange("two")]) == [4, 2]


@requirement("compression:whole-rounds")
def test_a_question_between_a_tool_call_and_its_result_parts_them_not() -> None:
    question, asked, result, answer = tool_exchange("one", call_id="a", result="1")

    parted = [question, asked, Message("user", "hurry"), result, answer]

    assert sizes([*parted, *exchange("two")]) == [5, 2]


def test_of_several_results_the_last_ends_the_tool_round() -> None:
    asked = Message("assistant", "", (ToolCall("a", "x", "{}"), ToolCall("b", "x", "{}")))
    first, second = (Message("tool", "1", tool_call_id=each) for each in "ab")

    messages = [
        Message("user", "one"), asked, first, Message("user", "hurry"), second, *exchange("two"),
    ]  # fmt: skip

    assert sizes(messages) == [5, 2]


def test_ids_that_every_message_numbers_anew_tie_no_rounds_together() -> None:
    messages = [
        *tool_exchange("one", call_id="call_0", result="1"),
        *tool_exchange("two", call_id="call_0", result="2"),
    ]

    assert sizes(messages) == [4, 4]


def test_a_result_that_comes_twice_ties_no_rounds_together() -> None:
    messages = tool_exchange("one", call_id="a", result="1")

    assert sizes([*messages, Message("user", "two"), messages[2]]) == [4, 2]


def test_a_call_without_a_result_and_a_result_without_a_call_stay_where_they_stand() -> None:
    messages = [
        Message("user", "one"),
        Message("assistant", "", (ToolCall("a", "x", "{}"),)),
        Message("user", "two"),
        Message("tool", "1", tool_call_id="b"),
    ]

    assert sizes(messages) == [2, 2]


@given(conversations)
def test_the_parts_are_the_conversation(messages: list[Message]) -> None:
    parts = split(messages)

    assert [*parts.head, *(each for one in parts.rounds for each in one.messages)] == messages
    assert all(each.messages for each in parts.rounds)
