"""Serves `/livez`, `/readyz` and `/v1/health`."""

import orjson
from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from gateway.http.front import front_of
from gateway.http.operation import JSON, Answer, Operation
from gateway.state.view import SERVING, HopView


class Status(TypedDict):
    """Tells how the process is."""

    status: str
    """`ok`, or why not."""


class HopHealth(TypedDict):
    """Tells what one process of the suite can take."""

    hop: str
    ready: bool
    state: str
    """`serving`, `not_serving`, `silent`, `unreachable`, or `unknown` when it has not told yet."""
    estimated_qps: float | None
    avg_latency_ms: float | None
    breakers: dict[str, str]
    """Of each dependency that it has called: `closed`, `open` or `half_open`."""


class HealthPage(TypedDict):
    """Tells what the process can take."""

    status: str
    """`ok` when every process of the suite is ready, `degraded` when this one is and another is
    not, or why this one is not."""
    estimated_qps: float | None
    """How many more calls per second it can take now; null while that is not known."""
    avg_latency_ms: float | None
    """What a call took lately; null while there were none."""
    hops: list[HopHealth]
    """The same of every process of the suite, this one included."""


async def livez(request: Request) -> Response:
    """Say that the process lives."""
    return _status(None)


async def readyz(request: Request) -> Response:
    """Say whether the process takes calls."""
    health = front_of(request).hop.health
    return _status(None if health.ready else health.detail or "not ready")


async def health(request: Request) -> Response:
    """Tell how many more calls per second are taken, and what one takes."""
    front = front_of(request)
    state = front.hop.runtime.state
    average_s = state.activity.average_s()
    hops = [_hop(each) for each in await front.lookout.glimpse()]
    status = "ok" if all(each["ready"] for each in hops) else "degraded"
    page: HealthPage = {
        "status": status if state.health.ready else state.health.detail or "not ready",
        "estimated_qps": state.estimated_qps(),
        "avg_latency_ms": round(1000 * average_s, 3) if average_s else None,
        "hops": hops,
    }
    return Response(orjson.dumps(page), 200 if state.health.ready else 503, media_type=JSON)


def _hop(view: HopView) -> HopHealth:
    latency = view["latency_ms"]
    return HopHealth(
        hop=view["hop"],
        ready=view["state"] == SERVING,
        state=view["state"],
        estimated_qps=view["estimated_qps"],
        avg_latency_ms=latency["avg"] if latency is not None else None,
        breakers={each["key"]: each["breaker"] for each in view["dependencies"]},
    )


def _status(problem: str | None) -> Response:
    page: Status = {"status": problem or "ok"}
    return Response(orjson.dumps(page), 503 if problem else 200, media_type=JSON)


LIVEZ = Operation(
    method="GET",
    path="/livez",
    serve=livez,
    name="getLiveness",
    tag="health",
    summary="Tell whether the process lives",
    answers=[Answer(description="It does.", kind=Status)],
)
READYZ = Operation(
    method="GET",
    path="/readyz",
    serve=readyz,
    name="getReadiness",
    tag="health",
    summary="Tell whether the process takes calls",
    answers=[
        Answer(description="It does.", kind=Status),
        Answer(description="It does not, and says why.", kind=Status, status=503),
    ],
)
HEALTH = Operation(
    method="GET",
    path="/v1/health",
    serve=health,
    name="getHealth",
    tag="health",
    summary="Tell how many more calls per second the door takes, and what one takes",
    answers=[
        Answer(description="What it can take.", kind=HealthPage),
        Answer(description="The same, while it takes no calls.", kind=HealthPage, status=503),
    ],
)
