"""Tests how streams over HTTP begin, stay alive and end."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any

import orjson
import pytest_asyncio
from starlette.types import Message

from gateway.http.failing import Failure, failure_of
from gateway.http.sse import COMMENT, EventStream, KeepAlive
from services.runtime.clock import ManualClock
from services.runtime.errors import CircuitOpenError, SixhopError
from tests.requirements import requirement

AFTER_S = 10.0
UNREAD_S = 6.0


class Client:
    """Reads one stream, as long as it wants to."""

    def __init__(self, clock: ManualClock) -> None:
        """Take the clock that keeps streams alive."""
        self.clock = clock
        self.keep = KeepAlive(clock, AFTER_S, UNREAD_S)
        self.sent: list[Message] = []
        self.reads = asyncio.Event()
        self.reads.set()
        self.aborted = False
        self._tell: Callable[[], None] | None = None
        self._gives: asyncio.Queue[bytes | SixhopError | None] = asyncio.Queue()
        self._serving: asyncio.Task[None] | None = None

    @property
    def bodies(self) -> list[bytes]:
        """Return what came after the headers."""
        return [each["body"] for each in self.sent[1:]]

    def ask(self) -> None:
        """Begin to read."""
        stream = EventStream(self._chunks(), self.keep, {"x-a": "b"}, failure_of, _late)
        scope: dict[str, Any] = {"state": {"abort": self._abort, "on_leave": self._on_leave}}
        self._serving = asyncio.create_task(stream(scope, self._receive, self._send))

    async def give(self, what: bytes | SixhopError | None) -> None:
        """Let the run say something, fail, or end; return when it has been dealt with."""
        await self._gives.put(what)
        await settled()

    async def advance(self, length_s: float) -> None:
        """Let time pass, tick by tick."""
        for _ in range(round(length_s / 0.5)):
            self.clock.advance(0.5)
            await settled()

    def leave(self) -> None:
        """Close the connection."""
        if self._tell is not None:
            self._tell()

    async def ended(self) -> None:
        """Wait for the end of the stream."""
        assert self._serving is not None
        await asyncio.wait_for(self._serving, 5)

    def _abort(self) -> None:
        self.aborted = True

    async def _chunks(self) -> AsyncGenerator[bytes, None]:
        while (given := await self._gives.get()) is not None:
            if isinstance(given, SixhopError):
                raise given
            yield given

    def _on_leave(self, tell: Callable[[], None] | None) -> None:
        self._tell = tell

    async def _receive(self) -> Message:
        raise AssertionError("the request has been read")

    async def _send(self, message: Message) -> None:
        await self.reads.wait()
        self.sent.append(message)


async def settled() -> None:
    """Let every task that can go on do so."""
    for _ in range(20):
        await asyncio.sleep(0)


def _late(failure: Failure) -> bytes:
    return orjson.dumps(failure.body)


@pytest_asyncio.fixture
async def client() -> AsyncIterator[Client]:
    """Return a client whose streams are kept alive."""
    found = Client(ManualClock())
    keeping = asyncio.create_task(found.keep.run())
    await settled()
    yield found
    keeping.cancel()
    await asyncio.wait({keeping})


@requirement("http:keep-alive")
async def test_a_stream_that_says_nothing_sends_its_headers_and_a_comment_in_time(
    client: Client,
) -> None:
    client.ask()

    await client.advance(AFTER_S - 0.5)
    before = list(client.sent)
    await client.advance(1.0)
    client.leave()
    await client.ended()

    assert before == []
    assert client.sent[0]["status"] == 200
    assert client.bodies == [COMMENT]


@requirement("http:keep-alive")
async def test_comments_go_on_between_events_and_only_where_nothing_else_is_said(
    client: Client,
) -> None:
    client.ask()
    await client.give(b"one")
    await client.advance(AFTER_S - 1.0)
    await client.give(b"two")
    await client.advance(AFTER_S - 1.0)
    quiet = list(client.bodies)
    await client.advance(2.0)
    await client.advance(AFTER_S)
    await client.give(None)
    await client.ended()

    assert quiet == [b"one", b"two"]
    assert client.bodies == [b"one", b"two", COMMENT, COMMENT, b""]
    assert len(client.keep) == 0


@requirement("http:stream-errors")
async def test_an_error_before_anything_was_sent_has_its_status(client: Client) -> None:
    client.ask()
    await client.give(CircuitOpenError("the model is sick"))
    await client.ended()

    assert client.sent[0]["status"] == 503
    assert orjson.loads(client.bodies[0])["error"]["reason"] == "CIRCUIT_OPEN"


@requirement("http:stream-errors")
async def test_an_error_after_a_comment_is_told_in_the_stream(client: Client) -> None:
    client.ask()
    await client.advance(AFTER_S + 0.5)
    await client.give(CircuitOpenError("the model is sick"))
    await client.ended()

    assert client.sent[0]["status"] == 200
    assert orjson.loads(client.bodies[-1])["error"]["reason"] == "CIRCUIT_OPEN"
    assert client.sent[-1]["more_body"] is False


@requirement("http:slow-reader")
async def test_who_reads_nothing_is_let_go_and_who_reads_slowly_is_not(client: Client) -> None:
    client.ask()
    await client.give(b"one")
    client.reads.clear()
    await client.give(b"two")
    await client.advance(UNREAD_S - 1.0)
    client.reads.set()
    await settled()
    client.reads.clear()
    await client.give(b"three")
    await client.advance(UNREAD_S - 1.0)
    spared = client.aborted
    await client.advance(2.0)
    await client.ended()

    assert not spared
    assert client.aborted
    assert client.bodies == [b"one", b"two"]
