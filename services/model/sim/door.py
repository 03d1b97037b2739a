"""Reads requests from a connection, and tells at once when its client leaves."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, cast

MAX_HEAD_BYTES = 64 * 1024
MAX_BODY_BYTES = 64 * 1024 * 1024
"""Far above the longest prompt of the largest window."""
BODY_TIMEOUT_S = 60.0
"""How long a request may take to come."""


class BadHttpError(Exception):
    """Refuses what is no HTTP request; says the status and why."""

    def __init__(self, status: int, message: str) -> None:
        """Take what is answered."""
        super().__init__(message)
        self.status = status
        self.message = message


@dataclass(frozen=True, slots=True)
class Request:
    """Holds one HTTP request."""

    method: str
    target: str
    headers: Mapping[str, str]
    """By their names in lower case."""
    body: bytes


class Service(Protocol):
    """Serves connections."""

    def opened(self, door: "Door") -> None:
        """Take a new connection, and begin to serve it."""
        ...

    def left(self, door: "Door") -> None:
        """Note that the client has left."""
        ...


class Door(asyncio.StreamReaderProtocol):
    """Is one connection."""

    def __init__(self, service: Service, *, steering: bool) -> None:
        """Take who serves it, and whether it came by the port that only steers."""
        self.steering = steering
        # Kept here, because the protocol keeps only a weak reference.
        self.reader = asyncio.StreamReader(limit=MAX_HEAD_BYTES)
        super().__init__(self.reader)
        self._service = service
        self.writer: asyncio.StreamWriter

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to serve."""
        super().connection_made(transport)
        # Not asked by isinstance: the transports of uvloop are of no class of asyncio's.
        writable = cast(asyncio.Transport, transport)
        loop = asyncio.get_running_loop()
        self.writer = asyncio.StreamWriter(writable, self, self.reader, loop)
        self._service.opened(self)

    def eof_received(self) -> bool:
        """Take a client that will send no more for one that has left."""
        super().eof_received()
        self._service.left(self)
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that the client has left, or that we have closed."""
        super().connection_lost(exc)
        self._service.left(self)


async def read_request(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, idle_timeout_s: float
) -> Request | None:
    """Return the next request; None when the client sends no more, or not soon enough.

    Raises:
        BadHttpError: what came is no request.
    """
    try:
        async with asyncio.timeout(idle_timeout_s):
            head = await reader.readuntil(b"\r\n\r\n")
    except (TimeoutError, asyncio.IncompleteReadError, ConnectionError):
        return None
    except asyncio.LimitOverrunError:
        raise BadHttpError(431, f"the head is longer than {MAX_HEAD_BYTES} bytes") from None
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    words = first.split(" ")
    if len(words) != 3:
        raise BadHttpError(400, "the first line must be like: POST /v1/chat/completions HTTP/1.1")
    headers = {
        name.strip().lower(): value.strip()
        for name, _, value in (line.partition(":") for line in lines)
    }
    if headers.get("expect", "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            body = await _read_body(reader, headers)
    except (TimeoutError, asyncio.IncompleteReadError, ConnectionError):
        return None
    return Request(words[0], words[1], headers, body)


async def _read_body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    if "chunked" in headers.get("transfer-encoding", "").lower():
        return await _read_chunks(reader)
    text = headers.get("content-length", "0")
    if not text.isdecimal():
        raise BadHttpError(400, "Content-Length must be a number")
    if int(text) > MAX_BODY_BYTES:
        raise BadHttpError(413, f"the body is longer than {MAX_BODY_BYTES} bytes")
    return await reader.readexactly(int(text))


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    body = bytearray()
    while True:
        line = await reader.readuntil(b"\r\n")
        try:
            size = int(line.partition(b";")[0], 16)
        except ValueError:
            raise BadHttpError(400, "the size of a chunk is no number") from None
        if size < 0 or len(body) + size > MAX_BODY_BYTES:
            raise BadHttpError(413, f"the body is longer than {MAX_BODY_BYTES} bytes")
        body += (await reader.readexactly(size + 2))[:-2]
        if size == 0:
            return bytes(body)
