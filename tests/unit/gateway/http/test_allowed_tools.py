"""Holds both kinds of requests to offering only those tools that their choice allows."""

from typing import Any

import pytest

from gateway.http.answer_request import AnswerRequest
from gateway.http.chat_request import ChatRequest
from gateway.http.responses_request import ResponsesRequest
from services.runtime.errors import InvalidArgumentError
from tests.requirements import requirement

pytestmark = requirement("http:requests-are-read-or-refused")


def chat(mode: str, *allowed: str) -> AnswerRequest:
    """Return a request for a chat completion that has three tools and allows some."""

    def tools(names: Any) -> list[Any]:
        return [{"type": "function", "function": {"name": name}} for name in names]

    choice = {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": tools(allowed)}}
    said = [{"role": "user", "content": "Hello"}]
    fields = {"messages": said, "tools": tools("abc"), "tool_choice": choice}
    return ChatRequest.model_validate(fields)


def response(mode: str, *allowed: str) -> AnswerRequest:
    """Return a request for a response that has them and does so."""

    def tools(names: Any) -> list[Any]:
        return [{"type": "function", "name": name} for name in names]

    choice = {"type": "allowed_tools", "mode": mode, "tools": tools(allowed)}
    fields = {"input": "Hello", "tools": tools("abc"), "tool_choice": choice}
    return ResponsesRequest.model_validate(fields)


BOTH = pytest.mark.parametrize("asked", [chat, response])


@BOTH
@pytest.mark.parametrize("mode", ["auto", "required"])
def test_only_what_is_allowed_is_offered(asked: Any, mode: str) -> None:
    question = asked(mode, "c", "b").ask_request(100).question

    assert [each.name for each in question.tools] == ["b", "c"]
    assert question.tool_choice == mode


@BOTH
def test_a_tool_that_is_not_there_cannot_be_allowed(asked: Any) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        asked("auto", "a", "nobody").ask_request(100)

    assert caught.value.field == "tool_choice"


@BOTH
def test_a_tool_is_told_by_the_number_that_the_client_gave_it(asked: Any) -> None:
    naming = asked("auto", "b", "c").naming

    assert naming.name("question.tools[1].name").startswith("tools[2].")
