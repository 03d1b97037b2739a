"""Waits for what nobody announces."""

import asyncio
from collections.abc import Callable

BOUND_S = 5.0
POLL_S = 0.005


async def until(condition: Callable[[], bool], *, timeout_s: float = BOUND_S) -> None:
    """Wait until a condition holds.

    Raises:
        TimeoutError: it did not come true in time.
    """
    async with asyncio.timeout(timeout_s):
        while not condition():  # noqa: ASYNC110  # no event tells of it
            await asyncio.sleep(POLL_S)
