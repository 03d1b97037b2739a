"""Writes answers as OpenAI's clients read them, whole or in chunks."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Literal, NotRequired

import orjson
from typing_extensions import TypedDict

from gateway.http.failing import Failure
from gateway.http.telling import RunTold, told
from services.runtime.call import Inbound
from services.runtime.clock import Clock
from services.runtime.errors import DependencyFailedError, Origin
from services.runtime.topology import ROUTING
from sixhop.gateway.v1 import gateway_pb2
from sixhop.type.v1 import chat_pb2, run_pb2, usage_pb2

END = "[DONE]"
DONE = b"data: %s\n\n" % END.encode()
FinishReason = Literal["stop", "length", "tool_calls"]
_FINISHES: dict[str, FinishReason] = {"length": "length", "tool_calls": "tool_calls"}


class FunctionCalled(TypedDict):
    """Says which function is asked for, and with what."""

    name: str
    arguments: str
    """JSON, if the model kept to its rules."""


class ToolCalled(TypedDict):
    """Asks the caller to run one of its tools."""

    id: str
    type: Literal["function"]
    function: FunctionCalled


class Message(TypedDict):
    """Is what the answer says."""

    role: Literal["assistant"]
    content: str | None
    refusal: None
    tool_calls: NotRequired[list[ToolCalled]]


class Choice(TypedDict):
    """Is the one answer."""

    index: int
    message: Message
    logprobs: None
    finish_reason: FinishReason


class Usage(TypedDict):
    """Counts the tokens of a run."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    estimated: bool
    """Whether the provider gave no count, and this is our estimate."""


class Completion(TypedDict):
    """Is a whole answer."""

    id: str
    object: Literal["chat.completion"]
    created: int
    """When, in seconds since 1970."""
    model: str
    """Who wrote the text: a model, or `template` when none did."""
    choices: list[Choice]
    usage: Usage
    sixhop: RunTold


class ToolCallDelta(ToolCalled):
    """Asks for one of the caller's tools; comes whole."""

    index: int


class Delta(TypedDict, total=False):
    """Is more of the answer."""

    role: Literal["assistant"]
    content: str
    tool_calls: list[ToolCallDelta]


class ChoiceDelta(TypedDict):
    """Is more of the one answer."""

    index: int
    delta: Delta
    logprobs: None
    finish_reason: FinishReason | None


class Chunk(TypedDict):
    """Is a piece of an answer."""

    id: str
    object: Literal["chat.completion.chunk"]
    created: int
    model: str
    """What was asked for, and at the end who wrote the text."""
    choices: list[ChoiceDelta]
    """Empty in the last chunk of a stream that tells its usage."""
    usage: NotRequired[Usage | None]
    sixhop: NotRequired[RunTold]
    """In the chunk that has the finish reason."""


def completion(answer: gateway_pb2.AskResponse, inbound: Inbound, clock: Clock) -> Completion:
    """Return a whole answer as a chat completion."""
    calls = list(map(_called, answer.tool_calls))
    message: Message = {
        "role": "assistant",
        "content": None if calls and not answer.text else answer.text,
        "refusal": None,
    }
    if calls:
        message["tool_calls"] = calls
    return {
        "id": f"chatcmpl-{answer.run_id}",
        "object": "chat.completion",
        "created": int(clock.utc().timestamp()),
        "model": answer.model,
        "choices": [
            {
                "index": 0,
                "message": message,
                "logprobs": None,
                "finish_reason": finish_reason(answer.finish_reason),
            }
        ],
        "usage": usage_of(answer.usage),
        "sixhop": told(answer, answer.degradations, inbound),
    }


def finish_reason(told_reason: str) -> FinishReason:
    """Return why a text ends, in OpenAI's word; agents that do not say it have come to its end."""
    return _FINISHES.get(told_reason, "stop")


def usage_of(usage: usage_pb2.Usage) -> Usage:
    """Return the tokens of a run."""
    read, written = usage.input_token_count, usage.output_token_count
    return {
        "prompt_tokens": read,
        "completion_tokens": written,
        "total_tokens": read + written,
        "estimated": usage.estimated,
    }


def _called(call: chat_pb2.ToolCall) -> ToolCalled:
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    }


class Chunks:
    """Writes one streamed answer."""

    def __init__(self, model: str, inbound: Inbound, clock: Clock, *, include_usage: bool) -> None:
        """Take the model that was asked for, the call, and whether usage is asked for."""
        self._inbound = inbound
        self._include_usage = include_usage
        self._model = model
        self._id = f"chatcmpl-{inbound.identity.run_id}"
        self._created = int(clock.utc().timestamp())
        self._degradations: list[run_pb2.Degraded] = []
        self._begun = False
        self._call_count = 0

    async def of(
        self, events: AsyncGenerator[run_pb2.RunEvent, None]
    ) -> AsyncGenerator[bytes, None]:
        """Yield the chunks of a run; its errors go on."""
        async with aclosing(events) as running:
            async for event in running:
                kind = event.WhichOneof("event")
                if kind == "text_delta":
                    yield self._delta({"content": event.text_delta.text})
                elif kind == "tool_call":
                    yield self._call(event.tool_call)
                elif kind == "restarted" and self._begun:
                    raise restarted()
                elif kind == "degraded":
                    self._degradations.append(event.degraded)
                elif kind == "finished":
                    yield self._end(event.finished)

    def _call(self, call: chat_pb2.ToolCall) -> bytes:
        delta: ToolCallDelta = {"index": self._call_count, **_called(call)}
        self._call_count += 1
        return self._delta({"tool_calls": [delta]})

    def _delta(self, delta: Delta, reason: FinishReason | None = None) -> bytes:
        return event_of(self._chunk([self._choice(delta, reason)]))

    def _choice(self, delta: Delta, reason: FinishReason | None) -> ChoiceDelta:
        if not self._begun:
            self._begun = True
            delta = {"role": "assistant", **delta}
        return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}

    def _end(self, finished: run_pb2.RunFinished) -> bytes:
        self._model = finished.model or self._model
        last = self._chunk([self._choice({}, finish_reason(finished.finish_reason))])
        last["sixhop"] = told(finished, self._degradations, self._inbound)
        written = event_of(last)
        if self._include_usage:
            counted = self._chunk([])
            counted["usage"] = usage_of(finished.usage)
            written += event_of(counted)
        return written + DONE

    def _chunk(self, choices: list[ChoiceDelta]) -> Chunk:
        chunk: Chunk = {
            "id": self._id,
            "object": "chat.completion.chunk",
            "created": self._created,
            "model": self._model,
            "choices": choices,
        }
        if self._include_usage:
            # As OpenAI does it: null in every chunk but the last.
            chunk["usage"] = None
        return chunk


def restarted() -> DependencyFailedError:
    """Return the error of a run that takes back what a client has that cannot take it back.

    No delivery that this door asks for allows it.
    """
    return DependencyFailedError(
        ROUTING,
        "the text was begun anew, and what was sent of it cannot be taken back; ask again",
        cause="protocol",
        origin=Origin(ROUTING, code="OK", reason="PROTOCOL_ERROR"),
    )


def event_of(value: Any) -> bytes:
    """Return a value as a server-sent event."""
    return b"data: " + orjson.dumps(value) + b"\n\n"


def failure_event(failure: Failure) -> bytes:
    """Return an error as the last event of a stream that has begun."""
    return event_of(failure.body)
