"""Tells what each hop behind the gateway was given, used and left."""

from collections.abc import Sequence

from typing_extensions import TypedDict

from services.runtime.call import AttemptReport
from services.runtime.reports import flat_reports


class HopTold(TypedDict):
    """Says what one hop was given, used and had left, in milliseconds."""

    hop: str
    method: str
    depth: int
    """How many hops lie between the gateway and the one that tells it, from 1."""
    attempt: int
    start_ms: int
    given_ms: int
    used_ms: int
    left_ms: int
    outcome: str
    """`OK`, or a gRPC code with the reason behind a slash."""


def hops_told(reports: Sequence[AttemptReport]) -> list[HopTold]:
    """Return what the gateway's own reports tell, the outermost hop last."""
    return [
        {
            "hop": each.hop,
            "method": each.method,
            "depth": each.depth,
            "attempt": each.attempt,
            "start_ms": round(each.start_s * 1000),
            "given_ms": round(each.given_s * 1000),
            "used_ms": round(each.used_s * 1000),
            "left_ms": round(each.left_s * 1000),
            "outcome": each.outcome,
        }
        for each in flat_reports(reports)
    ]
