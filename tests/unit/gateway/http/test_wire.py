"""Tests that a connection over the limit is told so as every other refusal is."""

import asyncio
from typing import Any

import orjson
import uvicorn
from uvicorn.server import ServerState

from gateway.http.wire import bounded
from tests.logged import logged
from tests.requirements import requirement

ASKED = b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n"


class Wire(asyncio.Transport):
    """Is a connection whose other side is the test."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.ended = False

    def write(self, data: Any) -> None:
        self.written += bytes(data)

    def write_eof(self) -> None:
        self.ended = True

    def is_closing(self) -> bool:
        return False

    def close(self) -> None:
        self.ended = True

    def abort(self) -> None:
        self.ended = True


async def no_app(scope: Any, receive: Any, send: Any) -> None:
    """Answer nothing: nobody is to come here."""
    raise AssertionError


@requirement("http:every-answer-is-named")
async def test_a_connection_over_the_limit_is_refused_with_a_name_and_a_time() -> None:
    config = uvicorn.Config(no_app, log_config=None)
    config.load()
    state, kind = ServerState(), bounded(60.0, 1)
    first, second = (kind(config, state, {}) for _ in range(2))
    refused = Wire()
    with logged() as log:
        first.connection_made(Wire())
        second.connection_made(refused)
        second.data_received(ASKED)

    head, _, body = refused.written.partition(b"\r\n\r\n")
    error = orjson.loads(body)["error"]
    (line,) = log.lines()
    for each in (first, second):
        each.connection_lost(None)
    assert head.startswith(b"HTTP/1.1 503 ")
    assert f"x-request-id: {error['request_id']}".encode() in head
    assert b"retry-after: 1\r\n" in head
    assert b"x-should-retry: true\r\n" in head
    assert (error["reason"], error["cause"]) == ("LOAD_SHED", "connections")
    assert (line["event"], line["request_id"]) == ("call_failed", error["request_id"])
    assert refused.ended
