"""Tests that every answer of the HTTP door has a name, whatever becomes of its request."""

from collections.abc import AsyncGenerator
from typing import cast

import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from gateway.http.app import make_app
from gateway.http.arriving import headers_of
from gateway.http.failing import Failure
from gateway.http.front import Front
from gateway.http.leaving import ClientLeftError
from gateway.http.operation import RawHeaders, Serve
from gateway.http.paths import Paths
from gateway.http.reception import Reception
from gateway.http.sse import EventStream, KeepAlive
from services.runtime.clock import ManualClock
from services.runtime.errors import NotFoundError, SixhopError
from services.runtime.identity import REQUEST_ID_KEY, RUN_ID_KEY, edge_identity, read_identity
from tests.logged import logged
from tests.requirements import requirement
from tests.unit.gateway.http.asgi import Answered, ask
from tests.unit.runtime.policies.samples import inbound

NO_FRONT = cast(Front, None)
"""An application with a defect: it opens onto nothing."""


class Seen:
    """Serves requests, and shows what it was given."""

    def __init__(self) -> None:
        self.headers: dict[str, str] = {}

    async def __call__(self, request: Request) -> Response:
        self.headers = headers_of(request)
        return Response()

    async def ask(self, **headers: str) -> Answered:
        """Have itself asked."""
        return await ask(served_by(self), "GET", "/", body=b"", **headers)


class Broken:
    """Is an answer that breaks in its midst."""

    def __init__(self) -> None:
        self.raw_headers: RawHeaders = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": b"a part", "more_body": True})
        raise RuntimeError("the rest is broken")


def served_by(serve: Serve) -> Reception:
    """Return the application that serves one page, in this way."""
    return Reception(NO_FRONT, Paths((), {"/": serve}))


@requirement("http:every-answer-is-named")
@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/nowhere", 404), ("PUT", "/v1/models", 405), ("GET", "/v1/health", 500)],
    ids=["no-page", "no-method", "defect"],
)
async def test_what_is_refused_has_the_name_of_its_request(
    method: str, path: str, status: int
) -> None:
    named = await ask(make_app(NO_FRONT), method, path, x_request_id="mine")
    unnamed = await ask(make_app(NO_FRONT), method, path)

    assert (named.status, named.headers["x-request-id"]) == (status, "mine")
    assert named.json["error"]["request_id"] == "mine"
    assert len(unnamed.headers["x-request-id"]) == 32
    assert unnamed.json["error"]["request_id"] == unnamed.headers["x-request-id"]


@requirement("errors:bug-withheld")
async def test_a_defect_is_logged_and_not_told() -> None:
    with logged() as log:
        answered = await ask(make_app(NO_FRONT), "GET", "/v1/health", x_request_id="mine")

    (line,) = log.lines()
    assert answered.json["error"]["reason"] == "SELF_BUG"
    assert b"without its front" not in answered.body
    assert line["event"] == "defect"
    assert "without its front" in line["traceback"]


@requirement("http:every-answer-is-named")
async def test_what_is_refused_before_it_is_a_call_is_logged_once() -> None:
    with logged() as log:
        await ask(make_app(NO_FRONT), "GET", "/nowhere", x_request_id="mine")

    (line,) = log.lines()
    assert (line["event"], line["method"], line["request_id"]) == (
        "call_failed",
        "GET /nowhere",
        "mine",
    )


@requirement("errors:bug-withheld")
async def test_a_defect_in_the_telling_of_an_error_is_told_as_one() -> None:
    async def serve(request: Request) -> Response:
        # It has become a call, and what would tell of it is not there.
        request.scope["state"]["inbound"] = inbound(1.0)
        raise NotFoundError("agent", "nobody")

    with logged() as log:
        answered = await ask(served_by(serve), "GET", "/", x_request_id="mine")

    (line,) = log.lines()
    assert (answered.status, answered.headers["x-request-id"]) == (500, "mine")
    assert "without its front" in line["traceback"]


@requirement("errors:bug-withheld")
async def test_a_stream_that_breaks_before_it_begins_is_answered_by_an_error() -> None:
    async def chunks() -> AsyncGenerator[bytes, None]:
        raise NotFoundError("agent", "x")
        yield b""

    def fail(error: SixhopError) -> Failure:
        raise RuntimeError("the telling is broken")

    async def serve(request: Request) -> EventStream:
        request.scope["state"]["on_leave"] = lambda leave: None
        keep = KeepAlive(ManualClock(), 10.0, 6.0)
        return EventStream(chunks(), keep, {}, fail, lambda failure: b"")

    with logged() as log:
        answered = await ask(served_by(serve), "GET", "/", x_request_id="mine")

    (line,) = log.lines()
    assert (answered.status, answered.headers["x-request-id"]) == (500, "mine")
    assert answered.json["error"]["code"] == "self_bug"
    assert "the telling is broken" in line["traceback"]


@requirement("errors:bug-withheld")
async def test_a_defect_in_the_midst_of_an_answer_is_logged_and_begins_no_second_one() -> None:
    async def serve(request: Request) -> Broken:
        return Broken()

    with logged() as log:
        answered = await ask(served_by(serve), "GET", "/")

    (line,) = log.lines()
    assert (answered.status, answered.body) == (200, b"a part")
    assert "is broken" in line["traceback"]


@requirement("http:cancel")
async def test_a_client_that_is_gone_is_no_defect() -> None:
    async def serve(request: Request) -> Response:
        raise ClientLeftError

    with logged() as log:
        answered = await ask(served_by(serve), "GET", "/")

    assert (answered.status, log.lines()) == (499, [])


@requirement("http:every-answer-is-named")
@pytest.mark.parametrize("came", ["", "with space", "x" * 129, "\xfc"])
async def test_a_name_that_is_none_is_made_and_counts_for_the_run(came: str) -> None:
    seen = Seen()

    answered = await seen.ask(x_request_id=came)

    made = answered.headers[REQUEST_ID_KEY]
    assert seen.headers == {REQUEST_ID_KEY: made, RUN_ID_KEY: made}
    identity = edge_identity(read_identity(seen.headers.items()))
    assert (identity.request_id, identity.run_id) == (made, made)
    assert identity.traceparent[3:35] == made


@requirement("http:every-answer-is-named")
async def test_a_run_keeps_the_name_that_it_came_with() -> None:
    seen = Seen()

    await seen.ask(x_sixhop_run_id="run", x_request_id="request")

    assert seen.headers == {RUN_ID_KEY: "run", REQUEST_ID_KEY: "request"}


@requirement("http:every-answer-is-named")
async def test_a_run_that_has_a_name_gives_it_to_its_request() -> None:
    seen = Seen()

    answered = await seen.ask(x_sixhop_run_id="run")

    assert answered.headers[REQUEST_ID_KEY] == "run"
    assert seen.headers == {RUN_ID_KEY: "run", REQUEST_ID_KEY: "run"}
