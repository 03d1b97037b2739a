"""Tests that a worker thread comes back whatever happens to its caller."""

import asyncio
import threading
from collections.abc import Iterator

import pytest

from services.runtime.errors import BudgetTooSmallError, SelfTimeoutError
from services.runtime.telemetry import DEFECT, WORKER_NOT_STOPPED
from services.tool.workers import INTERRUPT_COUNT, WorkerPool
from tests.logged import logged
from tests.waiting import until


@pytest.fixture
def pool() -> Iterator[WorkerPool]:
    made = WorkerPool(max_workers=1, interrupt_wait_s=0.2)
    yield made
    made.close()


class Work:
    """Blocks until it is interrupted, and tells the loop when it began."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.interrupted = threading.Event()
        self.ended = threading.Event()
        self._loop = asyncio.get_running_loop()

    def __call__(self) -> str:
        self._loop.call_soon_threadsafe(self.began.set)
        try:
            assert self.interrupted.wait(5)
            return "late"
        finally:
            self.ended.set()


async def test_work_returns_its_value(pool: WorkerPool) -> None:
    assert await pool.run(lambda: 7, timeout_s=5) == 7
    assert pool.inflight == 0


async def test_the_works_own_error_comes_out(pool: WorkerPool) -> None:
    def fail() -> None:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        await pool.run(fail, timeout_s=5)


async def test_a_cancelled_caller_interrupts_its_work_and_waits_for_the_thread(
    pool: WorkerPool,
) -> None:
    work = Work()
    task = asyncio.create_task(pool.run(work, timeout_s=5, interrupt=work.interrupted.set))
    await asyncio.wait_for(work.began.wait(), 5)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert work.ended.is_set()
    assert pool.inflight == 0
    assert await pool.run(lambda: "free", timeout_s=5) == "free"


async def test_work_that_outlives_its_time_is_interrupted_and_says_so(pool: WorkerPool) -> None:
    work = Work()

    with pytest.raises(SelfTimeoutError, match="did not end within"):
        await pool.run(work, timeout_s=0.01, interrupt=work.interrupted.set)

    assert work.ended.is_set()
    assert pool.inflight == 0


async def test_an_interrupt_that_came_too_early_is_repeated(pool: WorkerPool) -> None:
    work = Work()
    calls: list[int] = []

    def third_time_counts() -> None:
        calls.append(1)
        if len(calls) == 3:
            work.interrupted.set()

    task = asyncio.create_task(pool.run(work, timeout_s=5, interrupt=third_time_counts))
    await asyncio.wait_for(work.began.wait(), 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert len(calls) == 3
    assert work.ended.is_set()


async def test_an_interrupt_that_fails_does_not_replace_the_cancellation(
    pool: WorkerPool,
) -> None:
    work = Work()

    def fail() -> None:
        work.interrupted.set()
        raise RuntimeError("already closed")

    task = asyncio.create_task(pool.run(work, timeout_s=5, interrupt=fail))
    await asyncio.wait_for(work.began.wait(), 5)
    task.cancel()
    with logged() as log, pytest.raises(asyncio.CancelledError):
        await task

    assert log.events() == [DEFECT]


async def test_work_that_cannot_be_interrupted_holds_its_caller_only_for_a_bound(
    pool: WorkerPool,
) -> None:
    work = Work()
    task = asyncio.create_task(pool.run(work, timeout_s=5))
    await asyncio.wait_for(work.began.wait(), 5)

    task.cancel()
    with logged() as log, pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 2)

    assert log.events() == [WORKER_NOT_STOPPED]
    assert pool.inflight == 1
    work.interrupted.set()
    assert await pool.run(lambda: "free", timeout_s=5) == "free"


async def test_work_goes_on_being_interrupted_after_its_caller_has_left(pool: WorkerPool) -> None:
    work = Work()
    calls: list[int] = []

    def late_one_counts() -> None:
        calls.append(1)
        if len(calls) == 2 * INTERRUPT_COUNT:
            work.interrupted.set()

    task = asyncio.create_task(pool.run(work, timeout_s=5, interrupt=late_one_counts))
    await asyncio.wait_for(work.began.wait(), 5)
    task.cancel()
    with logged() as log, pytest.raises(asyncio.CancelledError):
        await task

    assert log.events() == [WORKER_NOT_STOPPED]
    await until(lambda: pool.inflight == 0)
    assert len(calls) == 2 * INTERRUPT_COUNT


async def test_waiting_work_of_a_cancelled_caller_never_begins(pool: WorkerPool) -> None:
    first, began = Work(), []
    running = asyncio.create_task(pool.run(first, timeout_s=5, interrupt=first.interrupted.set))
    await asyncio.wait_for(first.began.wait(), 5)
    waiting = asyncio.create_task(pool.run(lambda: began.append(1), timeout_s=5))
    await asyncio.sleep(0)

    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    first.interrupted.set()

    assert await running == "late"
    assert began == []


async def test_without_time_nothing_begins(pool: WorkerPool) -> None:
    began: list[int] = []

    with pytest.raises(BudgetTooSmallError):
        await pool.run(lambda: began.append(1), timeout_s=0)

    assert began == []
