"""Runs blocking work in a bounded number of threads and gets each thread back."""

import asyncio
import traceback
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from services.runtime.background import OWN_TASK
from services.runtime.errors import BudgetTooSmallError, SelfTimeoutError
from services.runtime.telemetry import DEFECT, WORKER_NOT_STOPPED, get_logger

T = TypeVar("T")

# The statement may not have begun when the first interrupt arrives, so it is repeated.
INTERRUPT_COUNT = 8
"""How often the work is interrupted while its caller waits for it."""


class WorkerPool:
    """Owns the threads of one process.

    A caller that is cancelled or runs out of time leaves only after its thread has stopped, or
    after `interrupt_wait_s`; either way the cancellation goes on. A thread that is later than that
    goes on being interrupted until it has stopped: a busy machine must not cost a worker.
    """

    def __init__(self, *, max_workers: int, interrupt_wait_s: float) -> None:
        """Take the number of threads and how long to wait for one that was told to stop."""
        self._executor = ThreadPoolExecutor(max_workers, thread_name_prefix="tool-worker")
        self._interrupt_wait_s = interrupt_wait_s
        self._inflight = 0
        self._stopping: set[asyncio.Task[None]] = set()

    @property
    def inflight(self) -> int:
        """Number of works whose thread has not come back yet."""
        return self._inflight

    async def run(
        self,
        work: Callable[[], T],
        *,
        timeout_s: float,
        interrupt: Callable[[], None] | None = None,
        cause: str = "step_timeout",
    ) -> T:
        """Run `work` in a thread and return what it returns.

        Args:
            work: blocking, and safe in any thread.
            timeout_s: longest time, waiting for a free thread included.
            interrupt: makes `work` end soon; called from the event loop, possibly many times.
            cause: what the limit is called.

        Raises:
            BudgetTooSmallError: there is no time at all.
            SelfTimeoutError: the work did not end in time; it has been interrupted.
        """
        if timeout_s <= 0:
            raise BudgetTooSmallError("no time remains for this tool's work", cause="deadline")
        submitted = self._executor.submit(work)
        self._inflight += 1
        running: asyncio.Future[T] = asyncio.wrap_future(submitted)
        running.add_done_callback(self._finished)
        try:
            finished, _ = await asyncio.wait({running}, timeout=timeout_s)
        except asyncio.CancelledError:
            await self._stop(submitted, running, interrupt)
            raise
        if not finished:
            await self._stop(submitted, running, interrupt)
            raise SelfTimeoutError(f"the work did not end within {timeout_s:.2f} s", cause=cause)
        return running.result()

    def close(self) -> None:
        """Take no more work; threads that still run end by themselves."""
        for task in self._stopping:
            task.cancel()
        self._executor.shutdown(wait=False, cancel_futures=True)

    async def _stop(
        self,
        submitted: Future[T],
        running: asyncio.Future[T],
        interrupt: Callable[[], None] | None,
    ) -> None:
        if submitted.cancel():
            interrupt = None
        task = asyncio.create_task(
            self._until_back(running, interrupt), name=f"{OWN_TASK}stop worker"
        )
        self._stopping.add(task)
        task.add_done_callback(self._stopping.discard)
        stopped, _ = await asyncio.wait({task}, timeout=self._interrupt_wait_s)
        if not stopped:
            get_logger().warning(WORKER_NOT_STOPPED, waited_s=self._interrupt_wait_s)

    async def _until_back(
        self, running: asyncio.Future[T], interrupt: Callable[[], None] | None
    ) -> None:
        pause_s = self._interrupt_wait_s / INTERRUPT_COUNT
        while not running.done():
            if interrupt is not None:
                _try(interrupt)
            await asyncio.wait({running}, timeout=pause_s)

    def _finished(self, running: asyncio.Future[T]) -> None:
        self._inflight -= 1
        if not running.cancelled():
            # Marks it as seen: after a cancel nobody asks for it any more.
            running.exception()


def _try(interrupt: Callable[[], None]) -> None:
    try:
        interrupt()
    except Exception:  # It belongs to the work; whatever it raises must not replace a cancellation.
        get_logger().error(DEFECT, traceback=traceback.format_exc())
