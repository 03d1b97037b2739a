"""Reads requests for responses as OpenAI's clients write them."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field
from pydantic.config import JsonDict
from pydantic_core import PydanticCustomError

from gateway.http.answer_request import AnswerRequest
from gateway.http.chat_fields import (
    AUTO,
    MAX_ITEMS,
    MAX_TOKENS,
    Naming,
    NotTaken,
    Off,
)
from gateway.http.responses_items import (
    AllowedTools,
    CallItem,
    FunctionTool,
    Item,
    MessageItem,
    NamedTool,
    OtherItem,
    TextOptions,
)
from services.runtime.conversation_rules import MAX_TOOLS
from services.runtime.errors import InvalidArgumentError
from sixhop.type.v1 import chat_pb2, generation_pb2

_LOGPROBS = "message.output_text.logprobs"
_NAMES = {
    "agent": "model",
    "question": "input",
    "history": "input",
    "history[]": "@",
    "history[].tool_call_id": "@.call_id",
    "history[].tool_calls[].name": "@.name",
    "history[].tool_calls[].arguments": "@.arguments",
    "messages": "input",
    "messages[]": "input",
    "tools": "tools",
    "tools[]": "tools[]",
    "tools[].arguments_schema": "tools[].parameters",
    "single_tool_call": "parallel_tool_calls",
    "response_format": "text.format",
    "response_format.kind": "text.format.type",
    "language": "sixhop.language",
    "session_id": "sixhop.session_id",
    "sources": "sixhop.sources",
}
"""The fields of a question, and what they are in a request for a response."""


def _without_logprobs(include: list[str]) -> list[str]:
    if _LOGPROBS in include:
        raise PydanticCustomError("not_taken", "has log probabilities, which no agent has")
    return include


_EXAMPLE: JsonDict = {"model": AUTO, "input": "Good morning."}
_STREAMED: JsonDict = {**_EXAMPLE, "stream": True}


class ResponsesRequest(AnswerRequest):
    """Asks for a response.

    Nothing is stored: the whole conversation comes with every request. A field that would change
    the answer and that no agent can honour is refused; one that would not is taken and left unread.
    """

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE, _STREAMED]})

    input: (
        Annotated[str, Field(min_length=1)]
        | Annotated[list[Item], Field(fail_fast=True, min_length=1, max_length=MAX_ITEMS)]
    )
    """The user's word, or the conversation, oldest first; it ends with the user's word or with a
    tool's result."""
    instructions: str | None = None
    """The rules of the conversation; they come before those of its items."""
    stream: bool | None = None
    """Whether the answer comes as server-sent events."""
    tools: Annotated[list[FunctionTool], Field(fail_fast=True, max_length=MAX_TOOLS)] | None = None
    """The caller's own tools: the answer asks for them, and the caller runs them."""
    tool_choice: (
        Literal["none", "auto", "required"]
        | Annotated[NamedTool | AllowedTools, Field(discriminator="type")]
        | None
    ) = None
    parallel_tool_calls: bool | None = None
    """False asks for one tool at most."""
    max_output_tokens: int | None = Field(default=None, ge=1, le=MAX_TOKENS)
    """The most tokens to write; fewer are granted where the time left allows no more."""
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, gt=0, le=1)
    text: TextOptions | None = None

    store: Off | None = None
    """Nothing is stored."""
    background: Off | None = None
    """`POST /v1/runs` starts what goes on by itself."""
    previous_response_id: NotTaken = None
    conversation: NotTaken = None
    truncation: Literal["disabled"] | None = None
    top_logprobs: int | None = Field(default=None, ge=0, le=0)
    include: Annotated[list[str], AfterValidator(_without_logprobs)] | None = None
    access_programs: NotTaken = None
    background_options: NotTaken = None
    context_management: NotTaken = None
    image: NotTaken = None
    moderation: NotTaken = None
    prompt: NotTaken = None

    metadata: dict[str, str] | None = None
    """Is given back, and left unread, as is all that follows."""
    max_tool_calls: int | None = None
    prompt_cache_key: str | None = None
    prompt_cache_options: dict[str, Any] | None = None
    prompt_cache_retention: str | None = None
    reasoning: dict[str, Any] | None = None
    safety_identifier: str | None = None
    service_tier: str | None = None
    stream_options: dict[str, Any] | None = None
    user: str | None = None

    @property
    def naming(self) -> Naming:
        """Return what the fields of the question are called in this request."""
        places = [place for place, _ in self._placed()]
        last = places[-1]
        return Naming(_NAMES, places, f"{last}.content" if "[" in last else last, self.offered)

    def _said(self) -> list[chat_pb2.ChatMessage]:
        return [message for _, message in self._placed()]

    def _wrong_end(self) -> tuple[str, str]:
        return "input", "must end with the user's word, or with the output of a function_call"

    def _tool_names(self) -> list[str]:
        return [each.name for each in self.tools or ()]

    def _offer(self, number: int) -> chat_pb2.ToolOffer:
        return (self.tools or [])[number].offer(f"tools[{number}]")

    def _tool_choice(self) -> str:
        if isinstance(self.tool_choice, NamedTool):
            if not self.tool_choice.name:
                # Behind this an empty choice is none.
                raise InvalidArgumentError("tool_choice.name", "is empty; name a tool")
            return self.tool_choice.name
        if isinstance(self.tool_choice, AllowedTools):
            return self.tool_choice.mode
        return self.tool_choice or ""

    def _allowed(self) -> list[str] | None:
        if not isinstance(self.tool_choice, AllowedTools):
            return None
        return [each.name for each in self.tool_choice.tools]

    def _placed(self) -> Iterator[tuple[str, chat_pb2.ChatMessage]]:
        """Yield the conversation as messages, each with the field that it comes from.

        Raises:
            InvalidArgumentError: an item cannot be given to an agent.
        """
        if self.instructions:
            yield (
                "instructions",
                chat_pb2.ChatMessage(role=chat_pb2.CHAT_ROLE_SYSTEM, content=self.instructions),
            )
        if isinstance(self.input, str):
            yield (
                "input",
                chat_pb2.ChatMessage(role=chat_pb2.CHAT_ROLE_USER, content=self.input),
            )
            return
        # What the model says and the tools that it asks for then are one message of its.
        open_place, spoken = "", chat_pb2.ChatMessage()
        for number, item in enumerate(self.input):
            place = f"input[{number}]"
            if isinstance(item, OtherItem):
                raise item.refusal(place)
            begins = isinstance(item, MessageItem) and item.role == "assistant"
            if open_place and (begins or not isinstance(item, CallItem)):
                yield open_place, spoken
                open_place = ""
            if isinstance(item, CallItem):
                if not open_place:
                    open_place = place
                    spoken = chat_pb2.ChatMessage(role=chat_pb2.CHAT_ROLE_ASSISTANT)
                spoken.tool_calls.append(item.call())
            elif begins:
                open_place, spoken = place, item.message(place)
            else:
                yield place, item.message(place)
        if open_place:
            yield open_place, spoken

    def _generation(self) -> generation_pb2.GenerationOptions:
        form = self.text.format if self.text is not None else None
        return generation_pb2.GenerationOptions(
            max_output_tokens=self.max_output_tokens or 0,
            temperature=self.temperature,
            top_p=self.top_p,
            response_format=None if form is None else form.format(),
            # Without tools it means nothing, and would keep the question from other agents.
            single_tool_call=self.parallel_tool_calls is False and bool(self.tools),
        )
