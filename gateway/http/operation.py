"""Describes endpoints: once, for the router and for the OpenAPI document alike."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Protocol

from pydantic import BaseModel, Field
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

JSON = "application/json"
EVENTS = "text/event-stream"

RawHeaders = list[tuple[bytes, bytes]]
"""Are headers as ASGI has them."""


class Served(Protocol):
    """Is an answer: an ASGI application that sends these headers, and its own."""

    raw_headers: RawHeaders

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        ...


Serve = Callable[[Request], Awaitable[Served]]
"""Answers a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Is one answer that an endpoint gives when all is well."""

    description: str
    kind: Any = None
    """The type of its JSON: a TypedDict, or whatever pydantic can describe. For `EVENTS`, that of
    the data of one event. None for content that has no type."""
    status: int = 200
    media_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)
    """What its own headers mean; those of every answer are known."""
    end: str = ""
    """The data of the last event, where that is no JSON."""
    links: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """What can be asked next: by the name of each endpoint, its parameters in what OpenAPI calls
    runtime expressions, such as `$response.body#/id`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """Is one value that an endpoint takes from outside of the body."""

    name: str
    where: Literal["header", "query", "path"]
    description: str
    kind: Any = str
    required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """Is one endpoint.

    It stands beside the function that serves it, and its place in `gateway.http.app.OPERATIONS`
    both opens it and writes it into `/openapi.json`; nothing else has to be touched.
    """

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    path: str
    serve: Serve
    name: str
    """How generated clients call it, such as `listModels`."""
    tag: str
    """The group it belongs to."""
    summary: str
    answers: Sequence[Answer]
    description: str = ""
    body: type[BaseModel] | None = None
    """The model that reads the body, by `gateway.http.body.read_json`."""
    parameters: Sequence[Parameter] = ()
    errors: Sequence[int] = ()
    """The statuses of its errors, each in the body of `gateway.http.failing.ErrorBody`."""


MAX_DEADLINE_MS = 10**12 - 1
"""The longest that is read; it is cut to what the gateway allows."""
CALL_PARAMETERS = (
    Parameter(
        name="x-request-id",
        where="header",
        description="Names the request in the answer, in every log and at the provider; 1 to 128 "
        "visible characters of ASCII. One is made without it.",
    ),
    Parameter(
        name="x-sixhop-deadline-ms",
        where="header",
        description="How long the caller waits, milliseconds; the answer comes before that. "
        "`x-envoy-expected-rq-timeout-ms` and `grpc-timeout` say the same, and the shortest "
        "counts. 30 s without any.",
        kind=Annotated[int, Field(ge=0, le=MAX_DEADLINE_MS, examples=[30_000])],
    ),
    Parameter(
        name="x-sixhop-criticality",
        where="header",
        description="How important the request is under load.",
        kind=Literal["CRITICAL_PLUS", "CRITICAL", "SHEDDABLE_PLUS", "SHEDDABLE"],
    ),
    Parameter(
        name="traceparent",
        where="header",
        description="The trace that the request belongs to, as W3C writes it.",
    ),
)
"""What every endpoint takes that is answered by a call to the suite."""
CALL_HEADERS = {
    "x-sixhop-run-id": "Names the run, as the logs do.",
    "x-sixhop-hops": "What each hop was given, used and had left, milliseconds.",
}
"""What every answer of such an endpoint has."""
CALL_ERRORS = (400, 401, 403, 404, 409, 429, 500, 502, 503, 504)
"""What a call to the suite can come to."""
BODY_ERRORS = (400, 408, 413, 415)
"""What is wrong with bodies."""
