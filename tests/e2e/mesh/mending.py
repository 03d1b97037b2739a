"""Gives a test the mesh as if nothing had been before: all well, and nobody remembered as sick."""

import asyncio
import time

import grpc

from services.runtime.orders import OPERATOR_KEY
from services.runtime.topology import DOMAIN, ROUTING, TOOL
from sixhop.runtime.v1 import runtime_pb2
from sixhop.runtime.v1.runtime_pb2_grpc import RuntimeServiceStub
from tests.e2e.mesh.calls import Clients
from tests.e2e.mesh.house import House
from tests.e2e.mesh.pods import OPERATOR, Pod
from tests.e2e.mesh.sidecars import LOOPBACK

TIMEOUT_S = 10.0
MERGING_S = 1.0
"""So long after a change of endpoints Envoy keeps the next one, such as an ejection, to itself."""
WELL_COUNT = 6
"""So many answers tell a pod what its tool takes when it is well."""
WELL_DEADLINE_S = 20.0


async def mend(house: House, clients: Clients, *tools: str) -> None:
    """Make all pods well, have everybody forget that one was not, and use every tool.

    Raises:
        TimeLimitError: the sidecars do not forget in time.
    """
    for pod in house.all_pods:
        pod.feel()
    for hop in house.pods:
        house.forget(hop)
    forgotten = time.monotonic()
    await asyncio.gather(
        *(_close_breakers(pod) for hop in (ROUTING, DOMAIN) for pod in house.pods[hop])
    )
    for tool in tools:
        least = [pod.arrival_count + WELL_COUNT for pod in house.pods[TOOL]]

        def used(least: list[int] = least) -> bool:
            return all(
                pod.arrival_count >= count
                for pod, count in zip(house.pods[TOOL], least, strict=True)
            )

        await clients.ask_often(tool, 200, WELL_DEADLINE_S, enough=used)
    # Nothing tells when it is over: until then a sidecar sends calls to a pod that it has ejected.
    await asyncio.sleep(max(0.0, forgotten + MERGING_S - time.monotonic()))


async def _close_breakers(pod: Pod) -> None:
    """Give the order that an operator gives."""
    async with grpc.aio.insecure_channel(f"{LOOPBACK}:{pod.app_port}") as channel:
        stub = RuntimeServiceStub(channel)
        state = await stub.GetSnapshot(runtime_pb2.GetSnapshotRequest(), timeout=TIMEOUT_S)
        for each in state.dependencies:
            if each.call_count or each.breaker_state != runtime_pb2.BREAKER_STATE_CLOSED:
                order = runtime_pb2.OrderBreakerRequest(
                    key=each.key, order=runtime_pb2.BREAKER_ORDER_RESET
                )
                await stub.OrderBreaker(
                    order, timeout=TIMEOUT_S, metadata=((OPERATOR_KEY, OPERATOR),)
                )
