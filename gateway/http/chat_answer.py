"""Writes answers as OpenAI's clients read them, whole or in chunks."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

import orjson

from gateway.http.failing import Failure
from services.runtime.call import AttemptReport, Inbound
from services.runtime.clock import Clock
from services.runtime.durations import to_seconds
from services.runtime.reports import decode_reports, encode_reports
from sixhop.gateway.v1 import gateway_pb2
from sixhop.type.v1 import run_pb2, usage_pb2

DONE = b"data: [DONE]\n\n"


def completion(answer: gateway_pb2.AskResponse, inbound: Inbound, clock: Clock) -> dict[str, Any]:
    """Return a whole answer as a chat completion."""
    return {
        "id": f"chatcmpl-{answer.run_id}",
        "object": "chat.completion",
        "created": int(clock.utc().timestamp()),
        "model": answer.model,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": answer.text, "refusal": None},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": usage_of(answer.usage),
        "sixhop": told(answer, answer.degradations, inbound),
    }


def told(
    answer: gateway_pb2.AskResponse | run_pb2.RunFinished,
    degradations: Any,
    inbound: Inbound,
) -> dict[str, Any]:
    """Return what an answer tells beyond OpenAI's fields."""
    return {
        "run_id": inbound.identity.run_id,
        "request_id": inbound.identity.request_id,
        "agent": answer.agent,
        "degraded": [degradation_of(each) for each in degradations],
        "missing_parts": list(answer.missing_parts),
        "sources": list(answer.sources),
        "artifacts": [
            {
                "name": each.name,
                "media_type": each.media_type,
                "byte_count": len(each.content),
            }
            for each in answer.artifacts
        ],
        "hops": [report_of(each) for each in hop_reports(inbound)],
    }


def hop_reports(inbound: Inbound) -> list[AttemptReport]:
    """Return what every hop behind this one was given, used and left."""
    return decode_reports(encode_reports(inbound.reports))


def report_of(report: AttemptReport) -> dict[str, Any]:
    """Return what one hop was given, used and left, in milliseconds."""
    return {
        "hop": report.hop,
        "method": report.method,
        "depth": report.depth,
        "attempt": report.attempt,
        "start_ms": round(report.start_s * 1000),
        "given_ms": round(report.given_s * 1000),
        "used_ms": round(report.used_s * 1000),
        "left_ms": round(report.left_s * 1000),
        "outcome": report.outcome,
    }


def degradation_of(degraded: run_pb2.Degraded) -> dict[str, Any]:
    """Return one fallback that was used."""
    return {
        "mechanism": degraded.mechanism,
        "part": degraded.part,
        "reason": degraded.reason,
        "age_s": to_seconds(degraded.age_duration) or None,
        "error_reason": degraded.error_reason or None,
    }


def usage_of(usage: usage_pb2.Usage) -> dict[str, Any]:
    """Return the tokens of a run."""
    read, written = usage.input_token_count, usage.output_token_count
    return {
        "prompt_tokens": read,
        "completion_tokens": written,
        "total_tokens": read + written,
        "estimated": usage.estimated,
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

    async def of(
        self, events: AsyncGenerator[gateway_pb2.RunResponse, None]
    ) -> AsyncGenerator[bytes, None]:
        """Yield the chunks of a run; its errors go on."""
        async with aclosing(events) as running:
            async for response in running:
                event = response.event
                kind = event.WhichOneof("event")
                if kind == "text_delta":
                    yield self._delta(self._begin() | {"content": event.text_delta.text})
                elif kind == "degraded":
                    self._degradations.append(event.degraded)
                elif kind == "finished":
                    yield self._end(event.finished)

    def _begin(self) -> dict[str, Any]:
        if self._begun:
            return {}
        self._begun = True
        return {"role": "assistant"}

    def _delta(self, delta: Mapping[str, Any]) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}
        return self._chunk({"choices": [choice]})

    def _end(self, finished: run_pb2.RunFinished) -> bytes:
        self._model = finished.model or self._model
        choice = {"index": 0, "delta": self._begin(), "logprobs": None, "finish_reason": "stop"}
        more = told(finished, self._degradations, self._inbound)
        last = self._chunk({"choices": [choice], "sixhop": more})
        if self._include_usage:
            last += self._chunk({"choices": [], "usage": usage_of(finished.usage)})
        return last + DONE

    def _chunk(self, fields: Mapping[str, Any]) -> bytes:
        head = {
            "id": self._id,
            "object": "chat.completion.chunk",
            "created": self._created,
            "model": self._model,
        }
        return event_of(head | dict(fields))


def event_of(value: Any) -> bytes:
    """Return a value as a server-sent event."""
    return b"data: " + orjson.dumps(value) + b"\n\n"


def failure_event(failure: Failure) -> bytes:
    """Return an error as the last event of a stream that has begun."""
    return event_of(failure.body)
