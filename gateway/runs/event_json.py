"""Writes the events of a run as JSON, by hand: every field by its name in the proto, lengths in ms.

What is written here is promised to those who read `/v1/runs/{id}/events`: a test holds it to the
proto, so that no field is forgotten and none is renamed.
"""

from collections.abc import Callable, Mapping
from typing import Any

from services.runtime.durations import to_seconds
from sixhop.type.v1 import artifact_pb2, chat_pb2, run_pb2, usage_pb2

ACCEPTED = "accepted"
TEXT = "text_delta"
RESTARTED = "restarted"
FINISHED = "finished"
TOOL_CALL = "tool_call"
DEGRADED = "degraded"
ROUTED = "routed"
UNKNOWN = "unknown"
"""The kind of an event of a later release."""
_STATES = {
    run_pb2.STEP_STATE_OK: "ok",
    run_pb2.STEP_STATE_FAILED: "failed",
    run_pb2.STEP_STATE_SKIPPED: "skipped",
}
_ROUTES = {run_pb2.MODEL_ROUTE_PRIMARY: "primary", run_pb2.MODEL_ROUTE_BACKUP: "backup"}
_SIZES = {run_pb2.CONTEXT_SIZE_FULL: "full", run_pb2.CONTEXT_SIZE_COMPRESSED: "compressed"}


def event_json(kind: str, event: run_pb2.RunEvent) -> dict[str, Any]:
    """Return what an event of a kind says; nothing of a kind that is not known."""
    write = _WRITERS.get(kind)
    return write(event) if write is not None else {}


def _accepted(event: run_pb2.RunEvent) -> dict[str, Any]:
    accepted = event.accepted
    return {
        "run_id": accepted.run_id,
        "budget_ms": round(to_seconds(accepted.budget_duration) * 1000),
    }


def _routed(event: run_pb2.RunEvent) -> dict[str, Any]:
    routed = event.routed
    return {
        "agent": routed.agent,
        "score": routed.score,
        "margin": routed.margin,
        "reason": routed.reason,
        "replica": routed.replica,
        "model_route": _ROUTES.get(routed.model_route, ""),
        "context_size": _SIZES.get(routed.context_size, ""),
        "route_reason": routed.route_reason,
    }


def _step_started(event: run_pb2.RunEvent) -> dict[str, Any]:
    step = event.step_started
    return {"step": step.step, "name": step.name, "title": step.title}


def _step_finished(event: run_pb2.RunEvent) -> dict[str, Any]:
    step = event.step_finished
    return {
        "step": step.step,
        "name": step.name,
        "state": _STATES.get(step.state, ""),
        "elapsed_ms": round(to_seconds(step.elapsed_duration) * 1000),
        "detail": step.detail,
    }


def _thinking(event: run_pb2.RunEvent) -> dict[str, Any]:
    thinking = event.thinking
    return {
        "state": thinking.state,
        "silence_ms": round(to_seconds(thinking.silence_duration) * 1000),
        "remaining_ms": round(to_seconds(thinking.remaining_duration) * 1000),
        "hop": thinking.hop,
    }


def _text_delta(event: run_pb2.RunEvent) -> dict[str, Any]:
    return {"text": event.text_delta.text}


def _degraded(event: run_pb2.RunEvent) -> dict[str, Any]:
    degraded = event.degraded
    aged = degraded.HasField("age_duration")
    return {
        "mechanism": degraded.mechanism,
        "part": degraded.part,
        "reason": degraded.reason,
        "age_ms": round(to_seconds(degraded.age_duration) * 1000) if aged else None,
        "error_reason": degraded.error_reason,
    }


def _restarted(event: run_pb2.RunEvent) -> dict[str, Any]:
    return {"reason": event.restarted.reason}


def _finished(event: run_pb2.RunEvent) -> dict[str, Any]:
    finished = event.finished
    return {
        "agent": finished.agent,
        "model": finished.model,
        "usage": usage_json(finished.usage),
        "artifacts": list(map(artifact_json, finished.artifacts)),
        "degraded": finished.degraded,
        "missing_parts": list(finished.missing_parts),
        "sources": list(finished.sources),
        "finish_reason": finished.finish_reason,
    }


def _tool_call(event: run_pb2.RunEvent) -> dict[str, Any]:
    return tool_call_json(event.tool_call)


def usage_json(usage: usage_pb2.Usage) -> dict[str, Any]:
    """Return the tokens of a run."""
    return {
        "input_token_count": usage.input_token_count,
        "output_token_count": usage.output_token_count,
        "estimated": usage.estimated,
    }


def artifact_json(artifact: artifact_pb2.Artifact) -> dict[str, Any]:
    """Return a file without its bytes, which have an address of their own."""
    return {
        "name": artifact.name,
        "media_type": artifact.media_type,
        "byte_count": len(artifact.content),
    }


def tool_call_json(call: chat_pb2.ToolCall) -> dict[str, Any]:
    """Return a tool call as the model wrote it."""
    return {"id": call.id, "name": call.name, "arguments": call.arguments}


def without_words(kind: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return what may be kept of an event when nobody's words may.

    Tools' arguments are a model's words, and sources hold the queries that a question led to.
    """
    if kind == TOOL_CALL:
        return {**data, "arguments": None}
    if kind == FINISHED:
        return {**data, "sources": None, "source_count": len(data["sources"] or ())}
    return dict(data)


_WRITERS: Mapping[str, Callable[[run_pb2.RunEvent], dict[str, Any]]] = {
    ACCEPTED: _accepted,
    ROUTED: _routed,
    "step_started": _step_started,
    "step_finished": _step_finished,
    "thinking": _thinking,
    TEXT: _text_delta,
    DEGRADED: _degraded,
    RESTARTED: _restarted,
    FINISHED: _finished,
    TOOL_CALL: _tool_call,
}
