"""Lists what the HTTP door serves."""

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gateway.http.chat import chat_completions
from gateway.http.failing import failure_of
from gateway.http.front import Front, failed
from gateway.http.health import health, livez, readyz
from gateway.http.leaving import ClientLeftError
from gateway.http.metrics import metrics
from gateway.http.models import list_models
from gateway.http.runs import RUN_ROUTES
from services.runtime.errors import InvalidArgumentError, NotFoundError, SelfBugError, SixhopError

ROUTES = [
    Route("/v1/chat/completions", chat_completions, methods=["POST"]),
    Route("/v1/models", list_models),
    Route("/v1/health", health),
    Route("/metrics", metrics),
    *RUN_ROUTES,
    Route("/livez", livez),
    Route("/readyz", readyz),
]


def make_app(front: Front) -> Starlette:
    """Return the application behind the door."""
    app = Starlette(
        routes=ROUTES,
        exception_handlers={
            SixhopError: _failed,
            ClientLeftError: _left,
            HTTPException: _refused,
            Exception: _defect,
        },
    )
    app.state.front = front
    return app


async def _failed(request: Request, error: Exception) -> Response:
    if not isinstance(error, SixhopError):
        raise error
    return failed(failure_of(error))


async def _left(request: Request, error: Exception) -> Response:
    # Nobody reads it; it is what nginx writes for clients that are gone.
    return Response(status_code=499)


async def _refused(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    if error.status_code == 404:
        path = request.url.path[:200]
        return failed(failure_of(NotFoundError("page", path)))
    failure = failure_of(InvalidArgumentError("", f"{error.detail}; see /openapi.json"))
    return Response(
        failure.content(), error.status_code, error.headers, media_type="application/json"
    )


async def _defect(request: Request, error: Exception) -> Response:
    return failed(failure_of(SelfBugError(type(error).__name__)))
