"""Serves `GET /metrics` for Prometheus: what this process knows of itself when it is asked."""

from starlette.requests import Request
from starlette.responses import Response

from gateway.http.front import front_of
from gateway.http.operation import Answer, Operation
from services.runtime.exposition import MEDIA_TYPE, exposition, gauge
from services.runtime.telemetry import METRIC_HTTP_STREAMS


async def metrics(request: Request) -> Response:
    """Tell the state in Prometheus' text format."""
    front = front_of(request)
    streams = gauge(METRIC_HTTP_STREAMS, "Streams over HTTP that are open.", len(front.keep))
    text = exposition(front.hop.runtime.snapshot(), [streams])
    return Response(text, media_type=MEDIA_TYPE)


METRICS = Operation(
    method="GET",
    path="/metrics",
    serve=metrics,
    name="getMetrics",
    tag="health",
    summary="Tell Prometheus the state of this process",
    answers=[
        Answer(description="The metrics, as text.", kind=str, media_type="text/plain"),
    ],
)
