"""Makes the errors that blame a provider, and keeps secrets and prompts out of their text."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from services.model.backend import Provider
from services.runtime.conversation import Message, ToolOffer
from services.runtime.errors import (
    DependencyFailedError,
    DependencyOverloadedError,
    Origin,
)
from services.runtime.topology import LLM

MAX_QUOTE_LENGTH = 200
_WINDOW = 16


class Reason(StrEnum):
    """Names what a provider did; the origin's reason of the error."""

    CONNECTION_LOST = "CONNECTION_LOST"
    CONTENT_FILTERED = "CONTENT_FILTERED"
    CONTEXT_LENGTH = "CONTEXT_LENGTH"
    PROTOCOL_ERROR = "PROTOCOL_ERROR"
    PROVIDER_ERROR = "PROVIDER_ERROR"
    PROVIDER_KEY_REFUSED = "PROVIDER_KEY_REFUSED"
    PROVIDER_MODEL_UNKNOWN = "PROVIDER_MODEL_UNKNOWN"
    PROVIDER_NO_BALANCE = "PROVIDER_NO_BALANCE"
    PROVIDER_OVERLOADED = "PROVIDER_OVERLOADED"
    PROVIDER_RATE_LIMITED = "PROVIDER_RATE_LIMITED"
    PROVIDER_REFUSED = "PROVIDER_REFUSED"
    TRUNCATED = "TRUNCATED"
    UNREACHABLE = "UNREACHABLE"


@dataclass(frozen=True, slots=True)
class Exchange:
    """Knows what must not be repeated when a provider is quoted: the key and the prompt."""

    provider: Provider
    messages: Sequence[Message] = ()
    tools: Sequence[ToolOffer] = ()
    schema: str = ""

    def quote(self, text: str) -> str:
        """Quote the beginning of what a provider said: in one line, in “”, without secrets."""
        key = self.provider.api_key
        if key:
            text = text.replace(key, "***")
        said = " ".join(text[:MAX_QUOTE_LENGTH].split())
        more = "…" if len(text) > MAX_QUOTE_LENGTH else ""
        # Some providers send back the request that they refuse; prompts stay out of logs.
        windows = [said[at : at + _WINDOW] for at in range(0, len(said) - _WINDOW + 1, _WINDOW)]
        if any(window in text for text in self._texts() for window in windows):
            return "(its text repeats the prompt and is withheld)"
        return f"“{said}{more}”" if said else "(it gave no text)"

    def _texts(self) -> Iterator[str]:
        for message in self.messages:
            yield message.content
            yield message.reasoning
            yield from (call.arguments for call in message.tool_calls)
        yield from (tool.arguments_schema for tool in self.tools)
        yield self.schema


REFUSES_ALL = frozenset({Reason.PROVIDER_KEY_REFUSED, Reason.PROVIDER_NO_BALANCE})
"""What a provider answers to every call until somebody corrects a setting or pays."""


def failed(
    reason: Reason, cause: str, message: str, *, code: str = "", retry_after_s: float | None = None
) -> DependencyFailedError:
    """Return the error of a provider that failed."""
    origin = Origin(LLM, code=code, reason=reason)
    return DependencyFailedError(
        LLM,
        message,
        cause=cause,
        origin=origin,
        retry_after_s=retry_after_s,
        opens_breaker=reason in REFUSES_ALL,
    )


def overloaded(
    reason: Reason, cause: str, message: str, *, code: str = "", retry_after_s: float | None = None
) -> DependencyOverloadedError:
    """Return the error of a provider that has enough to do."""
    origin = Origin(LLM, code=code, reason=reason)
    return DependencyOverloadedError(
        LLM, message, cause=cause, origin=origin, retry_after_s=retry_after_s
    )


def protocol_error(cause: str, message: str) -> DependencyFailedError:
    """Return the error of a peer that does not speak the protocol."""
    return failed(Reason.PROTOCOL_ERROR, cause, f"{message}; is its base_url right?")
