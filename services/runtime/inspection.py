"""Serves the runtime's own service: what a process does, and an operator's orders."""

from collections.abc import Callable, Mapping
from typing import NoReturn

import grpc

from services.runtime.breaker_orders import BreakerOrders
from services.runtime.durations import to_seconds
from services.runtime.errors import SixhopError
from services.runtime.orders import Giver, Orders, giver_of
from services.runtime.process_state import ProcessState
from services.runtime.server import Context, abort
from services.runtime.status import to_status
from services.runtime.watchers import Watchers, checked_interval_s
from sixhop.runtime.v1 import runtime_pb2
from sixhop.runtime.v1.runtime_pb2_grpc import (
    RuntimeServiceServicer,
    add_RuntimeServiceServicer_to_server,
)


class RuntimeServicer(RuntimeServiceServicer):
    """Answers for one process. No policy stands before it: it translates its own errors."""

    def __init__(self, state: ProcessState, orders: Orders) -> None:
        """Take what to tell about, and who takes orders."""
        self.state = state
        """What the process is, with its policies."""
        self.orders = orders
        """Takes orders to the fast-fail switch, from every door."""
        self.breaker_orders = BreakerOrders(state.hop, state.pod, state.policies, orders.authority)
        """Takes orders to the breakers of this process, from every door."""
        self.attributes: Callable[[], Mapping[str, str]] = dict
        """Gives the details of this hop; replaced by the room."""
        self.path_estimate: Callable[[], float] = self._own_p50_s
        """Gives what a call takes from here on, seconds: own work and its share of what is called;
        the own median until something better is known."""
        self.watchers = Watchers(
            state.clock, self.snapshot, state.fingerprint, lambda: state.health.draining
        )

    def add_to(self, server: grpc.aio.Server) -> None:
        """Add the service to a server."""
        add_RuntimeServiceServicer_to_server(self, server)

    def remember_own_tasks(self) -> None:
        """Take the tasks that run now for the process's own, not a call's."""
        self.state.tasks.remember_own()

    def snapshot(self) -> runtime_pb2.GetSnapshotResponse:
        """Return the state now."""
        return self.state.snapshot(self.attributes(), self.path_estimate())

    async def GetSnapshot(  # gRPC's name
        self, request: runtime_pb2.GetSnapshotRequest, context: Context
    ) -> runtime_pb2.GetSnapshotResponse:
        """Give the state now."""
        return self.snapshot()

    # It writes by itself instead of yielding: a write can be bounded, and what it holds is given
    # back at the very end of the call.
    async def WatchSnapshots(  # type: ignore[override]  # gRPC's name
        self, request: runtime_pb2.WatchSnapshotsRequest, context: Context
    ) -> None:
        """Give the state, and again after every change."""
        wanted = request.max_interval_duration
        asked = request.HasField("max_interval_duration")
        try:
            interval_s = checked_interval_s(to_seconds(wanted) if asked else None)
            await self.watchers.serve(interval_s, context.write)
        except SixhopError as error:
            await self._abort(context, error)

    async def OrderShed(  # gRPC's name
        self, request: runtime_pb2.OrderShedRequest, context: Context
    ) -> runtime_pb2.OrderShedResponse:
        """Refuse calls at the gateway's door for a while."""
        try:
            return self.orders.shed(request, _giver(context))
        except SixhopError as error:
            await self._abort(context, error)

    async def EndShed(  # gRPC's name
        self, request: runtime_pb2.EndShedRequest, context: Context
    ) -> runtime_pb2.EndShedResponse:
        """End the order before its time."""
        try:
            return self.orders.end(request, _giver(context))
        except SixhopError as error:
            await self._abort(context, error)

    async def OrderBreaker(  # gRPC's name
        self, request: runtime_pb2.OrderBreakerRequest, context: Context
    ) -> runtime_pb2.OrderBreakerResponse:
        """Hold a breaker of this process, or reset it."""
        try:
            return self.breaker_orders.order(request, _giver(context))
        except SixhopError as error:
            await self._abort(context, error)

    def _own_p50_s(self) -> float:
        return self.state.activity.latency().p50_s

    async def _abort(self, context: Context, error: SixhopError) -> NoReturn:
        status = to_status(
            error,
            hop=self.state.hop,
            pod=self.state.pod,
            remaining_s=context.time_remaining() or 0.0,
            wait_s=0.0,
        )
        await abort(context, status)


def _giver(context: Context) -> Giver:
    return giver_of(context.invocation_metadata() or (), context.peer())
