"""Serves the gateway hop for gRPC clients."""

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import grpc

from gateway.access.entrance import open_entrance
from gateway.config import GatewaySettings
from gateway.desk import Desk
from gateway.http.door import http_door
from gateway.http.front import Front
from gateway.http.sse import KeepAlive
from gateway.runner import Runner
from gateway.runs.places import Places
from gateway.runs.shelf import open_shelf
from gateway.runs.starting import RunStarter
from gateway.state.processes import make_lookout
from services.runtime.background import background
from services.runtime.process import Hop
from services.runtime.topology import GATEWAY, ROUTING
from sixhop.gateway.v1 import gateway_pb2
from sixhop.gateway.v1.gateway_pb2_grpc import (
    GatewayServiceServicer,
    add_GatewayServiceServicer_to_server,
)

SERVICE = "sixhop.gateway.v1.GatewayService"


class GatewayServicer(GatewayServiceServicer):
    """Takes questions from clients."""

    def __init__(self, runner: Runner) -> None:
        """Take what makes the runs."""
        self._runner = runner

    def Run(  # gRPC's name
        self,
        request: gateway_pb2.RunRequest,
        context: grpc.aio.ServicerContext[Any, Any],
    ) -> AsyncIterator[gateway_pb2.RunResponse]:
        """Run a question and stream what happens."""
        return self._runner.run(request)

    async def Ask(  # gRPC's name
        self,
        request: gateway_pb2.AskRequest,
        context: grpc.aio.ServicerContext[Any, Any],
    ) -> gateway_pb2.AskResponse:
        """Run a question and give the whole answer at once."""
        return await self._runner.ask(request)


@asynccontextmanager
async def open_hop(hop: Hop) -> AsyncIterator[None]:
    """Open the gateway hop: it can work once its doors are open."""
    settings = hop.config.section(GATEWAY, GatewaySettings)
    async with open_entrance(hop, settings), hop.dependency(ROUTING) as routing:
        shelf = open_shelf(hop, settings.runs)
        book = shelf.book
        hop.door.surround(book)
        runner = Runner(routing, settings, book)
        add_GatewayServiceServicer_to_server(GatewayServicer(runner), hop.server)
        hop.services.append(SERVICE)
        desk = Desk(hop.door, runner)
        starter = RunStarter(desk, settings.runs.max_started_count)
        front = Front(
            hop=hop,
            settings=settings,
            desk=desk,
            keep=KeepAlive(
                hop.clock, settings.http_idle_limit_s / 3, settings.http_unread_timeout_s
            ),
            starter=starter,
            reader=shelf.reader,
            readers=Places(
                "streams of events are read", "max_reader_count", settings.runs.max_reader_count
            ),
            lookout=make_lookout(hop),
        )
        hop.draining.append(starter.drain)
        async with (
            shelf.keeping(),
            background(front.lookout.run()),
            aclosing(starter),
            http_door(front),
        ):
            await hop.health.set_ready()
            yield
