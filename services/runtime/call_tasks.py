"""Counts the asyncio tasks that belong to calls: none is left when no call is in flight."""

import asyncio
import weakref

from services.runtime.background import OWN_TASK
from services.runtime.server import EXEMPT_PREFIXES

ACCEPTOR = "AioServer."
WATCHER = "_schedule_rpc_coro"
EXEMPT_TASKS = tuple(f"HandleExceptions[{prefix}" for prefix in EXEMPT_PREFIXES)
"""How the pinned release of grpcio names its tasks: those that wait for the next call of each
method, one beside each call that waits for its cancel, and the calls themselves."""


class CallTasks:
    """Tells the tasks of calls from a process's own."""

    def __init__(self) -> None:
        """Start with no task of the process's own."""
        self._own: weakref.WeakSet[asyncio.Task[object]] = weakref.WeakSet()

    def remember_own(self) -> None:
        """Take the tasks that run now for the process's own, not a call's."""
        self._own = weakref.WeakSet(asyncio.all_tasks())

    def count(self) -> int:
        """Return how many tasks belong to calls that policies apply to."""
        tasks = [
            task
            for task in asyncio.all_tasks()
            if task not in self._own
            and not task.get_name().startswith(OWN_TASK)
            and not _origin(task).startswith(ACCEPTOR)
        ]
        # The call that asks is such a call itself, and so is a health probe.
        exempt = sum(1 for task in tasks if task.get_name().startswith(EXEMPT_TASKS))
        watchers = sum(1 for task in tasks if _origin(task) == WATCHER)
        return len(tasks) - exempt - min(exempt, watchers)


def _origin(task: asyncio.Task[object]) -> str:
    return str(getattr(task.get_coro(), "__qualname__", ""))
