"""Joins the fragments of tool calls, as a provider streams them, into whole ones."""

from dataclasses import dataclass, field
from typing import Any

import orjson

from services.model.refusal import Reason, failed, protocol_error
from services.runtime.conversation import ToolCall
from services.runtime.errors import SixhopError

MAX_CALLS = 64
"""The most calls of one answer; no model asks for half as many."""
MAX_BYTES = 1 << 20
"""The most that all of them may have together, in bytes; they must fit into one message each."""


@dataclass(slots=True)
class _Growing:
    """Is a call of which something is there."""

    id: str = ""
    name: str = ""
    fragments: list[str] = field(default_factory=list)


class ToolCallDeltas:
    """Collects the calls of one answer by their index.

    The first fragment of a call brings its name, each may bring more of its arguments. An index is
    one call: a second name or id for it is refused, because two calls' arguments joined would be
    neither's.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self._calls: dict[int, _Growing] = {}
        self._bytes = 0
        self.latest = ""
        """The tool of the call that has grown last; empty while it is not named."""

    def __bool__(self) -> bool:
        """Return whether any call has begun."""
        return bool(self._calls)

    def add(self, deltas: Any) -> str:
        """Take the `tool_calls` of one delta; return what they add, for counting.

        Raises:
            SixhopError: they are not what the protocol says, or too much.
        """
        if not isinstance(deltas, list):
            raise _malformed("are no list")
        return "".join([self._add(delta) for delta in deltas])

    def whole(self, finish_reason: str) -> list[ToolCall]:
        """Return the calls in the order of their indices, once the answer has ended.

        Raises:
            SixhopError: one has no name, or the limit of the answer's length has cut one.
        """
        calls = []
        for index, growing in sorted(self._calls.items()):
            arguments = "".join(growing.fragments)
            if not growing.name:
                raise _malformed(f"have no name at index {index}")
            if finish_reason == "length" and not _is_json(arguments):
                raise failed(
                    Reason.TRUNCATED,
                    "tool_call_cut",
                    f"the call of {growing.name[:64]} was cut by the limit of the answer's length; "
                    "ask with a higher max_output_tokens",
                )
            calls.append(ToolCall(growing.id or f"call_{index}", growing.name, arguments))
        return calls

    def _add(self, delta: Any) -> str:
        if not isinstance(delta, dict):
            raise _malformed("are no objects")
        if delta.get("type") not in (None, "", "function"):
            raise _malformed("have a type that nobody knows")
        function = delta.get("function")
        if not isinstance(function, dict | None):
            raise _malformed("have no function")
        growing = self._of(delta)
        name = _text(function or {}, "name")
        arguments = _text(function or {}, "arguments")
        self._count(name + arguments)
        if name and growing.name not in ("", name):
            raise _malformed("have two names at one index")
        self.latest = growing.name = growing.name or name
        if arguments:
            growing.fragments.append(arguments)
        return name + arguments

    def _of(self, delta: dict[str, Any]) -> _Growing:
        """Return the call that a fragment belongs to."""
        identity = _text(delta, "id")
        index = delta.get("index")
        if index is None:
            index = self._index_without(identity)
        # For Python a truth value is a number.
        if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < MAX_CALLS:
            raise _malformed(f"have an index that is no number from 0 to {MAX_CALLS - 1}")
        growing = self._calls.setdefault(index, _Growing())
        if identity and growing.id not in ("", identity):
            raise _malformed("have two ids at one index")
        if identity and not growing.id:
            self._count(identity)
            growing.id = identity
        return growing

    def _index_without(self, identity: str) -> int:
        """Return the index that a fragment means which names none: that of its id, or the last."""
        last = max(self._calls, default=-1)
        if not identity:
            return max(last, 0)
        known = (index for index, growing in self._calls.items() if growing.id == identity)
        return next(known, last + 1)

    def _count(self, text: str) -> None:
        self._bytes += len(text.encode("utf-8", "surrogatepass"))
        if self._bytes > MAX_BYTES:
            raise protocol_error(
                "tool_calls_too_long", f"the tool calls have more than {MAX_BYTES} bytes"
            )


def _text(holder: dict[str, Any], name: str) -> str:
    value = holder.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _malformed(f"have a field {name} that is no text")
    return value


def _is_json(text: str) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


def _malformed(what: str) -> SixhopError:
    # Their text is not quoted: it may hold a part of the prompt.
    return protocol_error("bad_tool_call", f"the provider's tool calls {what}")
