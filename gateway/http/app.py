"""Lists what the HTTP door serves."""

from collections.abc import Mapping, Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from gateway.http.assets import PAGE_ROUTES
from gateway.http.chat import CHAT
from gateway.http.failing import failure_of
from gateway.http.front import Front, failed, front_of, inbound_of
from gateway.http.health import HEALTH, LIVEZ, READYZ
from gateway.http.leaving import ClientLeftError
from gateway.http.metrics import METRICS
from gateway.http.models import GET_MODEL, LIST_MODELS
from gateway.http.openapi import serve_document
from gateway.http.operation import Operation, Serve
from gateway.http.orders import ORDER_OPERATIONS
from gateway.http.reception import Reception
from gateway.http.responses import RESPONSES
from gateway.http.runs import RUN_OPERATIONS
from gateway.http.state import STATE_OPERATIONS
from services.runtime.errors import InvalidArgumentError, NotFoundError, SelfBugError, SixhopError
from services.runtime.identity import REQUEST_ID_KEY
from services.runtime.telemetry import tell_refused

OPERATIONS: Sequence[Operation] = (
    CHAT,
    RESPONSES,
    LIST_MODELS,
    GET_MODEL,
    *RUN_OPERATIONS,
    *STATE_OPERATIONS,
    *ORDER_OPERATIONS,
    HEALTH,
    METRICS,
    LIVEZ,
    READYZ,
)
"""Every endpoint for programs; to add one is to write its `Operation` beside the function that
serves it, and to name it here: that opens it and puts it into `/openapi.json`.

Its answers are TypedDicts, so that mypy holds the code to what the document says, and its body is
a pydantic model. Errors are raised: before `Front.arrive` they are logged and told from here, after
it the policies log them. Pages for people are no endpoints: they are `PAGES`."""
PAGES: Sequence[Route] = PAGE_ROUTES
"""What browsers show; in no document."""


def make_app(front: Front) -> ASGIApp:
    """Return the application behind the door."""
    app = Starlette(
        routes=[*_routes((*OPERATIONS, serve_document(OPERATIONS))), *PAGES],
        exception_handlers={
            SixhopError: _failed,
            ClientLeftError: _left,
            HTTPException: _refused,
            Exception: _defect,
        },
    )
    app.state.front = front
    return Reception(app)


def _routes(operations: Sequence[Operation]) -> list[Route]:
    """Return one route for each path, so that a wrong method is told all of the right ones."""
    paths: dict[str, dict[str, Serve]] = {}
    for each in operations:
        paths.setdefault(each.path, {})[each.method] = each.serve
    return [_route(path, serves) for path, serves in paths.items()]


def _route(path: str, serves: Mapping[str, Serve]) -> Route:
    async def serve(request: Request) -> ASGIApp:
        return await serves["GET" if request.method == "HEAD" else request.method](request)

    return Route(path, serve, methods=list(serves))


async def _failed(request: Request, error: Exception) -> Response:
    if not isinstance(error, SixhopError):
        raise error
    inbound = inbound_of(request)
    if inbound is not None:
        return failed(front_of(request).failure(inbound, error))
    return _refuse(request, error)


async def _left(request: Request, error: Exception) -> Response:
    # Nobody reads it; it is what nginx writes for clients that are gone.
    return Response(status_code=499)


async def _refused(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    if error.status_code == 404:
        return _refuse(request, NotFoundError("page", request.url.path[:200]))
    response = _refuse(request, InvalidArgumentError("", f"{error.detail}; see /openapi.json"))
    response.status_code = error.status_code
    response.headers.update(error.headers or {})
    return response


async def _defect(request: Request, error: Exception) -> Response:
    # It is written into the log by whoever stands around all of this.
    return failed(failure_of(SelfBugError(type(error).__name__), request_id=_id(request)))


def _refuse(request: Request, error: SixhopError) -> Response:
    """Tell and log an error of a request that became no call."""
    method = f"{request.method} {request.url.path[:200]}"
    tell_refused(error, method=method, request_id=_id(request))
    return failed(failure_of(error, request_id=_id(request)))


def _id(request: Request) -> str:
    return request.headers[REQUEST_ID_KEY]
