"""Opens the door of one hop as a process does, with every policy in THE ORDER."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from types import SimpleNamespace
from typing import Any, NoReturn, cast

import grpc

from services.runtime import door as runtime
from services.runtime.call import Criticality, Identity, Inbound
from services.runtime.clock import Clock
from services.runtime.errors import SixhopError
from services.runtime.estimate import PathEstimator
from services.runtime.guarding import Guard
from services.runtime.identity import write_identity
from services.runtime.loads import Loads
from services.runtime.policies.shed import ShedChange
from services.runtime.server import PolicyHandlers
from services.runtime.stack import EdgeRules, server_policies, server_stack
from services.runtime.statistics import Activity
from services.runtime.status import DETAILS_KEY, error_info
from tests.unit.runtime.fake_time import FakeTimeLoop
from tests.unit.runtime.wired import Tables, configured

EDGE = EdgeRules(default_deadline_s=30.0, max_deadline_s=120.0)
OK = "OK"
Unary = Callable[[], Awaitable[str]]
Stream = Callable[[], AsyncIterator[str]]


class AbortedError(Exception):
    """Ends a call, as grpc.aio's context does; tells the reason of its ErrorInfo."""


class Context:
    """Is what a handler sees of one call."""

    def __init__(self, remaining_s: float | None) -> None:
        """Take what the caller has left; None for a call without a deadline."""
        self._remaining_s = remaining_s

    def time_remaining(self) -> float | None:
        """Return what the caller has left on arrival."""
        return self._remaining_s

    def set_trailing_metadata(self, metadata: object) -> None:
        """Send nothing."""

    async def abort(
        self, code: grpc.StatusCode, details: str, trailing_metadata: Sequence[tuple[str, Any]]
    ) -> NoReturn:
        """End the call with an error."""
        info = error_info(dict(trailing_metadata)[DETAILS_KEY])
        raise AbortedError("" if info is None else info.reason)


class Door:
    """Is the door of a hop: the gateway's with the rules of the edge, an inner one's without."""

    def __init__(self, clock: Clock, *tables: Tables, edge: bool = True) -> None:
        """Take the sections of the configuration that are not as by default."""
        merged = {name: section for each in tables for name, section in each.items()}
        self.clock = clock
        self.activity = Activity()
        self.estimator = PathEstimator(clock, Loads(clock))
        self.ejections: list[bool] = []
        """Whether the process wanted calls, each time that this has changed."""
        self.on_ejection: Callable[[], None] = lambda: None
        """Is called when that changes."""
        self.sheds: list[ShedChange] = []
        self.policies = server_policies(
            configured(merged),
            clock,
            self._ejected,
            self.sheds.append,
            self.estimator.estimate_s,
        )
        stack = server_stack(
            clock,
            self.activity,
            EDGE if edge else EdgeRules(),
            self.policies,
            self.estimator,
            log_calls=False,
        )
        hop = "gateway" if edge else "tool"
        first_event = self.estimator.served.first_event
        self._door = runtime.Door(hop, f"{hop}-1", stack, clock, first_event)
        self._policies = PolicyHandlers(self._door)

    async def serve(
        self,
        work: Unary,
        remaining_s: float | None = 10.0,
        *,
        level: Criticality = Criticality.CRITICAL,
        tenant: str = "",
    ) -> str:
        """Serve a call that is answered at once; return OK, or the reason of the error."""

        async def behaviour(request: Unary, context: Any) -> str:
            return await request()

        make = grpc.unary_unary_rpc_method_handler
        identity = Identity(tenant=tenant, criticality=level)
        handler = await self._handler("Ask", make(cast(Any, behaviour)), identity)
        try:
            await handler.unary_unary(work, Context(remaining_s))
        except AbortedError as error:
            return str(error)
        return OK

    async def stream(
        self,
        work: Stream,
        remaining_s: float | None = 10.0,
        *,
        level: Criticality = Criticality.CRITICAL,
    ) -> str:
        """Serve a stream and read it to its end; return OK, or the reason of the error."""

        async def behaviour(request: Stream, context: Any) -> AsyncIterator[str]:
            async with aclosing(cast(Any, request())) as events:
                async for event in events:
                    yield event

        make = grpc.unary_stream_rpc_method_handler
        handler = await self._handler(
            "Run", make(cast(Any, behaviour)), Identity(criticality=level)
        )
        try:
            async with aclosing(handler.unary_stream(work, Context(remaining_s))) as events:
                async for _ in events:
                    pass
        except AbortedError as error:
            return str(error)
        return OK

    async def look(self, work: Unary, remaining_s: float | None = 10.0) -> str:
        """Serve a look at what the process knows; return OK, or the reason of the error."""
        inbound = self._door.arrive("GetRun", remaining_s, Identity(), streaming=False)
        try:
            await self._door.look(inbound, work)
        except SixhopError as error:
            return error.reason
        return OK

    def surround(self, guard: Guard[Inbound]) -> None:
        """Put a guard around all policies."""
        self._door.surround(guard)

    def _ejected(self, serving: bool, why: str) -> None:
        self.ejections.append(serving)
        self.on_ejection()

    async def _handler(self, method: str, found: Any, identity: Identity) -> Any:
        def find(details: Any) -> Any:
            return found

        details: Any = SimpleNamespace(
            method=f"/sixhop.test.v1.TestService/{method}",
            invocation_metadata=tuple(write_identity(identity)),
        )
        return self._policies.handler(details, find)

    def held(self) -> dict[str, int]:
        """Return what is in flight; nothing when all is quiet."""
        levels = self.policies.admission.snapshot().levels.values()
        counts = {
            "served": self.activity.inflight,
            "admitted": self.policies.admission.snapshot().inflight,
            "shares": sum(level.share.inflight for level in levels),
        }
        return {name: count for name, count in counts.items() if count}

    def leftovers(self) -> dict[str, int]:
        """Return what is still held when everything should be over; nothing when all is well."""
        found = self.held()
        loop = asyncio.get_running_loop()
        tasks = len(asyncio.all_tasks()) - 1
        found |= {"tasks": tasks} if tasks else {}
        watched = len(self._door.cutoffs)
        found |= {"cutoffs": watched} if watched else {}
        # One timer is the door's own, and it outlives the call that it was set for.
        if isinstance(loop, FakeTimeLoop) and loop.timer_count() > 1:
            found["timers"] = loop.timer_count() - 1
        return found
