"""Serves `/livez`, `/readyz` and `/v1/health`."""

import orjson
from starlette.requests import Request
from starlette.responses import Response

from gateway.http.front import front_of

_OK = b'{"status":"ok"}'


async def livez(request: Request) -> Response:
    """Say that the process lives."""
    return Response(_OK, media_type="application/json")


async def readyz(request: Request) -> Response:
    """Say whether the process takes calls."""
    health = front_of(request).hop.health
    if health.ready:
        return Response(_OK, media_type="application/json")
    content = orjson.dumps({"status": health.detail or "not ready"})
    return Response(content, 503, media_type="application/json")


async def health(request: Request) -> Response:
    """Tell how many more calls per second are taken, and what one takes."""
    state = front_of(request).hop.runtime.state
    average_s = state.activity.average_s()
    page = {
        "status": "ok" if state.health.ready else state.health.detail or "not ready",
        "estimated_qps": state.estimated_qps(),
        "avg_latency_ms": round(1000 * average_s, 3) if average_s else None,
    }
    return Response(
        orjson.dumps(page), 200 if state.health.ready else 503, media_type="application/json"
    )
