"""Checks at the door what was said before a question, so that no hop behind it has to."""

from collections.abc import Sequence

from gateway.config import GatewaySettings
from services.runtime.errors import InvalidArgumentError
from sixhop.type.v1 import chat_pb2

FIELD = "question.history"
ROLES = (chat_pb2.CHAT_ROLE_USER, chat_pb2.CHAT_ROLE_ASSISTANT, chat_pb2.CHAT_ROLE_TOOL)
"""Who may have spoken; the rules of a conversation are the agent's."""


def check_history(history: Sequence[chat_pb2.ChatMessage], settings: GatewaySettings) -> None:
    """Refuse a history that no model could be given.

    Raises:
        InvalidArgumentError: names the message and what would be right.
    """
    if len(history) > settings.max_history_count:
        raise InvalidArgumentError(
            FIELD,
            f"has {len(history)} messages, the limit is {settings.max_history_count}; leave out "
            "the oldest",
        )
    size = sum(message.ByteSize() for message in history)
    if size > settings.max_history_bytes:
        raise InvalidArgumentError(
            FIELD,
            f"has {size:,} bytes, the limit is {settings.max_history_bytes:,}; leave out the "
            "oldest messages",
        )
    wanted: set[str] = set()
    for number, message in enumerate(history):
        _check_message(f"{FIELD}[{number}]", message, wanted)
    if wanted:
        raise InvalidArgumentError(
            FIELD, f"ends before the results of its tool calls: {', '.join(sorted(wanted))}"
        )


def _check_message(where: str, message: chat_pb2.ChatMessage, wanted: set[str]) -> None:
    """Look at one message; `wanted` holds the tool calls whose results have to come next."""
    if message.role not in ROLES:
        raise InvalidArgumentError(f"{where}.role", "say user, assistant or tool")
    if message.role == chat_pb2.CHAT_ROLE_TOOL:
        _check_result(where, message, wanted)
        return
    if wanted:
        raise InvalidArgumentError(
            where, f"comes before the results of the tool calls: {', '.join(sorted(wanted))}"
        )
    if message.tool_call_id:
        raise InvalidArgumentError(f"{where}.tool_call_id", "is for the results of tools alone")
    if message.role == chat_pb2.CHAT_ROLE_USER:
        if message.tool_calls or message.reasoning:
            raise InvalidArgumentError(where, "only an assistant thinks and calls tools")
    else:
        _check_calls(where, message, wanted)
    if not message.content.strip() and not message.tool_calls:
        raise InvalidArgumentError(f"{where}.content", "is empty; leave the message out")


def _check_result(where: str, message: chat_pb2.ChatMessage, wanted: set[str]) -> None:
    if message.tool_calls or message.reasoning:
        raise InvalidArgumentError(where, "only an assistant thinks and calls tools")
    if message.tool_call_id not in wanted:
        raise InvalidArgumentError(
            f"{where}.tool_call_id",
            "answers none of the tool calls of the assistant's message before it",
        )
    wanted.remove(message.tool_call_id)


def _check_calls(where: str, message: chat_pb2.ChatMessage, wanted: set[str]) -> None:
    for call in message.tool_calls:
        if not call.id or not call.name or call.id in wanted:
            raise InvalidArgumentError(
                f"{where}.tool_calls", "each needs a name, and an id that no other has"
            )
        wanted.add(call.id)
