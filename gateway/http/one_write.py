"""Sends the head of an answer together with the first of its body."""

from asyncio import AbstractEventLoop, Transport
from typing import Any

_HEAD = b"HTTP/1.1 "


class OneWrite:
    """Is a transport whose heads wait for what follows them in the same turn of the loop.

    uvicorn writes head and body one after the other, and every write is a call of the system that
    costs as much as all our policies.
    """

    __slots__ = ("_head", "_loop", "_transport")

    def __init__(self, transport: Transport, loop: AbstractEventLoop) -> None:
        """Take the transport that sends."""
        self._transport = transport
        self._loop = loop
        self._head = b""

    def write(self, data: bytes) -> None:
        """Send bytes in their order; a head at the end of this turn at the latest."""
        if self._head:
            head, self._head = self._head, b""
            self._transport.write(head + data)
        elif data.startswith(_HEAD):
            self._head = data
            self._loop.call_soon(self._flush)
        else:
            self._transport.write(data)

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

    def _flush(self) -> None:
        head, self._head = self._head, b""
        if head and not self._transport.is_closing():
            self._transport.write(head)
