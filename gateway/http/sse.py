"""Sends server-sent events, and keeps their connection alive while there is nothing to say."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing

from starlette.types import Receive, Scope, Send

from gateway.http.failing import Failure
from gateway.http.leaving import ClientLeftError, while_client_waits
from services.runtime.clock import Clock
from services.runtime.errors import SixhopError

TICK_S = 0.5
"""How often silent streams are looked after."""
SEND_LIMIT_S = 0.05
"""How long the comment of one stream may keep those of others waiting; whoever does not read has
bytes of us to read."""
COMMENT = b": keep-alive\n\n"
_HEADERS = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache, no-transform",
    # nginx would keep what is sent until its buffer is full.
    "x-accel-buffering": "no",
}


class KeepAlive:
    """Sends a comment on every stream that has been silent for so long."""

    def __init__(self, clock: Clock, after_s: float) -> None:
        """Take the clock, and a third of what the most impatient proxy allows, seconds."""
        self._clock = clock
        self._after_s = after_s
        self._streams: set[EventStream] = set()

    def now(self) -> float:
        """Return the present instant."""
        return self._clock.now()

    def add(self, stream: "EventStream") -> None:
        """Look after a stream."""
        self._streams.add(stream)

    def remove(self, stream: "EventStream") -> None:
        """Look after it no more."""
        self._streams.discard(stream)

    async def run(self) -> None:
        """Look after all streams, for ever."""
        while True:
            await self._clock.sleep(min(TICK_S, self._after_s / 2))
            due = self._clock.now() - self._after_s
            for stream in [each for each in self._streams if each.sent_at <= due]:
                await stream.keep_alive()


class EventStream:
    """Is one answer that is a stream of events. An ASGI application.

    Its headers are sent with the first event, or with the first comment when that is late: until
    then an error still has an HTTP status of its own.
    """

    def __init__(
        self,
        chunks: AsyncGenerator[bytes, None],
        keep: KeepAlive,
        headers: Mapping[str, str],
        fail: Callable[[SixhopError], Failure],
        fail_late: Callable[[Failure], bytes],
    ) -> None:
        """Take what is sent.

        Args:
            chunks: the events, in the bytes of the wire.
            keep: keeps the connection alive.
            headers: are sent before them.
            fail: translates an error that ends them.
            fail_late: writes it as an event, once the headers are gone.
        """
        self.sent_at = keep.now()
        """When something was sent last, or the stream was made."""
        self._chunks = chunks
        self._keep = keep
        self._headers = headers
        self._fail = fail
        self._fail_late = fail_late
        self._send: Send | None = None
        self._started = False
        self._sending = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send all of it, or as much as the client waits for."""
        self._send = send
        self._keep.add(self)
        try:
            async with while_client_waits(receive), aclosing(self._chunks) as chunks:
                async for chunk in chunks:
                    await self._write(chunk)
            await self._end(b"")
        except ClientLeftError:
            return
        except SixhopError as error:
            await self._end_badly(self._fail(error))
        finally:
            self._keep.remove(self)

    async def keep_alive(self) -> None:
        """Send a comment, unless something is being sent."""
        if self._sending:
            return
        try:
            async with asyncio.timeout(SEND_LIMIT_S):
                await self._write(COMMENT)
        except TimeoutError:
            self.sent_at = self._keep.now()

    async def _write(self, chunk: bytes) -> None:
        if self._send is None:
            raise RuntimeError("the stream is not being sent")
        self._sending = True
        try:
            if not self._started:
                self._started = True
                await self._start(200, {**_HEADERS, **self._headers})
            await self._send({"type": "http.response.body", "body": chunk, "more_body": True})
            self.sent_at = self._keep.now()
        finally:
            self._sending = False

    async def _start(self, status: int, headers: Mapping[str, str]) -> None:
        if self._send is None:
            raise RuntimeError("the stream is not being sent")
        pairs = [(key.encode("latin-1"), value.encode("latin-1")) for key, value in headers.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": pairs})

    async def _end(self, chunk: bytes) -> None:
        if not self._started:
            await self._write(b"")
        if self._send is not None:
            await self._send({"type": "http.response.body", "body": chunk, "more_body": False})

    async def _end_badly(self, failure: Failure) -> None:
        if self._started:
            await self._end(self._fail_late(failure))
            return
        self._started = True
        json = {"content-type": "application/json", **self._headers, **failure.headers}
        await self._start(failure.status, json)
        await self._end(failure.content())
