"""Bounds what one connection may take before its request is known."""

import logging
import os
from asyncio import Transport
from asyncio.events import TimerHandle
from collections.abc import Callable
from itertools import chain
from typing import cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from gateway.http.body import BODY_COMES
from gateway.http.failing import failure_of
from gateway.http.gathering import GATHER, Gathering
from gateway.http.leaving import ON_LEAVE
from gateway.http.operation import JSON
from gateway.http.sse import ABORT
from services.runtime.errors import InvalidArgumentError, LoadShedError, SixhopError
from services.runtime.identity import REQUEST_ID_KEY, well_formed
from services.runtime.telemetry import HTTP_SERVER_SAYS, get_logger, tell_refused

MAX_HEAD_BYTES = 64 * 1024
"""The most that a request line and its headers may have; proxies add some kilobytes."""
MAX_PIPELINED = 16
"""How many requests of one connection may wait for the answer of the one before."""
LINGER_S = 1.0
"""How long a client that was answered early may go on sending before its connection is cut."""

HEALTH_PATHS = frozenset({b"/livez", b"/readyz", b"/v1/health", b"/metrics"})
"""What a door that is closed answers still."""

_TOO_LARGE = ("431 Request Header Fields Too Large", "the headers are larger than 64 KiB")
_TOLD = "Invalid HTTP request received."
"""What the server says before the protocol refuses a request, which is logged by that."""
_TOO_SLOW = ("408 Request Timeout", "the headers did not come in time")
_BUSY = "503 Service Unavailable"
_RETRY_S = 1.0


