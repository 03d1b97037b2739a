"""Bounds what one connection may take before its request is known."""

import logging
from asyncio import Transport
from asyncio.events import TimerHandle

import orjson
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from gateway.http.sse import ABORT
from services.runtime.telemetry import HTTP_SERVER_SAYS, get_logger

MAX_HEAD_BYTES = 64 * 1024
"""The most that a request line and its headers may have; proxies add some kilobytes."""

_TOO_LARGE = (431, "Request Header Fields Too Large", "the headers are larger than 64 KiB")
_TOO_SLOW = (408, "Request Timeout", "the headers did not come in time")


class BoundedProtocol(HttpToolsProtocol):
    """Is uvicorn's, with a limit on the size of a request's head and on the time for it.

    uvicorn waits for ever for a head that comes byte by byte, and keeps all of it.
    """

    head_timeout_s = 10.0
    """How long a client may take for a head, from its connection or its first byte, seconds."""
    _head_bytes = 0
    _in_head = True
    _head_timer: TimerHandle | None = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take more of a request, unless its head is too large."""
        if self.transport.is_closing():
            return
        if self._in_head:
            self._head_bytes += len(data)
        super().data_received(data)
        # A body that came with the head was counted with it; the head is over then.
        if self._in_head and self._head_bytes > MAX_HEAD_BYTES:
            self._refuse(*_TOO_LARGE)

    def on_message_begin(self) -> None:
        """Begin the head of a request."""
        super().on_message_begin()
        self.scope["state"][ABORT] = self.transport.abort
        self._in_head = True
        if self._head_timer is None:
            self._await_head()

    def on_headers_complete(self) -> None:
        """End it."""
        self._stop_timer()
        self._in_head, self._head_bytes = False, 0
        super().on_headers_complete()

    def _await_head(self) -> None:
        self._head_timer = self.loop.call_later(self.head_timeout_s, self._refuse, *_TOO_SLOW)

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _refuse(self, status: int, phrase: str, problem: str) -> None:
        self._stop_timer()
        if self.transport.is_closing():
            return
        # Into an answer that is being sent nothing can be said.
        if self.cycle is None or self.cycle.response_complete:
            content = orjson.dumps({"error": {"message": problem, "type": "invalid_request_error"}})
            head = (
                f"HTTP/1.1 {status} {phrase}\r\ncontent-type: application/json\r\n"
                f"content-length: {len(content)}\r\nconnection: close\r\n\r\n"
            )
            self.transport.write(head.encode() + content)
        self.transport.close()


def bounded(head_timeout_s: float) -> type[BoundedProtocol]:
    """Return the protocol with this limit."""
    return type("Protocol", (BoundedProtocol,), {"head_timeout_s": head_timeout_s})


class JournalHandler(logging.Handler):
    """Writes what the HTTP server says into the log of this process."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        problem = record.getMessage()
        kind = record.exc_info[0] if record.exc_info else None
        get_logger().warning(
            HTTP_SERVER_SAYS, problem=problem.strip(), error=kind.__name__ if kind else ""
        )
