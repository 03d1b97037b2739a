"""Tests who serves which path and method."""

from typing import cast

import pytest
from starlette.requests import Request
from starlette.responses import Response

from gateway.http.app import make_app
from gateway.http.front import Front
from gateway.http.paths import Paths
from gateway.http.reception import Reception
from tests.logged import logged
from tests.requirements import requirement
from tests.unit.gateway.http.asgi import ask

NO_FRONT = cast(Front, None)


async def show(request: Request) -> Response:
    """Answer what the path names."""
    return Response("/".join(request.path_params.values()))


APP = Reception(NO_FRONT, Paths((), {"/": show, "/a/{one}": show, "/a/{one}/{two}": show}))


@requirement("http:paths")
@pytest.mark.parametrize(
    ("path", "named"), [("/", b""), ("/a/x", b"x"), ("/a/x/y", b"x/y"), ("/a/{one}", b"{one}")]
)
async def test_what_a_path_names_is_told_to_who_serves_it(path: str, named: bytes) -> None:
    answered = await ask(APP, "GET", path)

    assert (answered.status, answered.body) == (200, named)


@requirement("http:paths")
@pytest.mark.parametrize("path", ["/livez", "/page/index.html"])
async def test_who_asks_for_the_head_alone_is_answered_as_who_asks_for_all(path: str) -> None:
    app = make_app(NO_FRONT)

    head, whole = await ask(app, "HEAD", path), await ask(app, "GET", path)

    assert head.status == 200
    # What is sent of it is the server's business.
    assert {**head.headers, "x-request-id": ""} == {**whole.headers, "x-request-id": ""}


@requirement("http:paths")
@pytest.mark.parametrize("method", ["GET", "PUT"])
@pytest.mark.parametrize("path", ["/v1/models", "/v1/models/x", "/v1/runs/1/events"])
async def test_a_slash_too_many_leads_to_the_right_place(path: str, method: str) -> None:
    answered = await ask(make_app(NO_FRONT), method, f"{path}/", host="door.example")

    assert answered.status == 307
    assert answered.headers["location"] == f"http://door.example{path}"


@requirement("http:paths")
@pytest.mark.parametrize("path", ["/nowhere", "/nowhere/", "/v1/models/x/y", "//", "*"])
async def test_what_is_nowhere_is_not_found(path: str) -> None:
    with logged() as log:
        answered = await ask(make_app(NO_FRONT), "GET", path)

    (line,) = log.lines()
    assert (answered.status, line["method"]) == (404, f"GET {path}")


@requirement("http:paths")
@pytest.mark.parametrize(
    ("path", "allowed"), [("/livez", {"GET", "HEAD"}), ("/v1/chat/completions", {"POST"})]
)
async def test_a_wrong_method_is_told_the_right_ones(path: str, allowed: set[str]) -> None:
    answered = await ask(make_app(NO_FRONT), "PATCH", path)

    assert answered.status == 405
    assert set(answered.headers["allow"].split(", ")) == allowed
    assert answered.json["error"]["message"].endswith("see /openapi.json")
