"""Reads the parts of requests for chat completions as OpenAI's clients write them."""

from typing import Annotated, Any, Literal

from pydantic import Field, WithJsonSchema

from gateway.http.chat_fields import (
    MAX_ITEMS,
    ContentPart,
    Filled,
    FunctionTitle,
    NotTaken,
    Read,
    schema_text,
    text_of,
)
from services.runtime.conversation_rules import MAX_TOOLS
from sixhop.type.v1 import chat_pb2, generation_pb2

_TEXT = ["text"]
_SAID = ["text", "refusal"]


class TextPart(ContentPart):
    """Is a part of a message that holds text."""

    # The document is stricter than what is read: what else comes is named in its refusal.
    type: Annotated[str, WithJsonSchema({"enum": _TEXT})]


class SaidPart(ContentPart):
    """Is a part of an earlier answer: text, or a refusal."""

    type: Annotated[str, WithJsonSchema({"enum": _SAID})]


Content = str | Annotated[list[TextPart], Field(fail_fast=True, max_length=MAX_ITEMS)]
Said = str | Annotated[list[SaidPart], Field(fail_fast=True, max_length=MAX_ITEMS)]


class RulesMessage(Read):
    """Says rules of the conversation, which hold from where it stands."""

    role: Literal["system", "developer"]
    content: Content

    def message(self, at: str) -> chat_pb2.ChatMessage:
        """Return it for the run; raises as `text_of` does."""
        text = text_of(self.content, f"{at}.content", _TEXT)
        return chat_pb2.ChatMessage(role=chat_pb2.CHAT_ROLE_SYSTEM, content=text)


class UserMessage(Read):
    """Says what the user says."""

    role: Literal["user"]
    content: Content

    def message(self, at: str) -> chat_pb2.ChatMessage:
        """Return it for the run; raises as `text_of` does."""
        text = text_of(self.content, f"{at}.content", _TEXT)
        return chat_pb2.ChatMessage(role=chat_pb2.CHAT_ROLE_USER, content=text)


class FunctionAsked(Read):
    """Is what a call of a function says."""

    name: Filled
    arguments: str


class ToolCallAsked(Read):
    """Is a tool call of an earlier answer."""

    id: Filled
    type: Literal["function"] = "function"
    function: FunctionAsked


class AssistantMessage(Read):
    """Says what an earlier answer said."""

    role: Literal["assistant"]
    content: Said | None = None
    refusal: str | None = None
    tool_calls: list[ToolCallAsked] | None = Field(default=None, max_length=MAX_ITEMS)
    reasoning_content: str | None = None
    """What the model thought; some providers want it back with the tool calls."""
    audio: NotTaken = None
    function_call: NotTaken = None

    def message(self, at: str) -> chat_pb2.ChatMessage:
        """Return it for the run; raises as `text_of` does."""
        return chat_pb2.ChatMessage(
            role=chat_pb2.CHAT_ROLE_ASSISTANT,
            content=text_of(self.content, f"{at}.content", _SAID) or self.refusal or "",
            reasoning=self.reasoning_content or "",
            tool_calls=[
                chat_pb2.ToolCall(
                    id=call.id, name=call.function.name, arguments=call.function.arguments
                )
                for call in self.tool_calls or ()
            ],
        )


class ToolMessage(Read):
    """Says what a tool gave."""

    role: Literal["tool"]
    content: Content
    tool_call_id: Filled

    def message(self, at: str) -> chat_pb2.ChatMessage:
        """Return it for the run; raises as `text_of` does."""
        return chat_pb2.ChatMessage(
            role=chat_pb2.CHAT_ROLE_TOOL,
            content=text_of(self.content, f"{at}.content", _TEXT),
            tool_call_id=self.tool_call_id,
        )


ChatMessage = Annotated[
    RulesMessage | UserMessage | AssistantMessage | ToolMessage, Field(discriminator="role")
]


class FunctionOffered(Read):
    """Describes a function to the model."""

    name: FunctionTitle
    description: str | None = None
    parameters: dict[str, Any] | None = None
    """A JSON schema of its arguments."""
    strict: bool | None = None


class ToolOffered(Read):
    """Offers a tool; the caller runs it."""

    type: Literal["function"]
    function: FunctionOffered

    def offer(self, at: str) -> chat_pb2.ToolOffer:
        """Return it for the run; raises as `schema_text` does."""
        return chat_pb2.ToolOffer(
            name=self.function.name,
            description=self.function.description or "",
            arguments_schema=schema_text(self.function.parameters, f"{at}.function.parameters"),
            strict=self.function.strict or False,
        )


class FunctionName(Read):
    """Names a function."""

    name: FunctionTitle


class NamedChoice(Read):
    """Makes the model ask for one tool."""

    type: Literal["function"]
    function: FunctionName


class AllowedTools(Read):
    """Says which of the tools the model may ask for, and whether it has to."""

    mode: Literal["auto", "required"]
    tools: Annotated[list[NamedChoice], Field(fail_fast=True, min_length=1, max_length=MAX_TOOLS)]


class AllowedChoice(Read):
    """Lets the model ask for some of the tools."""

    type: Literal["allowed_tools"]
    allowed_tools: AllowedTools


class StreamOptions(Read):
    """Says what a stream has at its end."""

    include_usage: bool | None = None


class PlainFormat(Read):
    """Asks for free text, or for any JSON."""

    type: Literal["text", "json_object"]

    def format(self) -> generation_pb2.ResponseFormat:
        """Return it for the run."""
        return generation_pb2.ResponseFormat(kind=self.type)


class SchemaNamed(Read):
    """Is a JSON schema with its name."""

    name: FunctionTitle
    description: str | None = None
    document: dict[str, Any] = Field(alias="schema")
    strict: bool | None = None


class SchemaFormat(Read):
    """Asks for JSON that fits a schema."""

    type: Literal["json_schema"]
    json_schema: SchemaNamed

    def format(self) -> generation_pb2.ResponseFormat:
        """Return it for the run; raises as `schema_text` does."""
        named = self.json_schema
        return generation_pb2.ResponseFormat(
            kind=self.type,
            name=named.name,
            description=named.description or "",
            schema=schema_text(named.document, "response_format.json_schema.schema"),
            strict=named.strict,
        )
