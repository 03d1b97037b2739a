"""Is what stands around the HTTP door in its measurement: a routing hop, and a bare proxy."""

import sys
from collections.abc import AsyncIterator
from typing import Any

import grpc
import orjson
import uvicorn
import uvloop
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from services.runtime.clock import MonotonicClock
from sixhop.routing.v1 import routing_pb2
from sixhop.routing.v1.routing_pb2_grpc import (
    RoutingServiceServicer,
    RoutingServiceStub,
    add_RoutingServiceServicer_to_server,
)
from sixhop.type.v1 import run_pb2

CHUNK_COUNT = 30
TICKING = "ticking"
"""The agent that says one word each second."""
TICK_S = 1.0
TICK_COUNT = 60
DEADLINE_S = 100.0
_EVENTS = [
    run_pb2.RunEvent(routed=run_pb2.RunRouted(agent="chat", reason="requested")),
    *[
        run_pb2.RunEvent(text_delta=run_pb2.TextDelta(text="a few words of an answer, "))
        for _ in range(CHUNK_COUNT)
    ],
    run_pb2.RunEvent(finished=run_pb2.RunFinished(agent="chat", model="none")),
]


class Routing(RoutingServiceServicer):
    """Answers every run at once, or word by word."""

    def __init__(self, clock: MonotonicClock) -> None:
        """Take the clock."""
        self._clock = clock

    async def Route(  # gRPC's name
        self, request: routing_pb2.RouteRequest, context: Any
    ) -> AsyncIterator[routing_pb2.RouteResponse]:
        """Stream the events of a run."""
        events = _EVENTS
        if request.agent == TICKING:
            events = [_EVENTS[0], *[_EVENTS[1]] * TICK_COUNT, _EVENTS[-1]]
        for number, event in enumerate(events, 1):
            if request.agent == TICKING:
                await self._clock.sleep(TICK_S)
            yield routing_pb2.RouteResponse(sequence=number, event=event)

    async def ListAgents(  # gRPC's name
        self, request: routing_pb2.ListAgentsRequest, context: Any
    ) -> routing_pb2.ListAgentsResponse:
        """Know nobody."""
        return routing_pb2.ListAgentsResponse()


async def serve_routing(port: int) -> None:
    """Serve as the routing hop."""
    server = grpc.aio.server()
    server.add_insecure_port(f"127.0.0.1:{port}")
    add_RoutingServiceServicer_to_server(Routing(MonotonicClock()), server)
    await server.start()
    await server.wait_for_termination()


async def serve_proxy(port: int, routing_port: int) -> None:
    """Serve HTTP by one gRPC call for each request, and nothing else."""
    async with grpc.aio.insecure_channel(f"127.0.0.1:{routing_port}") as channel:
        stub = RoutingServiceStub(channel)

        async def texts(body: Any) -> AsyncIterator[str]:
            question = run_pb2.Question(text=body["messages"][-1]["content"])
            asked = routing_pb2.RouteRequest(question=question, agent=body["model"])
            async for response in stub.Route(asked, timeout=DEADLINE_S):
                if response.event.text_delta.text:
                    yield response.event.text_delta.text

        async def chunks(body: Any) -> AsyncIterator[bytes]:
            async for text in texts(body):
                yield b"data: " + orjson.dumps(_chunk({"delta": {"content": text}})) + b"\n\n"
            yield b"data: [DONE]\n\n"

        async def complete(request: Request) -> Response:
            body = orjson.loads(await request.body())
            if body.get("stream"):
                return StreamingResponse(chunks(body), media_type="text/event-stream")
            text = "".join([text async for text in texts(body)])
            content = orjson.dumps(_chunk({"message": {"role": "assistant", "content": text}}))
            return Response(content, media_type="application/json")

        app = Starlette(routes=[Route("/v1/chat/completions", complete, methods=["POST"])])
        config = uvicorn.Config(
            app, port=port, http="httptools", loop="none", log_level="error", access_log=False
        )
        await uvicorn.Server(config).serve()


def _chunk(choice: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": "chatcmpl-0123456789abcdef",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": "none",
        "choices": [{"index": 0, "finish_reason": None, **choice}],
    }


if __name__ == "__main__":
    kind, *ports = sys.argv[1:]
    serve = serve_routing if kind == "routing" else serve_proxy
    uvloop.run(serve(*map(int, ports)))
