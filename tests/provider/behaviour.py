"""Declares what the scriptable provider does with a request."""

import json
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal
from urllib.parse import parse_qsl

Ending = Literal[
    "complete",
    "stall",
    "truncate",
    "done_without_finish",
    "reset",
    "close_mid_chunk",
    "malformed",
    "in_band_error",
    "event_error",
    "no_choices",
    "stall_after_finish",
    "close_after_finish",
    "keep_alive_forever",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """Says how one request is answered. Lengths are seconds; counts are of chunks."""

    text: str = "The provider of the tests says that all is well."
    """The answer, sent word by word; a longer `token_count` repeats it."""
    token_count: int = 0
    """How many chunks of text; 0 sends the text once."""
    deltas: tuple[Mapping[str, Any], ...] = ()
    """Sent after the text, one chunk each, such as fragments of tool calls."""
    reasoning_count: int = 0
    """How many chunks of reasoning come first."""
    silent: bool = False
    """Take the request and never answer."""
    headers_after_s: float = 0.0
    first_chunk_after_s: float = 0.0
    chunk_interval_s: float = 0.0
    keep_alive_interval_s: float = 0.0
    """How often a comment is sent while waiting; 0 sends none."""
    ending: Ending = "complete"
    after_chunks: int = 3
    """How many chunks are sent before a fault."""
    obeys_max_tokens: bool = False
    """End with `length` after as many chunks as the request allows."""
    finish_reason: str = "stop"
    usage: bool = True
    done: bool = True
    """Send `[DONE]` at the end."""
    status: int = 200
    """Another than 200 refuses, with `body`."""
    content_type: str = "text/event-stream"
    body: str = ""
    """Sent instead of a stream, when it is not empty or the status is not 200."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """More headers of the answer."""

    def words(self) -> list[str]:
        """Return the chunks of the text."""
        words = self.text.split(" ")
        count = self.token_count or len(words)
        return [f" {words[number % len(words)]}" if number else words[0] for number in range(count)]


def _refusal(status: int, message: str, **more: Any) -> Behaviour:
    error = {"message": message, "type": more.pop("type", "error"), "code": more.pop("code", None)}
    return Behaviour(
        status=status,
        content_type="application/json",
        body=json.dumps({"error": error}),
        **more,
    )


def _fragment(index: int, id: str = "", name: str = "", arguments: str = "") -> dict[str, Any]:
    begins = {"id": id, "type": "function"} if id else {}
    function = {"name": name, "arguments": arguments} if name else {"arguments": arguments}
    return {"tool_calls": [{"index": index, **begins, "function": function}]}


BEHAVIOURS: Mapping[str, Behaviour] = {
    "normal": Behaviour(chunk_interval_s=0.005),
    "at-once": Behaviour(),
    "reasoning": Behaviour(reasoning_count=5),
    "no-usage": Behaviour(usage=False),
    "no-done": Behaviour(done=False),
    "tools": Behaviour(
        text="Let me see.",
        finish_reason="tool_calls",
        deltas=(
            _fragment(0, "call-a", "sql", ""),
            _fragment(1, "call-b", "mail", ""),
            _fragment(0, arguments='{"q": "orders'),
            _fragment(1, arguments="{}"),
            _fragment(0, arguments=' of 数据"}'),
        ),
    ),
    "length": Behaviour(finish_reason="length"),
    "silent": Behaviour(silent=True),
    "slow-headers": Behaviour(headers_after_s=60),
    "slow-first-chunk": Behaviour(first_chunk_after_s=60),
    "stall": Behaviour(ending="stall"),
    "stall-after-finish": Behaviour(ending="stall_after_finish"),
    "close-after-finish": Behaviour(ending="close_after_finish"),
    "keep-alive-forever": Behaviour(
        ending="keep_alive_forever", after_chunks=0, keep_alive_interval_s=0.05
    ),
    "truncate": Behaviour(ending="truncate"),
    "done-without-finish": Behaviour(ending="done_without_finish"),
    "reset": Behaviour(ending="reset"),
    "close-mid-chunk": Behaviour(ending="close_mid_chunk"),
    "malformed": Behaviour(ending="malformed"),
    "in-band-error": Behaviour(ending="in_band_error"),
    "event-error": Behaviour(ending="event_error"),
    "no-choices": Behaviour(ending="no_choices"),
    "html": Behaviour(content_type="text/html", body="<html><h1>Welcome to the portal</h1></html>"),
    "json": Behaviour(
        content_type="application/json", body='{"choices": [{"message": {"content": "Hello"}}]}'
    ),
    "json-error": Behaviour(
        content_type="application/json", body='{"error": {"message": "no", "code": "429"}}'
    ),
    "wrong-charset": Behaviour(content_type="text/event-stream; charset=iso-8859-1", text="数据 é"),
    "400-policy": _refusal(400, "Content Exists Risk", type="invalid_request_error"),
    "403": _refusal(403, "Forbidden"),
    "400": _refusal(400, "max_tokens is too large", type="invalid_request_error"),
    "400-context": _refusal(
        400, "request (6031 tokens) exceeds the context", type="exceed_context_size_error"
    ),
    "401": _refusal(401, "Incorrect API key provided", type="authentication_error"),
    "402": _refusal(402, "Insufficient Balance"),
    "404": _refusal(404, "The model does not exist", code="model_not_found"),
    "429": _refusal(429, "Too many requests", headers={"Retry-After": "7"}),
    "429-soon": _refusal(429, "Too many requests", headers={"Retry-After": "1"}),
    "500": _refusal(500, "Internal error"),
    "503": _refusal(503, "Overloaded", headers={"Retry-After": "3"}),
    "redirect": Behaviour(
        status=307, body="moved", content_type="text/plain", headers={"Location": "http://[::1]:9/"}
    ),
    "content-filter": Behaviour(finish_reason="content_filter"),
    "overloaded": Behaviour(finish_reason="insufficient_system_resource"),
}
"""What a request's model, or a script, may name."""


def named(name: str, more: Mapping[str, Behaviour] = BEHAVIOURS) -> Behaviour | None:
    """Return the behaviour of this name, changed as its query says; None when there is none."""
    base, _, query = name.partition("?")
    behaviour = more.get(base)
    return None if behaviour is None else _changed(behaviour, dict(parse_qsl(query)))


def _changed(behaviour: Behaviour, changes: Mapping[str, Any]) -> Behaviour:
    kinds = {each.name: type(getattr(behaviour, each.name)) for each in fields(behaviour)}
    return replace(
        behaviour,
        **{name: _converted(kinds[name], value) for name, value in changes.items()},
    )


def _converted(kind: type, value: Any) -> Any:
    if kind is bool and isinstance(value, str):
        return value.lower() in ("1", "true", "yes")
    return kind(value)


class Script:
    """Chooses a behaviour for each request."""

    def __init__(
        self,
        default: str = "normal",
        queue: tuple[str, ...] = (),
        behaviours: Mapping[str, Behaviour] | None = None,
        health: Mapping[str, Any] | None = None,
        models: tuple[str, ...] | None = (),
    ) -> None:
        """Take names of behaviours; `behaviours` adds some, and `health` is what its page tells.

        Without one there is no such page.

        `models` are listed to those who ask; None refuses to list.

        Raises:
            KeyError: there is no behaviour of one of the names.
        """
        self.health = health
        self._known = {**BEHAVIOURS, **(behaviours or {})}
        self.models = models
        self._default = default
        self._queue = deque(queue)
        for name in (default, *queue):
            if named(name, self._known) is None:
                raise KeyError(f"there is no behaviour named {name!r}")

    @classmethod
    def from_json(cls, text: str) -> "Script":
        """Return the script that JSON says."""
        raw = json.loads(text)
        behaviours = {
            name: _changed(Behaviour(), knobs) for name, knobs in raw.get("behaviours", {}).items()
        }
        models = raw.get("models", ())
        return cls(
            raw.get("default", "normal"),
            tuple(raw.get("queue", ())),
            behaviours,
            raw.get("health"),
            None if models is None else tuple(models),
        )

    def choose(self, model: str) -> tuple[str, Behaviour]:
        """Return the name and the behaviour for the next request."""
        names = (self._queue.popleft(),) if self._queue else (model, self._default)
        for name in names:
            found = named(name, self._known)
            if found is not None:
                return name, found
        raise KeyError(names)
