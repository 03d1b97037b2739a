"""Gives a task that runs for ever an owner."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

OWN_TASK = "background "
"""How the names of these tasks begin: they are a process's own, and no call's."""


@asynccontextmanager
async def background(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run work while the block runs; it is cancelled and has ended when the block is left."""
    task = asyncio.create_task(work, name=f"{OWN_TASK}{getattr(work, '__qualname__', '')}")
    try:
        yield
    finally:
        task.cancel()
        # Waited for and not awaited: the end of a cancelled task must not become ours.
        await asyncio.wait({task})
