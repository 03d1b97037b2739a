"""Defines what is kept of a run beside its events."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from gateway.hops import HopTold
from services.runtime.call import Inbound
from services.runtime.errors import SixhopError
from services.runtime.status import status_info
from services.runtime.topology import GATEWAY


class Status(StrEnum):
    """Says how far a run is, or how it ended."""

    RUNNING = "running"
    OK = "ok"
    DEGRADED = "degraded"
    """It was answered, a part of the answer by a fallback."""
    FAILED = "failed"
    """It has no answer; the error says why. A run that was refused has failed as well."""
    CANCELLED = "cancelled"
    """Its caller went away, or somebody ended it."""


ANSWERED = frozenset({Status.OK, Status.DEGRADED})
"""How runs end that have an answer."""


@dataclass(slots=True, kw_only=True)
class RunRecord:
    """Is what is known of a run; everything in it can be written as JSON."""

    run_id: str
    request_id: str
    tenant: str
    gateway: str
    """The process that ran it."""
    method: str
    """`Run` for a stream of events, `Ask` for an answer at once."""
    started_ms: int
    """When it came, milliseconds since the epoch."""
    budget_ms: int | None = None
    """The deadline budget of the whole run; None when it was refused before it had one."""
    status: Status = Status.RUNNING
    elapsed_ms: int | None = None
    """How long it took; None while it runs."""
    agent: str = ""
    """Who answers; until that is decided, who was asked for."""
    question: str | None = None
    """The words of the question; None unless prompts may be kept."""
    question_char_count: int | None = None
    """How long the question is; None when it was not read, as the run was refused before."""
    source_count: int = 0
    model: str = ""
    usage: dict[str, Any] | None = None
    finish_reason: str = ""
    degradations: list[Mapping[str, Any]] = field(default_factory=list)
    missing_parts: list[str] = field(default_factory=list)
    artifacts: list[Mapping[str, Any]] = field(default_factory=list)
    hops: list[HopTold] = field(default_factory=list)
    """What each hop was given, used and left; there once the run has ended."""
    error: Mapping[str, Any] | None = None
    event_count: int = 0


@dataclass(frozen=True, slots=True)
class RunWords:
    """Is what a run said. It is kept for as long as a client may come back for it."""

    text: str | None
    """The answer's text; None when it is not there, or not whole, any more."""
    tool_calls: Sequence[Mapping[str, Any]] = ()
    sources: Sequence[str] = ()


def error_json(error: SixhopError, inbound: Inbound, now: float) -> dict[str, Any]:
    """Return what is kept of the error that ended a run."""
    remaining_s = max(0.0, inbound.deadline - now) if inbound.deadline != float("inf") else 0.0
    message, facts = status_info(error, hop=GATEWAY, remaining_s=remaining_s, wait_s=inbound.wait_s)
    return {
        "message": message,
        "code": error.code.name,
        "reason": error.reason,
        "hop": facts.get("originHop", GATEWAY),
        "cause": facts["cause"],
        "remaining_ms": int(facts["remainingMs"]),
        "details": facts,
    }
