"""Holds a provider's stream to its contract: no finish reason, no success."""

from collections.abc import Iterator
from typing import Any

import orjson

from services.model.backend import Finish, Growth, Reasoning, Text, ToolCallPart
from services.model.complaints import complained
from services.model.refusal import Exchange, Reason, failed, overloaded, protocol_error
from services.model.sse import Event
from services.model.tool_calls import ToolCallDeltas
from services.runtime.compression.tokens import (
    TokenEstimate,
    estimate_offered_tokens,
    estimate_prompt_tokens,
)
from services.runtime.conversation import ToolCall
from services.runtime.errors import SixhopError
from services.runtime.generation import Usage

DONE = b"[DONE]"
COMPLETE_REASONS = frozenset({"stop", "length", "tool_calls"})
"""What a provider says when its answer is whole; `length` is whole as far as the limit lets it."""


class Completion:
    """Reads the events of one completion in the dialect of OpenAI.

    Success needs a finish reason out of `COMPLETE_REASONS`. `[DONE]` or the end of the bytes
    without one is a truncated answer; whatever else the provider says is its own error. Tool calls
    are given at the end, whole, with their arguments as the model wrote them.
    """

    def __init__(self, exchange: Exchange) -> None:
        """Take what was asked, of whom."""
        self._exchange = exchange
        self._model = exchange.provider.model
        self._finish_reason = ""
        self._usage: Usage | None = None
        self._written = TokenEstimate()
        self._calls = ToolCallDeltas()
        self.done = False
        """True once the provider has said that nothing will follow."""

    @property
    def complete(self) -> bool:
        """Return whether the provider has said that the answer is whole."""
        return bool(self._finish_reason)

    def take(self, event: Event) -> Iterator[Growth]:
        """Yield what one event adds.

        Raises:
            SixhopError: the provider failed, cut or filtered its answer, or does not speak
                the protocol.
        """
        if self.done:
            return
        if event.data.strip() == DONE:
            self.done = True
            return
        chunk = self._parse(event)
        model = chunk.get("model")
        if isinstance(model, str) and model:
            self._model = model
        self._take_usage(chunk.get("usage"))
        for choice in chunk["choices"]:
            yield from self._take_choice(choice)

    def end(self) -> list[ToolCall | Finish]:
        """Return the tool calls and the end of the answer, when the provider's stream has ended.

        Raises:
            SixhopError: the provider never said that the answer is whole, or its tool calls are
                not.
        """
        reason = self._finish_reason
        if not reason:
            how = "said [DONE]" if self.done else "ended its stream"
            raise failed(
                Reason.TRUNCATED,
                "truncated",
                f"the provider {how} without a finish reason: the answer is cut",
            )
        calls = self._calls.whole(reason)
        if reason == "tool_calls" and not calls:
            raise protocol_error("no_tool_call", "the provider told of tool calls and sent none")
        if calls and reason == "stop":
            # Some say so where the caller has named the tool: it is one outcome for our callers.
            reason = "tool_calls"
        return [*calls, Finish(self._model, reason, self._usage or self._estimate())]

    def _estimate(self) -> Usage:
        asked = self._exchange
        read = estimate_prompt_tokens(asked.messages) + estimate_offered_tokens(asked.tools)
        return Usage(read, self._written.count, estimated=True)

    def _parse(self, event: Event) -> dict[str, Any]:
        try:
            chunk = orjson.loads(event.data)
        except orjson.JSONDecodeError:
            if event.kind == "error":
                raise complained(self._exchange, event.data) from None
            raise _malformed("bad_json", event.data) from None
        if event.kind == "error":
            raise complained(self._exchange, chunk)
        if not isinstance(chunk, dict):
            raise _malformed("unexpected_event", event.data)
        if chunk.get("error") is not None:
            raise complained(self._exchange, chunk)
        choices = chunk.get("choices")
        if choices is None:
            raise complained(self._exchange, chunk)
        if not isinstance(choices, list):
            raise _malformed("unexpected_event", event.data)
        return chunk

    def _take_choice(self, choice: Any) -> Iterator[Growth]:
        delta = choice.get("delta") if isinstance(choice, dict) else None
        # Another index is another answer to the same prompt, and two must not be joined.
        if not isinstance(choice, dict) or choice.get("index", 0) not in (0, None):
            raise _malformed("unexpected_event", orjson.dumps(choice))
        if not isinstance(delta, dict | None):
            raise _malformed("unexpected_event", orjson.dumps(choice))
        delta = delta or {}
        for text, kind in (
            # The first name is DeepSeek's, the second that of vLLM and of aggregators.
            (delta.get("reasoning_content") or delta.get("reasoning"), Reasoning),
            (delta.get("content"), Text),
        ):
            if not text:
                continue
            if not isinstance(text, str) or self.complete:
                raise _malformed("unexpected_event", orjson.dumps(choice))
            self._count(text)
            yield kind(text)
        yield from self._take_calls(delta)
        # An empty reason is how some providers say "not yet".
        if choice.get("finish_reason"):
            self._take_finish_reason(choice["finish_reason"])

    def _take_calls(self, delta: dict[str, Any]) -> Iterator[ToolCallPart]:
        if delta.get("function_call"):
            raise _retired_call()
        calls = delta.get("tool_calls")
        if not calls:
            return
        if self.complete:
            raise _malformed("unexpected_event", orjson.dumps(delta))
        if not self._exchange.tools:
            raise protocol_error("unasked_tool_call", "the provider calls tools and none was there")
        added = self._calls.add(calls)
        self._count(added)
        yield ToolCallPart(self._calls.latest, len(added.encode()))

    def _count(self, text: str) -> None:
        self._written.add(text)
        most = self._exchange.provider.max_written_tokens
        if self._written.count > most:
            raise failed(
                Reason.PROTOCOL_ERROR,
                "flood",
                f"the provider wrote more than {most} tokens and did not end",
            )

    def _take_finish_reason(self, reason: Any) -> None:
        if isinstance(reason, str) and reason in COMPLETE_REASONS:
            self._finish_reason = reason
        elif reason == "function_call":
            raise _retired_call()
        elif reason == "content_filter":
            raise failed(
                Reason.CONTENT_FILTERED,
                "content_filter",
                "the provider's content filter cut the answer; ask in other words",
            )
        elif reason == "insufficient_system_resource":
            raise overloaded(
                Reason.PROVIDER_OVERLOADED,
                "insufficient_system_resource",
                "the provider cut the answer because it has too much to do",
            )
        else:
            told = self._exchange.quote(str(reason))
            raise failed(
                Reason.PROVIDER_ERROR, "provider_error", f"the provider stopped writing: {told}"
            )

    def _take_usage(self, usage: Any) -> None:
        if not isinstance(usage, dict):
            return
        read, written = usage.get("prompt_tokens"), usage.get("completion_tokens")
        if isinstance(read, int) and isinstance(written, int) and min(read, written) >= 0:
            self._usage = Usage(read, written)


def _retired_call() -> SixhopError:
    return protocol_error(
        "function_call", "the provider calls functions in the way that tools have replaced"
    )


def _malformed(cause: str, data: bytes) -> SixhopError:
    # Not quoted: it may hold a part of the answer, and answers stay out of logs.
    return protocol_error(cause, f"the provider sent {len(data)} bytes that are no chunk")
