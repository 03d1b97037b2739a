"""Listens on a port, stops to listen for a while, and gets the same port back."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from services.runtime.clock import Clock

RETRY_S = 0.05
"""How soon a listener looks again whether it may listen, or whether its port is free."""
STOP_TIMEOUT_S = 5.0


class Listener:
    """Is one port."""

    def __init__(
        self,
        host: str,
        serve: Callable[[], asyncio.Protocol],
        clock: Clock,
        *,
        refusing: Callable[[], bool] = lambda: False,
    ) -> None:
        """Take where to listen, what serves a connection, and what tells whether to refuse them."""
        self.port = 0
        """The port, once it was opened."""
        self._host = host
        self._serve = serve
        self._clock = clock
        self._refusing = refusing
        self._server: asyncio.Server | None = None
        self._opener: asyncio.Task[None] | None = None
        self._stopping = False

    async def open(self, port: int) -> None:
        """Listen; 0 takes a free port.

        Raises:
            OSError: the port cannot be had.
        """
        self._server = await self._listen(port)
        self.port = self._server.sockets[0].getsockname()[1]

    def follow(self) -> None:
        """Listen or not, as is asked for now; what was refused comes back by itself."""
        if self._refusing():
            self._close()
        if self._server is None and self.port and self._opener is None:
            self._opener = asyncio.create_task(self._open_again())

    async def stop(self) -> None:
        """Listen no more."""
        self._stopping = True
        self._close()
        if self._opener is not None:
            # Not cancelled: a cancel in the middle of listening would leave the socket open.
            await asyncio.wait((self._opener,), timeout=STOP_TIMEOUT_S)
        self._close()

    def _close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    async def _open_again(self) -> None:
        try:
            while self._server is None and not self._stopping:
                if not self._refusing():
                    # Somebody else may have taken the port meanwhile; it is waited for.
                    with suppress(OSError):
                        self._server = await self._listen(self.port)
                if self._server is None:
                    await self._clock.sleep(RETRY_S)
        finally:
            self._opener = None

    async def _listen(self, port: int) -> asyncio.Server:
        loop = asyncio.get_running_loop()
        return await loop.create_server(self._serve, self._host, port)
