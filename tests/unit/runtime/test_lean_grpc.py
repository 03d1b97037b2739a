"""Holds what gRPC is given to what it had, for one future and for several."""

import asyncio
import importlib
import inspect
from typing import Any

import pytest
from grpc import _observability

from services.runtime.lean_grpc import spare_each_call, wait_first

cygrpc: Any = importlib.import_module("grpc._cython.cygrpc")

FIRST = asyncio.FIRST_COMPLETED
Future = asyncio.Future[str]


def future() -> Future:
    return asyncio.get_running_loop().create_future()


async def waiting(*futures: Future) -> "asyncio.Task[tuple[set[Future], set[Future]]]":
    """Return a wait that has begun."""
    wait = asyncio.create_task(wait_first(futures, return_when=FIRST))
    await asyncio.sleep(0)
    return wait


async def test_what_is_done_is_not_waited_for() -> None:
    ready = future()
    ready.set_result("a call")
    assert await wait_first([ready], return_when=FIRST) == ({ready}, set())


async def test_one_is_waited_for() -> None:
    coming = future()
    wait = await waiting(coming)
    assert not wait.done()
    coming.set_result("a call")
    assert await wait == ({coming}, set())


async def test_a_failure_is_left_to_who_looks_at_it() -> None:
    coming = future()
    wait = await waiting(coming)
    coming.set_exception(RuntimeError("the server shuts down"))
    assert await wait == ({coming}, set())
    with pytest.raises(RuntimeError, match="the server shuts down"):
        coming.result()


async def test_who_waits_may_be_cancelled_and_what_comes_is_kept() -> None:
    coming, complaints = future(), []
    asyncio.get_running_loop().set_exception_handler(lambda _, told: complaints.append(told))
    wait = await waiting(coming)
    wait.cancel()
    with pytest.raises(asyncio.CancelledError):
        await wait
    assert not coming.cancelled()
    coming.set_result("a call")
    await asyncio.sleep(0)
    assert coming.result() == "a call"
    assert complaints == []


async def test_who_is_cancelled_in_the_turn_in_which_it_comes_is_cancelled_and_no_more() -> None:
    coming, complaints = future(), []
    asyncio.get_running_loop().set_exception_handler(lambda _, told: complaints.append(told))
    wait = await waiting(coming)
    coming.set_result("a call")
    wait.cancel()
    with pytest.raises(asyncio.CancelledError):
        await wait
    await asyncio.sleep(0)
    assert complaints == []


async def test_of_several_the_first_is_waited_for() -> None:
    first, second = future(), future()
    wait = await waiting(first, second)
    second.set_result("a call")
    assert await wait == ({second}, {first})


def test_nobody_but_grpc_sees_the_difference() -> None:
    before = asyncio.wait, inspect.isawaitable
    spare_each_call()
    assert (asyncio.wait, inspect.isawaitable) == before
    assert cygrpc.asyncio.wait is wait_first
    assert cygrpc.asyncio.Lock is asyncio.Lock
    assert cygrpc.inspect.isawaitable is not inspect.isawaitable
    assert cygrpc.inspect.isasyncgenfunction is inspect.isasyncgenfunction


def test_no_plugin_is_searched_for_and_no_line_of_a_log_is_made() -> None:
    spare_each_call()
    with _observability.get_plugin() as plugin:
        assert not plugin
    assert isinstance(_observability.get_plugin(), memoryview)
    assert cygrpc._get_running_loop() is None
    assert cygrpc._get_running_loop is asyncio._get_running_loop


async def test_handlers_are_seen_for_what_they_are() -> None:
    spare_each_call()
    is_asynchronous = cygrpc.inspect.isawaitable

    async def handler() -> None:
        """Is called by gRPC, and awaited then."""

    begun = handler()
    assert is_asynchronous(begun)
    begun.close()
    # gRPC looks further.
    assert not is_asynchronous(handler)
    assert not is_asynchronous(len)
