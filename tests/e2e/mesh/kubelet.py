"""Looks after pods as the kubelet does: who is not ready gets no more calls."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from services.runtime.health import READINESS
from tests.e2e.mesh.house import House
from tests.e2e.mesh.pods import Pod
from tests.e2e.mesh.sidecars import LOOPBACK
from tests.e2e.suite import POLL_S, START_TIMEOUT_S, WAIT_S
from tests.waiting import until

SCALE = 0.1
"""How long a second of the manifests is here."""
DEFAULT_PERIOD_S, DEFAULT_TIMEOUT_S, DEFAULT_FAILURES = 10, 1, 3
"""What Kubernetes does where a probe says nothing."""


class Kubelet:
    """Asks the pods of one hop, as their probe says and so many times as often."""

    def __init__(self, house: House, hop: str) -> None:
        """Take the house, and whose pods to look after; all of them are ready."""
        probe = house.services[hop].pool.probe
        self._house = house
        self._hop = hop
        self._name: str = probe["grpc"]["service"]
        self._period_s: float = SCALE * probe.get("periodSeconds", DEFAULT_PERIOD_S)
        self._timeout_s: float = SCALE * probe.get("timeoutSeconds", DEFAULT_TIMEOUT_S)
        self._threshold: int = probe.get("failureThreshold", DEFAULT_FAILURES)
        self.ready = {pod.name: pod for pod in house.pods[hop]}
        """The pods that get calls."""
        self.leaving: set[str] = set()
        """The pods that are being deleted: they get no calls, whatever they say."""

    async def run(self) -> None:
        """Look after all pods, for ever."""
        async with asyncio.TaskGroup() as tasks:
            for pod in self._house.pods[self._hop]:
                tasks.create_task(self._look_after(pod))

    def tell(self) -> None:
        """Let the sidecars know who gets calls."""
        here = [pod.port for name, pod in self.ready.items() if name not in self.leaving]
        self._house.publish(self._hop, here)

    async def until_ready(self, pod: Pod, *, ready: bool) -> None:
        """Wait until a pod is ready, or is not.

        Raises:
            TimeoutError: it does not become so in time.
        """
        await until(lambda: (pod.name in self.ready) is ready, timeout_s=START_TIMEOUT_S)

    async def _look_after(self, pod: Pod) -> None:
        failures = 0
        address = f"{LOOPBACK}:{pod.app_port}"
        while True:
            if await serves(address, self._name, self._timeout_s):
                failures = 0
                if pod.name not in self.ready:
                    self.ready[pod.name] = pod
                    self.tell()
            else:
                failures += 1
                if failures >= self._threshold and self.ready.pop(pod.name, None) is not None:
                    self.tell()
            await asyncio.sleep(self._period_s)


@asynccontextmanager
async def looking_after(house: House, *hops: str) -> AsyncIterator[Sequence[Kubelet]]:
    """Look after the pods of some hops while the block runs."""
    kubelets = [Kubelet(house, hop) for hop in hops]
    tasks = [asyncio.create_task(kubelet.run()) for kubelet in kubelets]
    try:
        yield kubelets
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def serves(address: str, name: str, timeout_s: float) -> bool:
    """Return whether a pod says in time that it serves; a probe has a connection of its own."""
    async with grpc.aio.insecure_channel(address) as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)  # its types know no method
        try:
            answer = await stub.Check(
                health_pb2.HealthCheckRequest(service=name), timeout=timeout_s
            )
        except grpc.aio.AioRpcError:
            return False
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


async def seconds_until(pod: Pod, *, serving: bool) -> float:
    """Return how long it takes until a pod says that it is ready, or that it is not.

    Raises:
        TimeoutError: it does not say so in time.
    """
    address, began = f"{LOOPBACK}:{pod.app_port}", time.monotonic()
    async with asyncio.timeout(WAIT_S):
        # Asked and not watched: it is a probe that has to see it.
        while await serves(address, READINESS, WAIT_S) is not serving:  # noqa: ASYNC110
            await asyncio.sleep(POLL_S)
    return time.monotonic() - began
