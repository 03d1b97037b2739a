"""Relays a provider's stream with grpc.aio and aiohttp alone: no limit, no policy, no contract."""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from contextlib import suppress

import aiohttp
import grpc
import uvloop

from benchmarks.relay import Relay
from sixhop.gateway.v1 import gateway_pb2
from sixhop.gateway.v1.gateway_pb2_grpc import add_GatewayServiceServicer_to_server
from sixhop.type.v1 import run_pb2

MIN_INTERVAL_S = 0.04
"""As the model hop joins what comes closer together."""


async def texts(response: aiohttp.ClientResponse) -> AsyncIterator[str]:
    """Yield what the provider writes, joined as the model hop joins it."""
    buffer, pending, next_at = b"", "", 0.0
    while True:
        chunk = b""
        left_s = next_at - time.monotonic() if pending else None
        with suppress(TimeoutError):
            async with asyncio.timeout(left_s):
                chunk = await response.content.readany()
                if not chunk:
                    break
        *events, buffer = (buffer + chunk).split(b"\n\n")
        for event in events:
            if event != b"data: [DONE]":
                for choice in json.loads(event[6:])["choices"]:
                    pending += choice["delta"].get("content") or ""
        now = time.monotonic()
        if pending and now >= next_at:
            yield pending
            pending, next_at = "", now + MIN_INTERVAL_S
    if pending:
        yield pending


async def serve_last(port: int, provider_port: int) -> None:
    """Serve as the hop that asks the provider."""
    server = grpc.aio.server()
    server.add_insecure_port(f"127.0.0.1:{port}")
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(timeout=timeout) as session:

        async def ask(request: gateway_pb2.AskRequest) -> gateway_pb2.AskResponse:
            return gateway_pb2.AskResponse()

        async def run(request: gateway_pb2.RunRequest) -> AsyncIterator[gateway_pb2.RunResponse]:
            body = {"messages": [{"role": "user", "content": request.question.text}]}
            url = f"http://127.0.0.1:{provider_port}/v1/chat/completions"
            sequence = 0
            async with session.post(url, json=body) as response:
                async for text in texts(response):
                    sequence += 1
                    event = run_pb2.RunEvent(text_delta=run_pb2.TextDelta(text=text))
                    yield gateway_pb2.RunResponse(sequence=sequence, event=event)

        add_GatewayServiceServicer_to_server(Relay(ask, run), server)
        await server.start()
        await server.wait_for_termination()


if __name__ == "__main__":
    uvloop.run(serve_last(int(sys.argv[1]), int(sys.argv[2])))
