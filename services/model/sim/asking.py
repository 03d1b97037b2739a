"""Reads what a request asks for, or refuses it as a provider would."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import orjson

from services.model.sim.wording import count_tokens

MESSAGE_OVERHEAD = 4
"""Tokens that the frame of each message takes."""


class BadRequestError(Exception):
    """Refuses a request with 400; the text says what is wrong."""


@dataclass(frozen=True)
class Ask:
    """Is the body of a chat completion."""

    body: Mapping[str, Any]

    @property
    def model(self) -> str:
        """Return the model's name."""
        return str(self.body.get("model", ""))

    @property
    def stream(self) -> bool:
        """Return whether the answer comes as events."""
        return bool(self.body.get("stream"))

    @property
    def include_usage(self) -> bool:
        """Return whether a stream ends with its usage."""
        options = self.body.get("stream_options")
        return isinstance(options, Mapping) and bool(options.get("include_usage"))

    @property
    def max_tokens(self) -> int | None:
        """Return how long the answer may be, by either name."""
        value = self.body.get("max_completion_tokens", self.body.get("max_tokens"))
        return None if value is None else int(value)

    @property
    def stops(self) -> list[str]:
        """Return the texts that end the answer."""
        stop = self.body.get("stop") or []
        return [stop] if isinstance(stop, str) else [str(each) for each in stop]

    @property
    def messages(self) -> Sequence[Mapping[str, Any]]:
        """Return the messages, oldest first."""
        messages: Sequence[Mapping[str, Any]] = self.body.get("messages", ())
        return messages

    @cached_property
    def question(self) -> str:
        """Return the last words of the user."""
        return next((content(m) for m in reversed(self.messages) if m.get("role") == "user"), "")

    @property
    def prefix(self) -> str | None:
        """Return the assistant's words that the answer is to continue; None without any."""
        last = self.messages[-1]
        return content(last) if last.get("role") == "assistant" else None

    @cached_property
    def message_tokens(self) -> tuple[int, ...]:
        """Return how many tokens each message has."""
        return tuple(
            MESSAGE_OVERHEAD
            + count_tokens(content(message))
            + count_tokens(str(message.get("reasoning_content") or ""))
            + sum(count_tokens(orjson.dumps(each).decode()) for each in calls(message))
            for message in self.messages
        )

    @property
    def prompt_tokens(self) -> int:
        """Return how many tokens the prompt has."""
        return sum(self.message_tokens)

    def thinks(self, default: bool) -> bool:
        """Return whether the answer begins with reasoning."""
        thinking = self.body.get("thinking")
        if isinstance(thinking, Mapping):
            return thinking.get("type") != "disabled"
        return default

    def wanted_tools(self) -> list[Mapping[str, Any]]:
        """Return the functions that the request asks to be called.

        They are the one that `tool_choice` names, or those whose names are in the user's last
        words, or the first one where `tool_choice` is `required`.
        """
        functions = [t.get("function", {}) for t in self.body.get("tools") or ()]
        choice = self.body.get("tool_choice", "auto")
        if isinstance(choice, Mapping):
            name = choice.get("function", {}).get("name")
            return [each for each in functions if each.get("name") == name]
        if choice == "none" or self.messages[-1].get("role") != "user":
            return []
        named = [each for each in functions if str(each.get("name")) in self.question]
        return named or (functions[:1] if choice == "required" else [])

    def schema(self) -> Any:
        """Return the schema that the answer must follow; None without one."""
        form = self.body.get("response_format")
        if not isinstance(form, Mapping) or form.get("type") not in ("json_object", "json_schema"):
            return None
        if form["type"] == "json_object":
            return {"type": "object", "properties": {"answer": {"type": "string"}}}
        return form.get("json_schema", {}).get("schema", {})

    def digest(self) -> str:
        """Return a digest of what is asked, the same for every attempt at it.

        How long the answer may be is no part of it: clients derive that from the time they have.
        """
        asked = [self.body.get(name) for name in ("model", "messages", "tools", "response_format")]
        text = orjson.dumps(asked, option=orjson.OPT_SORT_KEYS)
        return hashlib.sha256(text).hexdigest()[:16]

    def lacks_reasoning(self) -> bool:
        """Return whether a message of tool calls came back without its reasoning."""
        return any(
            calls(message) and "reasoning_content" not in message
            for message in self.messages
            if message.get("role") == "assistant"
        )


def read_ask(body: bytes) -> Ask:
    """Return what is asked for.

    Raises:
        BadRequestError: it cannot be answered; the text says why.
    """
    try:
        raw = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadRequestError(f"the body is no JSON: {error}") from None
    if not isinstance(raw, dict):
        raise BadRequestError("the body must be an object")
    _check_messages(raw.get("messages"))
    if not isinstance(raw.get("model"), str) or not raw["model"]:
        raise BadRequestError("model must be the name of a model")
    for name in ("max_tokens", "max_completion_tokens"):
        value = raw.get(name)
        if value is not None and (not isinstance(value, int) or value < 1):
            raise BadRequestError(f"{name} must be a number of at least 1")
    if raw.get("n") not in (None, 1):
        raise BadRequestError("n must be 1")
    tools = raw.get("tools") or []
    if not isinstance(tools, list) or not all(
        isinstance(each, dict) and isinstance(each.get("function"), dict) for each in tools
    ):
        raise BadRequestError("tools must be a list of functions")
    return Ask(raw)


def _check_messages(messages: Any) -> None:
    if not isinstance(messages, list) or not messages:
        raise BadRequestError("messages must be a list with at least one message")
    for number, message in enumerate(messages):
        if not isinstance(message, dict):
            raise BadRequestError(f"messages[{number}] must be an object")
        if message.get("role") not in ("system", "developer", "user", "assistant", "tool"):
            raise BadRequestError(f"messages[{number}].role is unknown")
        if not isinstance(message.get("tool_calls") or [], list):
            raise BadRequestError(f"messages[{number}].tool_calls must be a list")


def content(message: Mapping[str, Any]) -> str:
    """Return the text of a message, whose content may come in parts."""
    value = message.get("content")
    if isinstance(value, list):
        return "".join(str(part.get("text", "")) for part in value if isinstance(part, Mapping))
    return str(value or "")


def calls(message: Mapping[str, Any]) -> Sequence[Any]:
    """Return the tool calls of a message."""
    found: Sequence[Any] = message.get("tool_calls") or ()
    return found
