"""Writes to one client byte by byte, and ends its connection in any way."""

import asyncio
import socket
import struct
from collections.abc import Mapping
from http import HTTPStatus

from services.runtime.clock import Clock

LAST_CHUNK = b"0\r\n\r\n"
OPEN_CHUNK = b"ffff\r\n"
"""Announces more bytes than will come."""


class Wire:
    """Is the way back to one client."""

    def __init__(
        self, writer: asyncio.StreamWriter, clock: Clock, *, write_timeout_s: float
    ) -> None:
        """Take where to write, and how long a client may read nothing."""
        self._writer = writer
        self._clock = clock
        self._write_timeout_s = write_timeout_s
        self.gone = False
        """Whether the client has left; what is written then goes nowhere."""
        self.stuck = False
        """Whether the client had read nothing for too long."""
        self.keep_alive = True
        """Whether the connection may serve another request."""
        self.begun = False
        """Whether the head was sent."""
        self._chunked = False

    async def send(self, data: bytes) -> None:
        """Write bytes; a client that does not read is waited for, and reset in the end."""
        if self.gone:
            return
        self._writer.write(data)
        if self._writer.transport.get_write_buffer_size() == 0:
            return
        try:
            async with asyncio.timeout(self._write_timeout_s):
                await self._writer.drain()
        except TimeoutError:
            self.stuck = True
            self.reset()
        except ConnectionError:
            self.gone = True

    async def head(
        self,
        status: int,
        headers: Mapping[str, str],
        *,
        length: int | None = None,
        chunked: bool = True,
        pause_s: float = 0.0,
    ) -> None:
        """Write the status and the headers.

        Args:
            status: the status.
            headers: more headers.
            length: of the body; None frames it in chunks, or ends it by FIN.
            chunked: whether HTTP chunks frame a body without a length.
            pause_s: the pause after each byte.
        """
        self.begun = True
        lines = [f"HTTP/1.1 {status} {_phrase(status)}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        self._chunked = length is None and chunked
        if length is not None:
            lines.append(f"content-length: {length}")
        elif chunked:
            lines.append("transfer-encoding: chunked")
        else:
            lines.append("connection: close")
            self.keep_alive = False
        data = "\r\n".join([*lines, "", ""]).encode("utf-8")
        if pause_s <= 0:
            await self.send(data)
            return
        for i in range(len(data)):
            await self.send(data[i : i + 1])
            await self._clock.sleep(pause_s)

    async def body(self, pieces: list[bytes], pause_s: float = 0.0) -> None:
        """Write pieces of the body, each by itself, with a pause between two."""
        for number, piece in enumerate(pieces):
            if number:
                await self._clock.sleep(pause_s)
            await self.send(b"%x\r\n%s\r\n" % (len(piece), piece) if self._chunked else piece)

    async def cut_chunk(self, data: bytes) -> None:
        """Write the beginning of a chunk that never ends."""
        await self.send((OPEN_CHUNK if self._chunked else b"") + data)

    async def end(self) -> None:
        """End the body."""
        if self._chunked:
            await self.send(LAST_CHUNK)

    def close(self) -> None:
        """End the connection by FIN."""
        self.keep_alive = False
        self._writer.transport.close()

    def reset(self) -> None:
        """End the connection by RST."""
        self.keep_alive = False
        # A linger time of zero makes the kernel answer with RST instead of FIN.
        linger = struct.pack("ii", 1, 0)
        sock = self._writer.get_extra_info("socket")
        if sock is not None and not self._writer.transport.is_closing():
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self._writer.transport.abort()


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Overloaded"
