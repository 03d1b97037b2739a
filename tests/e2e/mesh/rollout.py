"""Restarts pods as Kubernetes does it, while clients go on asking."""

import asyncio
import signal
from collections.abc import Callable, Sequence

from services.runtime.topology import HOPS
from tests.e2e.mesh.calls import Clients, Told
from tests.e2e.mesh.house import House
from tests.e2e.mesh.kubelet import SCALE, Kubelet
from tests.e2e.mesh.pods import Pod

PRE_STOP_S = 5.0
"""What the manifests have a pod wait before it is told to stop; here it is scaled."""
GONE_S = 20.0
"""The longest drain that is waited for; a run lasts some hundred milliseconds here."""
DEADLINE_S = 10.0


async def under_load(
    clients: Clients, tools: Sequence[str], work: Callable[[], asyncio.Future[None]]
) -> list[Told]:
    """Have a client ask for each tool, again and again, until some work is done."""
    ending = work()

    async def client(tool: str) -> list[Told]:
        told = []
        while not ending.done():
            told.append(await clients.ask(tool, DEADLINE_S))
        return told

    told = await asyncio.gather(*map(client, tools))
    await ending
    return [each for some in told for each in some]


async def restart_all(house: House, kubelets: Sequence[Kubelet]) -> None:
    """Restart every pod, one of each hop at a time."""
    by_hop = dict(zip(HOPS, kubelets, strict=True))
    for number in range(max(len(pods) for pods in house.pods.values())):
        async with asyncio.TaskGroup() as tasks:
            for hop, pods in house.pods.items():
                if number < len(pods):
                    tasks.create_task(restart(pods[number], by_hop[hop]))


async def restart(pod: Pod, kubelet: Kubelet) -> None:
    """Restart a pod as Kubernetes does; return when calls find it again.

    It leaves the endpoints and is told to wait at the same time, and then to stop. No other pod is
    started in its place before, as Kubernetes would: those that stay have to do.
    """
    kubelet.leaving.add(pod.name)
    kubelet.tell()
    await asyncio.sleep(SCALE * PRE_STOP_S)
    pod.child.send(signal.SIGTERM)
    code = await asyncio.to_thread(pod.child.wait, GONE_S)
    assert code == 0, f"{pod.name} has ended with {code}"
    await _start(pod, kubelet)


async def kill(pod: Pod, kubelet: Kubelet) -> None:
    """Kill a pod and start it again; nobody is told before."""
    pod.child.send(signal.SIGKILL)
    await asyncio.to_thread(pod.child.wait, GONE_S)
    await _start(pod, kubelet)


async def _start(pod: Pod, kubelet: Kubelet) -> None:
    await kubelet.until_ready(pod, ready=False)
    pod.child.start()
    kubelet.leaving.discard(pod.name)
    await kubelet.until_ready(pod, ready=True)
