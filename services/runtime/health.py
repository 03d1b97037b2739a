"""Tells the world whether a process lives, and whether it is ready."""

import asyncio
from collections.abc import Awaitable, Iterable

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from services.runtime.telemetry import HOP_NOT_READY, HOP_READY, WATCHER_STALLED, get_logger

LIVENESS = "liveness"
READINESS = "readiness"
SET_TIMEOUT_S = 1.0
"""A stalled watcher may block the health servicer; readiness must not wait for it."""
_SERVING = health_pb2.HealthCheckResponse.SERVING
_NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


class Health:
    """Answers `grpc.health.v1` for the process and for each service of it.

    `liveness` serves from the start. `readiness`, the empty name and the services' own names
    serve once the hop can work; that never depends on the hops behind it. A hop that drains
    lives: whoever looks after it must not kill it over calls that are still in flight.
    """

    def __init__(self) -> None:
        """Start alive and not ready."""
        self._servicer = health.aio.HealthServicer()
        self._names: list[str] = ["", READINESS]
        self._log = get_logger()
        self.draining = False
        """True once it takes no calls for good."""
        self._can_work = False
        self._unfit = ""
        self.ready = False
        self.detail = "starting"
        """Why the process is not ready; empty when it is."""

    async def register(self, server: grpc.aio.Server, services: Iterable[str]) -> None:
        """Add the service to a server, in the state of now, for these gRPC services."""
        self._names += services
        health_pb2_grpc.add_HealthServicer_to_server(self._servicer, server)
        await self._servicer.set(LIVENESS, _SERVING)
        await self._tell_all()

    async def set_ready(self) -> None:
        """Say that calls may come; a hop that drains says so no more."""
        self._can_work = True
        if not self._unfit:
            await self._become_ready()

    async def set_fit(self, unfit: str) -> None:
        """Say whether the process is fit for calls: an empty text, or why it is not."""
        self._unfit = unfit
        if unfit:
            await self.set_not_ready(unfit)
        elif self._can_work:
            await self._become_ready()

    async def _become_ready(self) -> None:
        if self.draining:
            return
        self.ready, self.detail = True, ""
        await self._tell_all()
        self._log.info(HOP_READY)

    async def set_not_ready(self, detail: str) -> None:
        """Say that no calls may come, and why."""
        if self.draining:
            return
        self.ready, self.detail = False, detail
        await self._tell_all()
        self._log.warning(HOP_NOT_READY, detail=detail)

    async def drain(self) -> None:
        """Say for good that no calls may come; watchers are told."""
        self.draining = True
        self.ready, self.detail = False, "draining"
        await self._tell_all()

    async def _tell_all(self) -> None:
        for name in self._names:
            # Looked at each time: the hop may have begun to drain meanwhile.
            state = _SERVING if self.ready else _NOT_SERVING
            await self._bounded(self._servicer.set(name, state))

    async def _bounded(self, change: Awaitable[None]) -> None:
        try:
            async with asyncio.timeout(SET_TIMEOUT_S):
                await change
        except TimeoutError:
            # A watcher that does not read holds the servicer's lock; the others must be told.
            self._log.warning(WATCHER_STALLED)
