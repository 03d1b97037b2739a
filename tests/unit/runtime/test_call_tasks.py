"""Holds the count of tasks to those of calls."""

import asyncio

from services.runtime.background import background
from services.runtime.call_tasks import CallTasks


async def forever() -> None:
    """Go on."""
    await asyncio.Event().wait()


async def test_what_runs_when_it_is_told_to_remember_is_no_calls() -> None:
    tasks = CallTasks()
    task = asyncio.create_task(forever())
    before = tasks.count()
    tasks.remember_own()
    after = tasks.count()
    task.cancel()

    assert before - after >= 1
    assert after == 0


async def test_a_task_of_the_processs_own_is_no_calls_whenever_it_begins() -> None:
    tasks = CallTasks()
    tasks.remember_own()

    async with background(forever()):
        own = tasks.count()
        task = asyncio.create_task(forever())
        of_a_call = tasks.count()
        task.cancel()

    assert (own, of_a_call) == (0, 1)


async def test_exempt_calls_and_what_grpc_keeps_beside_them_do_not_count() -> None:
    tasks = CallTasks()
    tasks.remember_own()
    name = "HandleExceptions[/sixhop.runtime.v1.RuntimeService/WatchSnapshots]"
    exempt = asyncio.create_task(forever(), name=name)
    other = asyncio.create_task(forever(), name="HandleExceptions[/sixhop.tool.v1.ToolService/X]")

    counted = tasks.count()

    exempt.cancel()
    other.cancel()
    assert counted == 1
