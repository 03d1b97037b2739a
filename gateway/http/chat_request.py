"""Reads requests for chat completions as OpenAI's clients write them."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field
from pydantic.config import JsonDict

from gateway.http.answer_request import AnswerRequest
from gateway.http.chat_fields import (
    AUTO,
    MAX_ITEMS,
    MAX_SEED,
    MAX_TOKENS,
    Naming,
    NotTaken,
    Off,
    Stop,
)
from gateway.http.chat_messages import (
    AllowedChoice,
    ChatMessage,
    NamedChoice,
    PlainFormat,
    SchemaFormat,
    StreamOptions,
    ToolOffered,
)
from services.runtime.conversation_rules import MAX_STOPS, MAX_TOOLS
from services.runtime.errors import InvalidArgumentError
from sixhop.type.v1 import chat_pb2, generation_pb2

_NAMES = {
    "agent": "model",
    "question": "messages",
    "history": "messages",
    "max_output_tokens": "max_completion_tokens",
    "history[]": "@",
    "history[].reasoning": "@.reasoning_content",
    "history[].tool_calls[].name": "@.tool_calls[].function.name",
    "history[].tool_calls[].arguments": "@.tool_calls[].function.arguments",
    "messages": "messages",
    "messages[]": "messages",
    "tools": "tools",
    "tools[]": "tools[]",
    "tools[].name": "tools[].function.name",
    "tools[].arguments_schema": "tools[].function.parameters",
    "tools[].strict": "tools[].function.strict",
    "single_tool_call": "parallel_tool_calls",
    "response_format.kind": "response_format.type",
    "response_format.name": "response_format.json_schema.name",
    "response_format.schema": "response_format.json_schema.schema",
    "response_format.strict": "response_format.json_schema.strict",
    "language": "sixhop.language",
    "session_id": "sixhop.session_id",
    "sources": "sixhop.sources",
}
"""The fields of a question, and what they are in a request for a chat completion; those that are
not here have the same name in both."""
_EXAMPLE: JsonDict = {"model": AUTO, "messages": [{"role": "user", "content": "Good morning."}]}
_STREAMED: JsonDict = {**_EXAMPLE, "stream": True, "stream_options": {"include_usage": True}}


class ChatRequest(AnswerRequest):
    """Asks for a chat completion.

    A field that would change the answer and that no agent can honour is refused; one that would
    not is taken and left unread.
    """

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE, _STREAMED]})

    messages: Annotated[
        list[ChatMessage], Field(fail_fast=True, min_length=1, max_length=MAX_ITEMS)
    ]
    """The conversation, oldest first; it ends with the user's word or with a tool's result."""
    stream: bool | None = None
    """Whether the answer comes in chunks, as server-sent events."""
    stream_options: StreamOptions | None = None
    tools: Annotated[list[ToolOffered], Field(fail_fast=True, max_length=MAX_TOOLS)] | None = None
    """The caller's own tools: the answer asks for them, and the caller runs them."""
    tool_choice: (
        Literal["none", "auto", "required"]
        | Annotated[NamedChoice | AllowedChoice, Field(discriminator="type")]
        | None
    ) = None
    parallel_tool_calls: bool | None = None
    """False asks for one tool at most."""
    max_completion_tokens: int | None = Field(default=None, ge=1, le=MAX_TOKENS)
    """The most tokens to write; fewer are granted where the time left allows no more."""
    max_tokens: int | None = Field(default=None, ge=1, le=MAX_TOKENS)
    """The older name of `max_completion_tokens`."""
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, gt=0, le=1)
    stop: Stop | Annotated[list[Stop], Field(max_length=MAX_STOPS)] | None = None
    seed: int | None = Field(default=None, ge=-MAX_SEED - 1, le=MAX_SEED)
    response_format: Annotated[PlainFormat | SchemaFormat, Field(discriminator="type")] | None = (
        None
    )

    n: int | None = Field(default=None, ge=1, le=1)
    """One question has one answer."""
    logprobs: Off | None = None
    top_logprobs: int | None = Field(default=None, ge=0, le=0)
    presence_penalty: float | None = Field(default=None, ge=0, le=0)
    frequency_penalty: float | None = Field(default=None, ge=0, le=0)
    logit_bias: Annotated[dict[str, float], Field(max_length=0)] | None = None
    modalities: list[Literal["text"]] | None = Field(default=None, max_length=1)
    audio: NotTaken = None
    function_call: NotTaken = None
    functions: NotTaken = None
    moderation: NotTaken = None
    prediction: NotTaken = None
    web_search_options: NotTaken = None

    metadata: dict[str, Any] | None = None
    """Left unread, as is all that follows."""
    prompt_cache_key: str | None = None
    prompt_cache_options: dict[str, Any] | None = None
    prompt_cache_retention: str | None = None
    reasoning_effort: str | None = None
    safety_identifier: str | None = None
    service_tier: str | None = None
    store: bool | None = None
    user: str | None = None
    verbosity: str | None = None

    @property
    def naming(self) -> Naming:
        """Return what the fields of the question are called in this request."""
        places = [f"messages[{number}]" for number in range(len(self.messages))]
        return Naming(_NAMES, places, f"{places[-1]}.content", self.offered)

    @property
    def include_usage(self) -> bool:
        """Return whether a stream tells at its end what was read and written."""
        return self.stream_options is not None and self.stream_options.include_usage is True

    def _said(self) -> list[chat_pb2.ChatMessage]:
        return [each.message(f"messages[{at}]") for at, each in enumerate(self.messages)]

    def _wrong_end(self) -> tuple[str, str]:
        place = f"messages[{len(self.messages) - 1}].role"
        return place, "must be user, or tool, in the last message"

    def _tool_names(self) -> list[str]:
        return [each.function.name for each in self.tools] if self.tools else []

    def _offer(self, number: int) -> chat_pb2.ToolOffer:
        return (self.tools or [])[number].offer(f"tools[{number}]")

    def _tool_choice(self) -> str:
        if isinstance(self.tool_choice, NamedChoice):
            name = self.tool_choice.function.name
            if not name:
                # Behind this an empty choice is none.
                raise InvalidArgumentError("tool_choice.function.name", "is empty; name a tool")
            return name
        if isinstance(self.tool_choice, AllowedChoice):
            return self.tool_choice.allowed_tools.mode
        return self.tool_choice or ""

    def _allowed(self) -> list[str] | None:
        if not isinstance(self.tool_choice, AllowedChoice):
            return None
        return [each.function.name for each in self.tool_choice.allowed_tools.tools]

    def _generation(self) -> generation_pb2.GenerationOptions:
        """Return how the text is to be written.

        Never unset: who sends it reads the finish reason, so that nothing is added to a text that
        ends at its limit.
        """
        newer, older = self.max_completion_tokens, self.max_tokens
        if newer and older and newer != older:
            raise InvalidArgumentError(
                "max_tokens", "contradicts max_completion_tokens; send one of them"
            )
        form = self.response_format
        return generation_pb2.GenerationOptions(
            max_output_tokens=newer or older or 0,
            temperature=self.temperature,
            top_p=self.top_p,
            stop=[self.stop] if isinstance(self.stop, str) else self.stop or (),
            seed=self.seed,
            response_format=None if form is None else form.format(),
            # Without tools it means nothing, and would keep the question from other agents.
            single_tool_call=self.parallel_tool_calls is False and bool(self.tools),
        )
