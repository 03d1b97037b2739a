"""Checks at the door what was said before a question, so that no hop behind it has to."""

from collections.abc import Sequence

from gateway.config import GatewaySettings
from services.runtime.conversation import Message, message_from_wire, role_from_wire
from services.runtime.conversation_rules import require_conversation
from services.runtime.errors import InvalidArgumentError
from sixhop.type.v1 import chat_pb2

FIELD = "question.history"


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
    messages: list[Message] = []
    for number, message in enumerate(history):
        role = role_from_wire(message.role)
        if role is None:
            raise InvalidArgumentError(
                f"{FIELD}[{number}].role", "say system, user, assistant or tool"
            )
        messages.append(message_from_wire(message, role))
    require_conversation(messages, FIELD)
