"""Spares each call what grpc.aio does for it and nobody here has any use of.

None of the names below is public: they belong to the pinned release of grpcio, as the names in
`launch.py` and `requests.py` do.
"""

import abc
import asyncio
import importlib
import inspect
from collections.abc import Awaitable, Collection
from functools import partial
from types import ModuleType
from typing import Any

from grpc import _observability

# The stubs of types do not know it.
_CORE: Any = importlib.import_module("grpc._cython.cygrpc")


def spare_each_call() -> None:
    """Replace in this process, before its first server or channel, what each call would pay for.

    That is the search for a plugin that observes it, which nobody here may have, since the one
    there is deadlocks; a wait that could be for several things; a line of a log that is never
    written; and the long way to the answer that a handler is asynchronous.
    """
    # gRPC enters what it gets, asks whether it is anything, and leaves it. A view of nothing does
    # all of that without a function in Python.
    nothing: Any = partial(memoryview, b"")
    _observability.get_plugin = nothing
    # Without a loop both return None.
    _CORE._get_running_loop = asyncio._get_running_loop
    _CORE.asyncio = _like(asyncio, wait=wait_first)
    # What isinstance does with an abstract class, without the function of Python's around it.
    check: Any = vars(abc)["_abc_instancecheck"]
    _CORE.inspect = _like(inspect, isawaitable=partial(check, Awaitable))


def _like(module: ModuleType, **others: Any) -> ModuleType:
    """Return a copy of a module with other values of some of its names."""
    copy = ModuleType(module.__name__)
    vars(copy).update(vars(module) | others)
    return copy


async def wait_first(
    futures: Collection["asyncio.Future[Any]"], *, return_when: str
) -> tuple[set["asyncio.Future[Any]"], set["asyncio.Future[Any]"]]:
    """Wait as asyncio.wait does, for one future in a third of the functions.

    A server waits for the next call of any method that was registered, and for that of all others.
    Ours register none (`PolicyServer`), so it is one future, once for each call.
    """
    if len(futures) != 1:
        return await asyncio.wait(futures, return_when=return_when)
    (future,) = futures
    if not future.done():
        woken = asyncio.get_running_loop().create_future()

        def wake(_: "asyncio.Future[Any]") -> None:
            # Who was cancelled meanwhile, be it in this very turn, waits no longer.
            if not woken.done():
                woken.set_result(None)

        future.add_done_callback(wake)
        await woken
    return {future}, set()
