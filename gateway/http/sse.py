"""Sends server-sent events, and keeps their connection alive while there is nothing to say."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing

from starlette.types import Receive, Scope, Send

from gateway.http.failing import Failure
from gateway.http.gathering import GATHER
from gateway.http.leaving import ClientLeftError, ClientWatch
from gateway.http.operation import EVENTS, JSON, RawHeaders
from services.runtime.clock import Clock
from services.runtime.errors import SelfBugError, SixhopError
from services.runtime.telemetry import tell_defect

TICK_S = 0.5
"""How often silent streams are looked after."""
SEND_LIMIT_S = 0.05
"""How long the comment of one stream may keep those of others waiting; whoever does not read has
bytes of us to read."""
ABORT = "abort"
"""Where a connection leaves, in the state of a request, what ends it at once."""
COMMENT = b": keep-alive\n\n"
_HEADERS = [
    (b"content-type", f"{EVENTS}; charset=utf-8".encode()),
    (b"cache-control", b"no-cache, no-transform"),
    # nginx would keep what is sent until its buffer is full.
    (b"x-accel-buffering", b"no"),
]


class KeepAlive:
    """Sends a comment on every stream that has been silent for so long."""

    def __init__(self, clock: Clock, after_s: float, unread_s: float) -> None:
        """Take the clock and two lengths, seconds.

        Args:
            clock: the clock.
            after_s: a third of what the most impatient proxy allows.
            unread_s: how long a client may leave unread what it was sent, once no more can be
                sent to it.
        """
        self._clock = clock
        self.now = clock.now
        """Returns the present instant; asked twice for every event."""
        self._after_s = after_s
        self._unread_s = unread_s
        self._streams: set[EventStream] = set()

    def __len__(self) -> int:
        """Return how many streams are open."""
        return len(self._streams)

    def add(self, stream: "EventStream") -> None:
        """Look after a stream."""
        self._streams.add(stream)

    def remove(self, stream: "EventStream") -> None:
        """Look after it no more."""
        self._streams.discard(stream)

    async def run(self) -> None:
        """Look after all streams, for ever."""
        while True:
            await self._clock.sleep(min(TICK_S, self._after_s / 2, self._unread_s / 2))
            now = self._clock.now()
            for stream in list(self._streams):
                if now - stream.sent_at >= self._after_s:
                    await stream.keep_alive()
                stream.refuse_slow_reader(now - self._unread_s)


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
        self.raw_headers = _encoded(headers)
        """What is sent before them, beside what every stream sends."""
        self.sent_at = keep.now()
        """When something was sent last, or the stream was made."""
        self._chunks = chunks
        self._keep = keep
        self._fail = fail
        self._fail_late = fail_late
        self._send: Send | None = None
        self._watch: ClientWatch | None = None
        self._abort: Callable[[], None] | None = None
        self.started = False
        """Whether its headers are sent."""
        self._sending_since: float | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send all of it, or as much as the client waits for."""
        self._send = send
        self._abort = scope["state"].get(ABORT)
        self._watch = ClientWatch(scope["state"])
        self._keep.add(self)
        gather: Callable[[bool], None] = scope["state"].get(GATHER, lambda begin: None)
        gather(True)
        try:
            async with self._watch, aclosing(self._chunks) as chunks:
                async for chunk in chunks:
                    await self._write(chunk)
            await self._end(b"")
        except ClientLeftError:
            return
        except SixhopError as error:
            await self._end_badly(self._fail(error))
        except Exception as error:  # the client must be told of a defect as well
            tell_defect(error)
            await self._end_badly(self._fail(SelfBugError(type(error).__name__)))
        finally:
            gather(False)
            self._keep.remove(self)

    async def keep_alive(self) -> None:
        """Send a comment, unless something is being sent."""
        if self._sending_since is not None:
            return
        try:
            async with asyncio.timeout(SEND_LIMIT_S):
                await self._write(COMMENT)
        except TimeoutError:
            self.sent_at = self._keep.now()

    def refuse_slow_reader(self, since: float) -> None:
        """End the stream of a client that has let nothing be written since an instant."""
        if self._sending_since is None or self._sending_since > since or self._watch is None:
            return
        self._watch.leave()
        # What lies in the way of its reading would keep a connection that is merely closed.
        if self._abort is not None:
            self._abort()

    async def _write(self, chunk: bytes) -> None:
        if self._send is None:
            raise RuntimeError("the stream is not being sent")
        self._sending_since = self._keep.now()
        try:
            if not self.started:
                self.started = True
                await self._start(200, [*_HEADERS, *self.raw_headers])
            await self._send({"type": "http.response.body", "body": chunk, "more_body": True})
            self.sent_at = self._keep.now()
        finally:
            self._sending_since = None

    async def _start(self, status: int, headers: RawHeaders) -> None:
        if self._send is None:
            raise RuntimeError("the stream is not being sent")
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def _end(self, chunk: bytes) -> None:
        if not self.started:
            await self._write(b"")
        if self._send is not None:
            await self._send({"type": "http.response.body", "body": chunk, "more_body": False})

    async def _end_badly(self, failure: Failure) -> None:
        if self.started:
            await self._end(self._fail_late(failure))
            return
        self.started = True
        headers = {b"content-type": JSON.encode(), **dict(self.raw_headers)}
        headers |= _encoded(failure.headers)
        await self._start(failure.status, [*headers.items()])
        await self._end(failure.content())


def _encoded(headers: Mapping[str, str]) -> RawHeaders:
    return [(name.encode("latin-1"), text.encode("latin-1")) for name, text in headers.items()]
