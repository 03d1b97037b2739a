"""Starts runs that go on by themselves, and owns them until they end."""

import asyncio
from contextlib import ExitStack, aclosing

from gateway.desk import Desk
from gateway.runs.places import Places
from gateway.runs.run import Run
from services.runtime.call import Inbound
from services.runtime.errors import RunCancelledError, SixhopError
from sixhop.gateway.v1 import gateway_pb2

CUT_S = 0.5
"""How long before the end of the drain time runs are ended, so that their readers hear of it."""


class RunStarter:
    """Owns the runs that nobody waits for at a connection. Each has its own deadline."""

    def __init__(self, desk: Desk, max_count: int) -> None:
        """Take where runs are taken, and how many may go on at a time."""
        self._desk = desk
        self._places = Places("runs go on by themselves", "max_started_count", max_count)
        self._running: dict[asyncio.Task[None], Inbound] = {}

    async def start(self, inbound: Inbound, request: gateway_pb2.RunRequest) -> None:
        """Start a run; return once it is accepted.

        Raises:
            SixhopError: it was refused.
        """
        accepted = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(self._run(inbound, request, accepted))
        self._running[task] = inbound
        task.add_done_callback(self._running.pop)
        # Bounded by the waits of admission and by the deadline of the run.
        await accepted

    async def drain(self, within_s: float) -> None:
        """Let the runs come to their ends, as far as there is time."""
        if self._running:
            await asyncio.wait(self._running, timeout=max(0.0, within_s - CUT_S))
        for inbound in self._running.values():
            _end(inbound, "the gateway stops; ask again", "drain")
        if self._running:
            await asyncio.wait(self._running, timeout=CUT_S)

    async def aclose(self) -> None:
        """End every run."""
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait(self._running)

    async def _run(
        self,
        inbound: Inbound,
        request: gateway_pb2.RunRequest,
        accepted: "asyncio.Future[None]",
    ) -> None:
        def take_place() -> None:
            held.enter_context(self._places.held(inbound.identity.tenant))

        try:
            with ExitStack() as held:
                async with aclosing(self._desk.run(inbound, request, take_place)) as events:
                    async for _ in events:
                        if not accepted.done():
                            accepted.set_result(None)
        except SixhopError as error:
            # Once it was accepted, its record tells the error.
            if not accepted.done():
                accepted.set_exception(error)
        finally:
            if not accepted.done():
                accepted.cancel()


def cancel(run: Run) -> bool:
    """End a run, whichever door it came by; return False when it has ended already.

    Whoever waits for it is told, and what it called is cancelled, all the way to the provider.
    """
    inbound = run.inbound
    if inbound is None or inbound.cutoff is None:
        return False
    _end(inbound, "the run was cancelled by its tenant", "cancelled")
    return True


def _end(inbound: Inbound, why: str, cause: str) -> None:
    if inbound.cutoff is not None:
        inbound.cutoff.cancel(lambda _: RunCancelledError(why, cause=cause))
