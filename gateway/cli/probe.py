"""Asks processes whether they serve."""

import asyncio

import grpc
from grpc_health.v1 import health_pb2

from services.runtime.clock import Clock
from services.runtime.health import READINESS
from services.runtime.topology import LLM

PROBE_TIMEOUT_S = 1.0
"""How long one question may take; a process that starts is slow to answer."""
PROBE_INTERVAL_S = 0.05
_OPTIONS = (
    # A process that starts is found at once, not after a second of backoff.
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 100),
    # In spite of its name this is how long one attempt to connect may take.
    ("grpc.min_reconnect_backoff_ms", 2_000),
    ("grpc.use_local_subchannel_pool", 1),
)
HealthCheck = grpc.aio.UnaryUnaryMultiCallable[
    health_pb2.HealthCheckRequest, health_pb2.HealthCheckResponse
]
_SERVING = health_pb2.HealthCheckResponse.SERVING


async def wait_until_serving(name: str, address: str, clock: Clock) -> None:
    """Return once the process serves; the caller bounds the wait."""
    if name == LLM:
        while not await llm_serves(address):
            await clock.sleep(PROBE_INTERVAL_S)
        return
    async with grpc.aio.insecure_channel(address, options=_OPTIONS) as channel:
        while not await hop_serves(channel):
            await clock.sleep(PROBE_INTERVAL_S)


def health_check(channel: grpc.aio.Channel) -> HealthCheck:
    """Return the method of `grpc.health.v1` that asks once; the stub's types do not tell it."""
    return channel.unary_unary(
        "/grpc.health.v1.Health/Check",
        request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
        response_deserializer=health_pb2.HealthCheckResponse.FromString,
    )


async def hop_serves(channel: grpc.aio.Channel) -> bool:
    """Return whether a hop wants calls."""
    request = health_pb2.HealthCheckRequest(service=READINESS)
    try:
        response = await health_check(channel)(request, timeout=PROBE_TIMEOUT_S)
    except grpc.aio.AioRpcError:
        return False
    return bool(response.status == _SERVING)


async def llm_serves(address: str) -> bool:
    """Return whether the local model has loaded its weights and answers."""
    host, _, port = address.rpartition(":")
    try:
        async with asyncio.timeout(PROBE_TIMEOUT_S):
            reader, writer = await asyncio.open_connection(host, int(port))
            try:
                writer.write(f"GET /health HTTP/1.0\r\nHost: {address}\r\n\r\n".encode())
                await writer.drain()
                status = await reader.readline()
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return False
    return status.split()[1:2] == [b"200"]
