"""Sends in one write what comes in many: heads with their bodies, and events that come at once."""

from asyncio import AbstractEventLoop, Handle, Transport
from typing import Any

GATHER = "gather"
"""Where a connection leaves, in the state of a request, what lets writes of a stream gather."""
GATHER_S = 0.005
"""How long a write of a stream waits for more after the one before, seconds: a fast model says a
few tokens in that time, and nobody sees it."""
MAX_GATHERED_BYTES = 16 * 1024
"""So much does not wait."""
_HEAD = b"HTTP/1.1 "


class Gathering:
    """Is a transport in which small writes wait for those that follow at once.

    Every write is a call of the system, that costs as much as all our policies. uvicorn writes the
    head of an answer and its body apart, and each event of a stream.
    """

    __slots__ = (
        "_flushing",
        "_free_at",
        "_gathers",
        "_loop",
        "_transport",
        "_waiting",
        "abort",
        "is_closing",
    )

    def __init__(self, transport: Transport, loop: AbstractEventLoop) -> None:
        """Take the transport that sends; only heads wait, for what is written in the same turn."""
        self._transport = transport
        # Every answer asks for these of the transport.
        self.abort = transport.abort
        self.is_closing = transport.is_closing
        self._loop = loop
        self._waiting = b""
        self._flushing: Handle | None = None
        self._gathers = False
        self._free_at = 0.0
        """Before this instant of the loop a write of a stream waits."""

    def gather(self, begin: bool) -> None:
        """Let writes gather from now on, or no longer: then what waits is sent."""
        self._gathers = begin
        if not begin:
            self._flush()

    def write(self, data: bytes) -> None:
        """Send bytes in their order, at once or soon."""
        if self._waiting:
            self._waiting += data
            if not self._gathers or len(self._waiting) >= MAX_GATHERED_BYTES:
                self._flush()
        elif data.startswith(_HEAD):
            self._waiting = data
            self._flushing = self._loop.call_soon(self._flush)
        elif self._gathers and self._free_at > self._loop.time():
            self._waiting = data
            self._flushing = self._loop.call_at(self._free_at, self._flush)
        else:
            self._send(data)

    def write_eof(self) -> None:
        """Send what waits, and say that nothing follows."""
        self._flush()
        self._transport.write_eof()

    def close(self) -> None:
        """Send what waits, and close."""
        self._flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        """Be the transport in all else."""
        return getattr(self._transport, name)

    def _send(self, data: bytes) -> None:
        self._transport.write(data)
        if self._gathers:
            self._free_at = self._loop.time() + GATHER_S

    def _flush(self) -> None:
        if self._flushing is not None:
            self._flushing.cancel()
            self._flushing = None
        waiting, self._waiting = self._waiting, b""
        if waiting and not self._transport.is_closing():
            self._send(waiting)
