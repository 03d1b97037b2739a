"""Ends what is done for an HTTP client that has gone away."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.types import Receive


class ClientLeftError(Exception):
    """Says that nobody is there any more to answer."""


@asynccontextmanager
async def while_client_waits(receive: Receive) -> AsyncIterator[None]:
    """Cancel the block when the client closes its connection; its body must have been read.

    Raises:
        ClientLeftError: it did.
    """
    working = asyncio.current_task()
    if working is None:
        raise RuntimeError("a request is served by a task")
    left = False

    async def watch() -> None:
        nonlocal left
        while (await receive())["type"] != "http.disconnect":
            pass
        left = True
        working.cancel()

    watching = asyncio.create_task(watch())
    try:
        yield
    except asyncio.CancelledError:
        # One cancel is ours; another is the server's and goes on.
        if left and working.uncancel() == 0:
            raise ClientLeftError from None
        raise
    finally:
        watching.cancel()
