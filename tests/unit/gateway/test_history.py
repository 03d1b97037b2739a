"""Holds the front door to refusing a history that no model could be given."""

import pytest

from gateway.config import GatewaySettings
from gateway.question import check_question
from services.runtime.errors import InvalidArgumentError
from sixhop.type.v1.chat_pb2 import (
    CHAT_ROLE_ASSISTANT,
    CHAT_ROLE_SYSTEM,
    CHAT_ROLE_TOOL,
    CHAT_ROLE_USER,
    ChatMessage,
    ToolCall,
)
from sixhop.type.v1.run_pb2 import Question
from tests.requirements import requirement

SETTINGS = GatewaySettings(max_history_count=6, max_history_bytes=200)
ASKED = ChatMessage(role=CHAT_ROLE_USER, content="Where is it?")
UNKNOWN = ChatMessage.FromString(b"\x08\x63\x12\x01x")
"""Has a role of a later release."""
RULES = ChatMessage(role=CHAT_ROLE_SYSTEM, content="Be kind.")
ANSWERED = ChatMessage(role=CHAT_ROLE_ASSISTANT, content="In port.")


def calls(*ids: str) -> ChatMessage:
    """Return an assistant's message that asks for tools."""
    wanted = [ToolCall(id=each, name="search", arguments="{}") for each in ids]
    return ChatMessage(role=CHAT_ROLE_ASSISTANT, tool_calls=wanted, reasoning="hm")


def result(of: str, reasoning: str = "") -> ChatMessage:
    """Return the result of a tool call."""
    return ChatMessage(role=CHAT_ROLE_TOOL, content="found", tool_call_id=of, reasoning=reasoning)


def check(*history: ChatMessage) -> None:
    """Look at a question with this history."""
    check_question(Question(text="And now?", history=history), SETTINGS)


@pytest.mark.parametrize(
    "history",
    [
        [],
        [ASKED, ANSWERED],
        [ASKED, ANSWERED] * 3,
        [ANSWERED],
        [RULES],
        [RULES, RULES, ASKED, ANSWERED],
        [ASKED, RULES],
        [RULES, ASKED, ANSWERED, RULES],
        [ASKED, calls("a"), result("a"), ANSWERED],
        [ASKED, calls("a", "b"), result("b"), result("a"), ANSWERED],
        [ASKED, calls("a"), result("a"), calls("a"), result("a")],
    ],
)
def test_a_history_that_a_model_can_be_given_passes(history: list[ChatMessage]) -> None:
    check(*history)


@requirement("gateway:history")
@pytest.mark.parametrize(
    ("history", "field", "fix"),
    [
        ([ASKED] * 7, "question.history", "has 7 messages, the limit is 6"),
        (
            [ChatMessage(role=CHAT_ROLE_USER, content="x" * 200)],
            "question.history",
            "bytes, the limit is 200; leave out the oldest",
        ),
        ([ChatMessage(content="x")], "question.history[0].role", "user, assistant or tool"),
        ([UNKNOWN], "question.history[0].role", "say system"),
        ([ChatMessage(role=CHAT_ROLE_USER)], "question.history[0].content", "empty"),
        ([ChatMessage(role=CHAT_ROLE_ASSISTANT)], "question.history[0].content", "empty"),
        (
            [ChatMessage(role=CHAT_ROLE_USER, content="x", reasoning="hm")],
            "question.history[0].reasoning",
            "only an assistant",
        ),
        (
            [ChatMessage(role=CHAT_ROLE_USER, content="x", tool_call_id="a")],
            "question.history[0].tool_call_id",
            "and nowhere else",
        ),
        ([result("a")], "question.history[0].tool_call_id", "no call right before"),
        ([calls("a"), RULES, result("a")], "question.history[1]", "before the results"),
        ([calls("a"), result("b")], "question.history[1].tool_call_id", "no call right before"),
        (
            [calls("a"), result("a"), result("a")],
            "question.history[2].tool_call_id",
            "answered already",
        ),
        (
            [calls("a"), result("a", reasoning="x")],
            "question.history[1].reasoning",
            "only an assistant",
        ),
        ([calls("a", "b"), result("a"), ASKED], "question.history[2]", "before the results"),
        ([calls("a", "b"), result("a")], "question.history", "ends before the results"),
        ([calls("a", "a")], "question.history[0].tool_calls", "its own id"),
        ([calls("")], "question.history[0].tool_calls[0]", "an id and a name"),
    ],
)
def test_a_history_that_no_model_could_be_given_is_refused(
    history: list[ChatMessage], field: str, fix: str
) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        check(*history)

    assert caught.value.field == field
    assert fix in caught.value.problem
