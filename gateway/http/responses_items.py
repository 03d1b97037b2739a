"""Reads the items of requests for responses as OpenAI's clients write them."""

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, WithJsonSchema
from pydantic.json_schema import SkipJsonSchema

from gateway.http.chat_fields import (
    MAX_ITEMS,
    ContentPart,
    Filled,
    FunctionTitle,
    Read,
    schema_text,
    text_of,
)
from services.runtime.conversation_rules import MAX_TOOLS
from services.runtime.errors import InvalidArgumentError
from sixhop.type.v1 import chat_pb2, generation_pb2

_KINDS = ["input_text", "output_text", "refusal", "text"]
_ROLES = {
    "user": chat_pb2.CHAT_ROLE_USER,
    "assistant": chat_pb2.CHAT_ROLE_ASSISTANT,
    "system": chat_pb2.CHAT_ROLE_SYSTEM,
    "developer": chat_pb2.CHAT_ROLE_SYSTEM,
}


class ItemPart(ContentPart):
    """Is a part of what was said; only text is taken."""

    # The document is stricter than what is read: what else comes is named in its refusal.
    type: Annotated[str, WithJsonSchema({"enum": _KINDS})]


Content = str | Annotated[list[ItemPart], Field(fail_fast=True, max_length=MAX_ITEMS)]


class MessageItem(Read):
    """Says what somebody said."""

    type: Literal["message"] = "message"
    role: Literal["user", "assistant", "system", "developer"]
    content: Content

    def message(self, at: str) -> chat_pb2.ChatMessage:
        """Return it for the run; raises as `text_of` does."""
        text = text_of(self.content, f"{at}.content", _KINDS)
        return chat_pb2.ChatMessage(role=_ROLES[self.role], content=text)


class CallItem(Read):
    """Is a tool call of an earlier answer."""

    type: Literal["function_call"]
    call_id: Filled
    name: Filled
    arguments: str

    def call(self) -> chat_pb2.ToolCall:
        """Return it for the run."""
        return chat_pb2.ToolCall(id=self.call_id, name=self.name, arguments=self.arguments)


class ResultItem(Read):
    """Says what a tool gave."""

    type: Literal["function_call_output"]
    call_id: Filled
    output: Content

    def message(self, at: str) -> chat_pb2.ChatMessage:
        """Return it for the run; raises as `text_of` does."""
        return chat_pb2.ChatMessage(
            role=chat_pb2.CHAT_ROLE_TOOL,
            content=text_of(self.output, f"{at}.output", _KINDS),
            tool_call_id=self.call_id,
        )


class OtherItem(Read):
    """Is an item that no agent can be given."""

    type: str

    def refusal(self, at: str) -> InvalidArgumentError:
        """Return why."""
        problem = f"{self.type[:64]!r} is not taken; send messages, function_call and its output"
        return InvalidArgumentError(f"{at}.type", problem)


def _kind(item: Any) -> str | None:
    kind = item.get("type", "message") if isinstance(item, dict) else None
    if kind in ("message", "function_call", "function_call_output"):
        return str(kind)
    return "other" if isinstance(item, dict) else None


Item = Annotated[
    Annotated[MessageItem, Tag("message")]
    | Annotated[CallItem, Tag("function_call")]
    | Annotated[ResultItem, Tag("function_call_output")]
    | Annotated[SkipJsonSchema[OtherItem], Tag("other")],
    Discriminator(_kind),
]


class FunctionTool(Read):
    """Offers a tool; the caller runs it."""

    type: Literal["function"]
    name: FunctionTitle
    description: str | None = None
    parameters: dict[str, Any] | None = None
    """A JSON schema of its arguments."""
    strict: bool | None = None

    def offer(self, at: str) -> chat_pb2.ToolOffer:
        """Return it for the run; raises as `schema_text` does."""
        return chat_pb2.ToolOffer(
            name=self.name,
            description=self.description or "",
            arguments_schema=schema_text(self.parameters, f"{at}.parameters"),
            strict=self.strict or False,
        )


class NamedTool(Read):
    """Makes the model ask for one tool."""

    type: Literal["function"]
    name: FunctionTitle


class AllowedTools(Read):
    """Lets the model ask for some of the tools, or makes it ask for one of them."""

    type: Literal["allowed_tools"]
    mode: Literal["auto", "required"]
    tools: Annotated[list[NamedTool], Field(fail_fast=True, min_length=1, max_length=MAX_TOOLS)]


class PlainText(Read):
    """Asks for free text, or for any JSON."""

    type: Literal["text", "json_object"]

    def format(self) -> generation_pb2.ResponseFormat:
        """Return it for the run."""
        return generation_pb2.ResponseFormat(kind=self.type)


class SchemaText(Read):
    """Asks for JSON that fits a schema."""

    type: Literal["json_schema"]
    name: FunctionTitle
    document: dict[str, Any] = Field(alias="schema")
    description: str | None = None
    strict: bool | None = None

    def format(self) -> generation_pb2.ResponseFormat:
        """Return it for the run; raises as `schema_text` does."""
        return generation_pb2.ResponseFormat(
            kind=self.type,
            name=self.name,
            description=self.description or "",
            schema=schema_text(self.document, "text.format.schema"),
            strict=self.strict,
        )


class TextOptions(Read):
    """Says what form the text has."""

    format: Annotated[PlainText | SchemaText, Field(discriminator="type")] | None = None
