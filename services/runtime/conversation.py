"""Defines a conversation with a model, and carries it over the wire."""

from dataclasses import dataclass
from typing import Literal

from sixhop.type.v1 import chat_pb2

Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """Asks for one execution of a tool, in the model's words."""

    id: str
    """Names the call, so that its result can be told from others."""
    name: str
    """The tool."""
    arguments: str
    """JSON, if the model kept to its rules."""


@dataclass(frozen=True, slots=True)
class Message:
    """Holds one message of a conversation."""

    role: Role
    content: str
    """May be empty where tool calls say it all."""
    tool_calls: tuple[ToolCall, ...] = ()
    """The tools that an assistant's message asks for."""
    tool_call_id: str = ""
    """For a tool's result: the call that it answers."""
    reasoning: str = ""
    """What an assistant thought before it spoke; some providers want it back."""


@dataclass(frozen=True, slots=True)
class ToolOffer:
    """Offers one tool to a model."""

    name: str
    description: str
    """What it does, for the model."""
    arguments_schema: str
    """Its arguments as a JSON schema; empty for a tool without any."""
    strict: bool = False
    """Whether the model has to keep to the schema exactly."""


_TO_WIRE: dict[Role, chat_pb2.ChatRole.ValueType] = {
    "system": chat_pb2.CHAT_ROLE_SYSTEM,
    "user": chat_pb2.CHAT_ROLE_USER,
    "assistant": chat_pb2.CHAT_ROLE_ASSISTANT,
    "tool": chat_pb2.CHAT_ROLE_TOOL,
}
_FROM_WIRE = {number: role for role, number in _TO_WIRE.items()}


def message_to_wire(message: Message) -> chat_pb2.ChatMessage:
    """Return a message as it travels."""
    return chat_pb2.ChatMessage(
        role=_TO_WIRE[message.role],
        content=message.content,
        tool_calls=[call_to_wire(call) for call in message.tool_calls],
        tool_call_id=message.tool_call_id,
        reasoning=message.reasoning,
    )


def call_to_wire(call: ToolCall) -> chat_pb2.ToolCall:
    """Return a tool call as it travels."""
    return chat_pb2.ToolCall(id=call.id, name=call.name, arguments=call.arguments)


def offer_to_wire(offer: ToolOffer) -> chat_pb2.ToolOffer:
    """Return the offer of a tool as it travels."""
    return chat_pb2.ToolOffer(
        name=offer.name,
        description=offer.description,
        arguments_schema=offer.arguments_schema,
        strict=offer.strict,
    )


def offer_from_wire(offer: chat_pb2.ToolOffer) -> ToolOffer:
    """Return the offer of a tool that has travelled."""
    return ToolOffer(offer.name, offer.description, offer.arguments_schema, offer.strict)


def call_from_wire(call: chat_pb2.ToolCall) -> ToolCall:
    """Return a tool call that has travelled."""
    return ToolCall(call.id, call.name, call.arguments)


def role_from_wire(role: "chat_pb2.ChatRole.ValueType") -> Role | None:
    """Return who speaks; None for a role that nobody has."""
    return _FROM_WIRE.get(role)


def message_from_wire(message: chat_pb2.ChatMessage, role: Role) -> Message:
    """Return a message that has travelled, whose role was found before."""
    return Message(
        role,
        message.content,
        tuple(map(call_from_wire, message.tool_calls)),
        message.tool_call_id,
        message.reasoning,
    )
