"""Ends what is done for an HTTP client that has gone away."""

import asyncio
from types import TracebackType

from starlette.types import Receive

from services.runtime.errors import SelfUnavailableError


class ClientLeftError(Exception):
    """Says that nobody is there any more to answer."""


class ClientWatch:
    """Cancels a block when the client of its request is gone; the request must have been read.

    Leaving the block raises `ClientLeftError` then, and `SelfUnavailableError` when it was
    cancelled by the server, which has no more time.
    """

    def __init__(self, receive: Receive) -> None:
        """Take what tells that the client has closed its connection."""
        self._receive = receive
        self._working: asyncio.Task[object] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._left = False

    async def __aenter__(self) -> "ClientWatch":
        """Begin to watch."""
        self._working = asyncio.current_task()
        self._watching = asyncio.create_task(self._watch())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End to watch, and tell whose cancel it was."""
        if self._watching is not None:
            self._watching.cancel()
        if not isinstance(error, asyncio.CancelledError):
            return
        if self._working is not None:
            self._working.uncancel()
        if self._left:
            raise ClientLeftError from None
        raise SelfUnavailableError(
            "the gateway stops and has no more time for this; ask again",
            cause="draining",
            retry_after_s=1.0,
        ) from None

    def leave(self) -> None:
        """Take the client for gone."""
        if not self._left and self._working is not None:
            self._left = True
            self._working.cancel()

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.leave()
