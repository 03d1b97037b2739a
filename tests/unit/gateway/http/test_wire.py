"""Tests that a connection over the limit is told so as every other refusal is."""

import asyncio
from typing import Any

import orjson
import pytest
import uvicorn
from uvicorn.server import ServerState

from gateway.http.app import OPERATIONS
from gateway.http.wire import HEALTH_PATHS, MAX_HEAD_BYTES, BoundedProtocol, bounded
from tests.logged import logged
from tests.requirements import requirement
from tests.waiting import until

ASKED = b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n"


class Wire(asyncio.Transport):
    """Is a connection whose other side is the test."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.ended = False

    def write(self, data: Any) -> None:
        self.written += bytes(data)

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def write_eof(self) -> None:
        self.ended = True

    def is_closing(self) -> bool:
        return False

    def close(self) -> None:
        self.ended = True

    def abort(self) -> None:
        self.ended = True


class Slow:
    """Answers each request once it may, and counts those that it was given."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.begun_count = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        self.begun_count += 1
        await self.go.wait()
        headers = [(b"content-length", b"2")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"ok", "more_body": False})


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


@requirement("http:drain")
def test_health_is_all_that_a_closed_door_tells() -> None:
    told = {each.path.encode() for each in OPERATIONS if each.tag == "health"}

    assert told == HEALTH_PATHS


def open_connection(app: Any, kind: type[BoundedProtocol]) -> tuple[BoundedProtocol, Wire]:
    """Return a connection to a door, and its other side."""
    config = uvicorn.Config(app, log_config=None)
    config.load()
    connection, wire = kind(config, ServerState(), {}), Wire()
    connection.connection_made(wire)
    return connection, wire


@requirement("http:drain")
@pytest.mark.parametrize("asked_count", [1, 2], ids=["one", "pipelined"])
async def test_a_door_that_closes_ends_a_connection_after_the_answer_under_way(
    asked_count: int,
) -> None:
    slow, kind = Slow(), bounded(60.0, 9)
    connection, wire = open_connection(slow, kind)
    connection.data_received(ASKED * asked_count)
    await until(lambda: slow.begun_count == 1)

    kind.closed = True
    connection.end_after_answer()
    slow.go.set()
    await until(lambda: wire.ended)
    connection.connection_lost(None)

    assert wire.written.count(b"HTTP/1.1 ") == 1
    assert wire.written.endswith(b"\r\n\r\nok")
    # Of two, the one that the server could still speak to had not begun.
    assert (b"\r\nconnection: close\r\n" in wire.written) == (asked_count == 1)
    assert slow.begun_count == 1


@requirement("http:drain")
async def test_a_connection_that_was_idle_when_the_door_closed_is_told_so() -> None:
    kind = bounded(60.0, 9)
    connection, wire = open_connection(no_app, kind)

    kind.closed = True
    connection.end_after_answer()
    with logged():
        connection.data_received(b"POST /v1/runs HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n")
    connection.connection_lost(None)

    head, _, body = wire.written.partition(b"\r\n\r\n")
    error = orjson.loads(body)["error"]
    assert head.startswith(b"HTTP/1.1 503 ")
    assert b"connection: close" in head
    assert (error["reason"], error["cause"]) == ("LOAD_SHED", "draining")
    assert wire.ended


@requirement("http:bounded-head")
@pytest.mark.parametrize("sent", [b"\r\n", b"GET /live", b"\r\n\r\nGET"])
async def test_no_connection_is_held_by_the_beginning_of_a_next_request(sent: bytes) -> None:
    answering = Slow()
    answering.go.set()
    connection, wire = open_connection(answering, bounded(0.05, 9))
    connection.data_received(ASKED)
    await until(lambda: wire.written.endswith(b"\r\n\r\nok"))

    with logged():
        connection.data_received(sent)
        await until(lambda: wire.ended)
    connection.connection_lost(None)

    assert b"HTTP/1.1 408 " in wire.written


@requirement("http:bounded-head")
async def test_a_large_body_is_no_part_of_the_head_that_comes_with_its_end() -> None:
    answering = Slow()
    answering.go.set()
    connection, wire = open_connection(answering, bounded(60.0, 9))
    body = b"x" * (MAX_HEAD_BYTES + 1)
    head = b"POST /v1/runs HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(body)

    connection.data_received(head + body + ASKED[:10])
    connection.data_received(ASKED[10:])
    await until(lambda: wire.written.count(b"\r\n\r\nok") == 2)
    ended = wire.ended
    connection.connection_lost(None)

    assert not ended


@requirement("http:bounded-body")
async def test_a_connection_tells_whether_more_of_a_body_comes() -> None:
    slow = Slow()
    connection, _ = open_connection(slow, bounded(60.0, 9))
    head = b"POST /v1/runs HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\r\n"

    told = []
    for part in (head + b"ab", b"cd"):
        connection.data_received(part)
        told.append(connection.body_comes())
    slow.go.set()
    connection.connection_lost(None)

    assert told == [True, False]
