"""Forwards what comes to the next hop: one service, for both chains that are compared."""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import uvloop

from services.runtime.process import Hop
from services.runtime.topology import HOPS
from sixhop.gateway.v1 import gateway_pb2
from sixhop.gateway.v1.gateway_pb2_grpc import (
    GatewayServiceServicer,
    GatewayServiceStub,
    add_GatewayServiceServicer_to_server,
)
from sixhop.type.v1 import run_pb2

CHUNK_COUNT = 30
"""How many chunks the last hop streams."""
ENDLESS = "endless"
"""Asked for as the agent, it makes the last hop wait for ever after its chunks."""
_ANSWER = gateway_pb2.AskResponse(text="a" * 440)
_CHUNKS = [
    gateway_pb2.RunResponse(
        sequence=number,
        event=run_pb2.RunEvent(text_delta=run_pb2.TextDelta(text="a few words of an answer, ")),
    )
    for number in range(1, CHUNK_COUNT + 1)
]
Context = grpc.aio.ServicerContext[Any, Any]
Ask = Callable[[gateway_pb2.AskRequest], Awaitable[gateway_pb2.AskResponse]]
Run = Callable[[gateway_pb2.RunRequest], AsyncIterator[gateway_pb2.RunResponse]]


class Relay(GatewayServiceServicer):
    """Serves a unary call and a stream by what the next hop answers."""

    def __init__(self, ask: Ask, run: Run) -> None:
        """Take what calls the next hop."""
        self._ask = ask
        self._run = run

    async def Ask(  # gRPC's name
        self, request: gateway_pb2.AskRequest, context: Context
    ) -> gateway_pb2.AskResponse:
        """Give the next hop's answer."""
        return await self._ask(request)

    async def Run(  # gRPC's name
        self, request: gateway_pb2.RunRequest, context: Context
    ) -> AsyncIterator[gateway_pb2.RunResponse]:
        """Give the next hop's chunks."""
        async for chunk in self._run(request):
            yield chunk


def add_last_to(server: grpc.aio.Server) -> None:
    """Serve as the last hop, which answers at once."""

    async def ask(request: gateway_pb2.AskRequest) -> gateway_pb2.AskResponse:
        return _ANSWER

    async def run(request: gateway_pb2.RunRequest) -> AsyncIterator[gateway_pb2.RunResponse]:
        for chunk in _CHUNKS:
            yield chunk
        if request.agent == ENDLESS:
            await asyncio.get_running_loop().create_future()

    add_GatewayServiceServicer_to_server(Relay(ask, run), server)


@asynccontextmanager
async def open_hop(hop: Hop) -> AsyncIterator[None]:
    """Open a hop of the chain that runs on our runtime."""
    hop.services.append("sixhop.gateway.v1.GatewayService")
    await hop.health.set_ready()
    if hop.name == HOPS[-1]:
        add_last_to(hop.server)
        yield
        return
    async with hop.dependency(HOPS[HOPS.index(hop.name) + 1]) as following:
        stub = GatewayServiceStub(following.channel)

        async def ask(request: gateway_pb2.AskRequest) -> gateway_pb2.AskResponse:
            return await following.unary(stub.Ask, request)

        async def run(request: gateway_pb2.RunRequest) -> AsyncIterator[gateway_pb2.RunResponse]:
            async with following.stream(stub.Run, request) as chunks:
                async for chunk in chunks:
                    yield chunk

        add_GatewayServiceServicer_to_server(Relay(ask, run), hop.server)
        yield


async def serve_bare(port: int, following_port: int) -> None:
    """Serve a hop of the chain that is plain grpc.aio; without a following port, the last one."""
    server = grpc.aio.server()
    server.add_insecure_port(f"127.0.0.1:{port}")
    async with grpc.aio.insecure_channel(f"127.0.0.1:{following_port}") as channel:
        stub = GatewayServiceStub(channel)

        async def ask(request: gateway_pb2.AskRequest) -> gateway_pb2.AskResponse:
            return await stub.Ask(request)

        async def run(request: gateway_pb2.RunRequest) -> AsyncIterator[gateway_pb2.RunResponse]:
            call = stub.Run(request)
            try:
                async for chunk in call:
                    yield chunk
            finally:
                call.cancel()

        if following_port:
            add_GatewayServiceServicer_to_server(Relay(ask, run), server)
        else:
            add_last_to(server)
        await server.start()
        await server.wait_for_termination()


if __name__ == "__main__":
    uvloop.run(serve_bare(int(sys.argv[1]), int(sys.argv[2])))
