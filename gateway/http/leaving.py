"""Ends what is done for an HTTP client that has gone away."""

import asyncio
from collections.abc import Callable, MutableMapping
from types import TracebackType
from typing import Any

from services.runtime.errors import SelfUnavailableError

ON_LEAVE = "on_leave"
"""Where a connection leaves, in the state of a request, what takes whom to tell of its end."""


class ClientLeftError(Exception):
    """Says that nobody is there any more to answer."""


class ClientWatch:
    """Cancels a block when the client of its request is gone.

    The connection tells so: to wait for it as ASGI has it takes a task for each request, which
    costs more than all policies. Leaving the block raises `ClientLeftError` then, and
    `SelfUnavailableError` when it was cancelled by the server, which has no more time.
    """

    def __init__(self, state: MutableMapping[str, Any]) -> None:
        """Take the state of the request, as its connection has left it."""
        self._on_leave: Callable[[Callable[[], None] | None], None] = state[ON_LEAVE]
        self._working: asyncio.Task[object] | None = None
        self._left = False

    async def __aenter__(self) -> "ClientWatch":
        """Begin to watch."""
        self._working = asyncio.current_task()
        self._on_leave(self.leave)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End to watch, and tell whose cancel it was."""
        self._on_leave(None)
        # What comes after the block is nobody's to cancel.
        working, self._working = self._working, None
        if not isinstance(error, asyncio.CancelledError):
            return
        if working is not None:
            working.uncancel()
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
