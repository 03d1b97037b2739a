"""Ends a step so that those after it have their time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from services.domain.wording import took_too_long
from services.runtime.call import Inbound
from services.runtime.errors import BudgetTooSmallError


class CutOffError(BudgetTooSmallError):
    """Says that a step was ended so that those after it have their time."""

    def __init__(self, limit_s: float, language: str) -> None:
        """Take how long the step was given, and the language of the run."""
        super().__init__(took_too_long(limit_s, language), cause="reserve")
        self.limit_s = limit_s


@asynccontextmanager
async def cut_off_after(
    limit_s: float | None, inbound: Inbound, language: str
) -> AsyncIterator[None]:
    """Give the block so long.

    Args:
        limit_s: how long it may take, in seconds; None for as long as it likes.
        inbound: the call that the run serves.
        language: the language of the run.

    Raises:
        CutOffError: it was not done by then.
    """
    limit = asyncio.timeout(limit_s)
    try:
        async with limit:
            yield
    except TimeoutError:
        if limit_s is None or not limit.expired():
            raise
        # We stopped waiting by ourselves: nobody is to be blamed for what comes later.
        inbound.cut_wait = ""
        raise CutOffError(limit_s, language) from None
