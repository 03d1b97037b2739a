"""Wakes one task that waits for the next word of another; it costs a future and a timer."""

import asyncio


class Doorbell:
    """Is rung by one task and waited at by one other. A ring that nobody waits for is lost."""

    __slots__ = ("_waiter",)

    def __init__(self) -> None:
        """Wait for nobody yet."""
        self._waiter: asyncio.Future[bool] | None = None

    def ring(self) -> None:
        """Wake whoever waits."""
        self._answer(True)

    async def wait(self, timeout_s: float) -> bool:
        """Wait until it rings; return False when the time was over first."""
        loop = asyncio.get_running_loop()
        self._waiter = loop.create_future()
        timer = loop.call_later(timeout_s, self._answer, False)
        try:
            return await self._waiter
        finally:
            timer.cancel()

    def _answer(self, rung: bool) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(rung)