class BoundedProtocol(HttpToolsProtocol):
    """Is uvicorn's, with a limit on the size of a request's head and on the time for it.

    uvicorn waits for ever for a head that comes byte by byte, and keeps all of it.
    """

    head_timeout_s = 10.0
    """How long a client may take for a head, from its connection or its first byte, seconds."""
    max_connections = 4096
    """How many connections are served; others are refused."""
    closed = False
    """Whether no new work is taken, by any connection; health is told all the same."""
    _refused = False
    _in_body = False
    _unparsed_bytes = 0
    _body_bytes = 0
    """Of the read that is under way."""
    _in_head = True
    _head_timer: TimerHandle | None = None
    _on_leave: Callable[[], None] | None = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        self._gathering = Gathering(transport, self.loop)
        super().connection_made(cast(Transport, self._gathering))
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._stop_timer()
        super().connection_lost(exc)
        if self._on_leave is not None:
            self._on_leave()

    def data_received(self, data: bytes) -> None:
        """Take more of a request, unless its head is too large."""
        if self._refused:
            return
        self._body_bytes = 0
        super().data_received(data)
        if self._in_head:
            # A part of it that has not ended yet is held by the parser, and in no count but this.
            self._unparsed_bytes += len(data) - self._body_bytes
            if self._unparsed_bytes > MAX_HEAD_BYTES:
                self._refuse(*_TOO_LARGE)
            elif self._head_timer is None and not self._refused:
                # Only now: most heads come as a whole, and need no timer.
                self._await_head()
        elif not (
            self._in_body or self._refused or self._head_timer or self.timeout_keep_alive_task
        ) and (self.cycle is None or self.cycle.response_complete):
            # Neither a request nor an answer is under way, and no timer waits: the end of a line
            # between requests stops uvicorn's, and begins no head.
            self._await_head()

    def on_message_begin(self) -> None:
        """Begin the head of a request."""
        super().on_message_begin()
        self.scope["state"] |= {
            ABORT: self.transport.abort,
            GATHER: self._gathering.gather,
            ON_LEAVE: self.tell_leaving,
            BODY_COMES: self.body_comes,
        }
        self._in_head = True

    def on_headers_complete(self) -> None:
        """End it, and begin to serve the request unless it is too large.

        Raises:
            ValueError: it is, or too many wait or are connected, or the door is closed; nothing
                that follows on this connection is read.
        """
        if self._head_timer is not None:
            self._stop_timer()
        self._in_head, self._unparsed_bytes = False, 0
        if len(self.url) + sum(map(len, chain.from_iterable(self.headers))) > MAX_HEAD_BYTES:
            self._refuse(*_TOO_LARGE)
            raise ValueError(_TOO_LARGE[1])
        if len(self.connections) > self.max_connections:
            problem = f"{self.max_connections} connections are open; come back later"
            raise self._refuse_busy(problem, "connections")
        tells_health = self.url.partition(b"?")[0] in HEALTH_PATHS
        if self.closed and not tells_health:
            raise self._refuse_busy("the gateway stops; ask another, or this one later", "draining")
        if len(self.pipeline) >= MAX_PIPELINED:
            # Each waits with kilobytes, and one read can hold thousands.
            raise ValueError("wait for answers before asking more")
        self._in_body = True
        super().on_headers_complete()
        if self.closed:
            self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        """Take a part of a body."""
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End a request."""
        self._in_body = False
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """End its answer, and the connection of whoever has still to send what it answers."""
        super().on_response_complete()
        if (self._in_body or self._refused) and not self.transport.is_closing():
            self._linger()

    def end_after_answer(self) -> None:
        """Have the answer that is under way, if any, end its connection, and say so."""
        if self.pipeline:
            # What waits for it has not begun; its client sees that no answer comes.
            self.pipeline.clear()
            self._refused = True
        elif self.cycle is not None:
            self.cycle.keep_alive = False

    def tell_leaving(self, tell: Callable[[], None] | None) -> None:
        """Call this once the client has gone, be it now; None is nobody any more."""
        self._on_leave = tell
        if tell is not None and self.transport.is_closing():
            self.loop.call_soon(tell)

    def body_comes(self) -> bool:
        """Tell whether any request has a body of which more is to come."""
        return self._in_body

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP."""
        self._refuse("400 Bad Request", msg)

    def _await_head(self) -> None:
        self._head_timer = self.loop.call_later(self.head_timeout_s, self._refuse, *_TOO_SLOW)

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _refuse(self, status: str, problem: str) -> None:
        self._refuse_by(status, InvalidArgumentError("", problem))

    def _refuse_busy(self, problem: str, cause: str) -> ValueError:
        """Refuse a request whose headers are known, and return what keeps the rest unread."""
        came = dict(self.headers).get(REQUEST_ID_KEY.encode(), b"").decode("latin-1")
        error = LoadShedError(problem, cause=cause, retry_after_s=_RETRY_S)
        self._refuse_by(_BUSY, error, came if well_formed(came) else "")
        return ValueError(problem)

    def _refuse_by(self, status: str, error: SixhopError, request_id: str = "") -> None:
        if self._refused or self.transport.is_closing():
            return
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            if not self._in_body or self.pipeline or cycle.response_started:
                # It would be said into another answer: the end of that one closes the connection.
                self._refused = True
                self._stop_timer()
                self.pipeline.clear()
                return
            # Its own body is broken, and nothing has been said; who reads it is told that it ends.
            cycle.disconnected = True
            cycle.message_event.set()
        self.transport.write(_refusal(status, error, request_id or os.urandom(16).hex()))
        self._linger()

    def _linger(self) -> None:
        """Read no more, and close; at once, with something unread, would take the answer back."""
        self._refused = True
        self._stop_timer()
        self.transport.write_eof()
        self._head_timer = self.loop.call_later(LINGER_S, self.transport.abort)


def _refusal(status: str, error: SixhopError, request_id: str) -> bytes:
    """Return the answer to what never became a request; it is told and logged like the others."""
    tell_refused(error, method="", request_id=request_id)
    failure = failure_of(error, request_id=request_id)
    content = failure.content()
    headers = {
        REQUEST_ID_KEY: request_id,
        **failure.headers,
        "content-type": JSON,
        "content-length": str(len(content)),
        "connection": "close",
    }
    lines = [f"HTTP/1.1 {status}", *(f"{name}: {text}" for name, text in headers.items()), "", ""]
    return "\r\n".join(lines).encode() + content


def bounded(head_timeout_s: float, max_connections: int) -> type[BoundedProtocol]:
    """Return the protocol with these limits."""
    limits = {"head_timeout_s": head_timeout_s, "max_connections": max_connections}
    return type("Protocol", (BoundedProtocol,), limits)


class JournalHandler(logging.Handler):
    """Writes what the HTTP server says into the log of this process."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        problem = record.getMessage()
        if problem == _TOLD:
            return
        kind = record.exc_info[0] if record.exc_info else None
        get_logger().warning(
            HTTP_SERVER_SAYS, problem=problem.strip(), error=kind.__name__ if kind else ""
        )
