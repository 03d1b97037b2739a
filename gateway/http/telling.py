"""Tells what a run was, in JSON, beyond what OpenAI has words for."""

from collections.abc import Iterable
from functools import partial

from typing_extensions import TypedDict

from gateway.hops import HopTold, hops_told
from gateway.http.run_addresses import artifact_address
from services.runtime.call import Inbound
from services.runtime.durations import to_seconds
from sixhop.gateway.v1 import gateway_pb2
from sixhop.type.v1 import artifact_pb2, run_pb2


class DegradedTold(TypedDict):
    """Is one fallback that was used."""

    mechanism: str
    """`cache`, `backup`, `default`, `template`, `extract`, `partial` or `skip`."""
    part: str
    """The part of the answer that is a lesser one."""
    reason: str
    """Why, for people."""
    age_s: float | None
    """How old the part is, seconds; for earlier answers."""
    error_reason: str | None
    """The reason of the error behind it."""


class ArtifactTold(TypedDict):
    """Names a file that belongs to an answer."""

    name: str
    media_type: str
    byte_count: int
    url: str
    """Where it is for a while, unless it was too large to be kept."""


class RunTold(TypedDict):
    """Tells what an answer is beyond OpenAI's fields."""

    run_id: str
    request_id: str
    agent: str
    """Who answered."""
    model: str
    """Who wrote the text: a model, or `template` when none did."""
    degraded: list[DegradedTold]
    """Every fallback that was used; empty for a full answer."""
    missing_parts: list[str]
    """The parts that the answer should have had and has not."""
    sources: list[str]
    """Where facts came from."""
    artifacts: list[ArtifactTold]
    hops: list[HopTold]


def told(
    answer: gateway_pb2.AskResponse | run_pb2.RunFinished,
    degradations: Iterable[run_pb2.Degraded],
    inbound: Inbound,
) -> RunTold:
    """Return what an answer tells beyond OpenAI's fields."""
    return {
        "run_id": inbound.identity.run_id,
        "request_id": inbound.identity.request_id,
        "agent": answer.agent,
        "model": answer.model,
        "degraded": list(map(degradation_of, degradations)),
        "missing_parts": list(answer.missing_parts),
        "sources": list(answer.sources),
        "artifacts": list(map(partial(_artifact, inbound), answer.artifacts)),
        "hops": hops_told(inbound.reports),
    }


def degradation_of(degraded: run_pb2.Degraded) -> DegradedTold:
    """Return one fallback that was used."""
    return {
        "mechanism": degraded.mechanism,
        "part": degraded.part,
        "reason": degraded.reason,
        "age_s": to_seconds(degraded.age_duration) or None,
        "error_reason": degraded.error_reason or None,
    }


def _artifact(inbound: Inbound, artifact: artifact_pb2.Artifact) -> ArtifactTold:
    return {
        "name": artifact.name,
        "media_type": artifact.media_type,
        "byte_count": len(artifact.content),
        "url": artifact_address(inbound.identity.run_id, artifact.name),
    }
