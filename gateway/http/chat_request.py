"""Reads requests for chat completions as OpenAI's clients write them."""

import base64
import binascii
from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from services.runtime.errors import InvalidArgumentError
from sixhop.gateway.v1 import gateway_pb2
from sixhop.type.v1 import artifact_pb2, chat_pb2, run_pb2

AUTO = "auto"
"""The model that lets routing choose among the agents."""
Delivery = Literal["buffered", "live"]
_DELIVERIES = {
    "buffered": run_pb2.DELIVERY_BUFFERED,
    "live": run_pb2.DELIVERY_LIVE,
}
_ROLES = {
    "user": chat_pb2.CHAT_ROLE_USER,
    "assistant": chat_pb2.CHAT_ROLE_ASSISTANT,
    "tool": chat_pb2.CHAT_ROLE_TOOL,
}


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)


class ContentPart(_Part):
    """Is a part of a message; only text is taken."""

    type: str
    text: str = ""


class ChatMessage(_Part):
    """Is one message of the conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[ContentPart] | None = None

    def text(self, where: str) -> str:
        """Return the text of the message.

        Raises:
            InvalidArgumentError: a part of it is no text.
        """
        if self.content is None or isinstance(self.content, str):
            return self.content or ""
        for part in self.content:
            if part.type != "text":
                raise InvalidArgumentError(
                    f"{where}.content", f"has a part of type {part.type!r}; only text is taken"
                )
        return "".join(part.text for part in self.content)


class StreamOptions(_Part):
    """Says what a stream has at its end."""

    include_usage: bool = False


class SourceFile(_Part):
    """Is a file that a question is about."""

    name: str
    content_base64: str

    def source(self, where: str) -> artifact_pb2.DataSource:
        """Return it for the run.

        Raises:
            InvalidArgumentError: the content is not base64.
        """
        try:
            content = base64.b64decode(self.content_base64, validate=True)
        except binascii.Error:
            raise InvalidArgumentError(f"{where}.content_base64", "is not base64") from None
        return artifact_pb2.DataSource(name=self.name, content=content)


class Extension(_Part):
    """Is what this suite takes beyond OpenAI's fields, as `sixhop` in the body."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    delivery: Delivery | None = None
    language: str = ""
    session_id: str = ""
    sources: list[SourceFile] = Field(default_factory=list)


class ChatRequest(_Part):
    """Asks for a chat completion."""

    model: str = AUTO
    messages: list[ChatMessage] = Field(min_length=1)
    stream: bool = False
    stream_options: StreamOptions | None = None
    n: int = 1
    sixhop: Extension = Extension()

    @field_validator("n")
    @classmethod
    def _one(cls, count: int) -> int:
        if count != 1:
            raise ValueError("must be 1: one question has one answer")
        return count

    def run_request(self, usual: Delivery) -> gateway_pb2.RunRequest:
        """Return the run that is asked for.

        Args:
            usual: how text is delivered when the request does not say.

        Raises:
            InvalidArgumentError: a field holds what no run can be given.
        """
        return gateway_pb2.RunRequest(
            question=self._question(),
            agent=self.agent,
            delivery=_DELIVERIES[self.sixhop.delivery or usual],
        )

    def ask_request(self) -> gateway_pb2.AskRequest:
        """Return the same for an answer that is given whole; raises as `run_request` does."""
        return gateway_pb2.AskRequest(question=self._question(), agent=self.agent)

    @property
    def agent(self) -> str:
        """Return the agent that is asked for; empty lets routing choose."""
        return "" if self.model == AUTO else self.model

    def _question(self) -> run_pb2.Question:
        last = self.messages[-1]
        if last.role != "user":
            raise InvalidArgumentError("messages", "the last one must be the user's")
        spoken = [each for each in self.messages[:-1] if each.role in _ROLES]
        return run_pb2.Question(
            text=last.text("messages[-1]"),
            language=self.sixhop.language,
            session_id=self.sixhop.session_id,
            history=_history(spoken),
            sources=[
                file.source(f"sixhop.sources[{number}]")
                for number, file in enumerate(self.sixhop.sources)
            ],
        )


def _history(messages: Sequence[ChatMessage]) -> list[chat_pb2.ChatMessage]:
    return [
        chat_pb2.ChatMessage(role=_ROLES[each.role], content=each.text(f"messages[{number}]"))
        for number, each in enumerate(messages)
    ]
