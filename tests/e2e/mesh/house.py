"""Runs the suite as a mesh does: several pods of each hop, each behind an Envoy of its own."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from services.runtime.topology import EDGES, GATEWAY, HOPS
from tests.e2e.mesh.identities import Authority
from tests.e2e.mesh.manifests import Manifests, Service
from tests.e2e.mesh.pods import Pod, command, environment, fill
from tests.e2e.mesh.sidecars import LOOPBACK, Certificates, Endpoint, Proxy, Sidecar
from tests.e2e.mesh.translation import Config, routes
from tests.e2e.suite import START_TIMEOUT_S, WAIT_S, Provider, TimeLimitError, wait_until
from tests.ports import free_ports
from tests.processes import Child, end_all

REPLICAS: Mapping[str, int] = {"gateway": 2, "routing": 2, "domain": 2, "tool": 3, "model": 2}
EVERY = "every"
"""Stands for all hops."""
INGRESS = "ingress"
"""The sidecar without a pod, through which clients come."""
UNREPEATED = {
    "metadata": {"name": "the edge"},
    "spec": {
        "http": [{"route": [{"destination": {"host": "gateway"}}], "retries": {"attempts": 0}}]
    },
}
"""What a route comes to that says nothing."""


class House:
    """Is the running mesh."""

    def __init__(
        self, folder: Path, manifests: Manifests, replicas: Mapping[str, int] = REPLICAS
    ) -> None:
        """Take where logs go, what the cluster is told, and how many pods each hop has."""
        self.folder = folder
        self.services = {hop: manifests.service(hop) for hop in HOPS}
        self.pods: dict[str, list[Pod]] = {}
        """By hop."""
        self._manifests = manifests
        self._replicas = replicas
        self._authority = Authority(folder)
        self._provider_child = Child("provider", ["-m", "tests.provider"], {}, folder)
        self._version = 0
        (folder / "endpoints").mkdir()
        self._config = folder / "sixhop.toml"
        self._config.write_text(manifests.configuration)
        for service in self.services.values():
            for destination in service.destinations:
                self.publish_pool(destination.pool.name, ())
        door, admin = free_ports(2)
        self.door = f"{LOOPBACK}:{door}"
        """Where clients come in."""
        self.edge_account = manifests.edge_account
        edge = Sidecar(INGRESS, self.certificates(self.edge_account), admin)
        # A GRPCRoute knows neither timeouts nor retries: at the edge the mesh's defaults hold, and
        # docs/kubernetes.md installs Istio without retries.
        gateway = self.services[GATEWAY].pool
        self._send(edge, door, GATEWAY, routes(UNREPEATED, gateway.name, gateway.port))
        self.ingress = Proxy(edge, folder)

    def start(self, settings: Mapping[str, Mapping[str, str]]) -> None:
        """Start everything, wait until all of it serves, and let calls find it.

        Args:
            settings: of the pods of a hop, over those of the overlay; `EVERY` is all pods.

        Raises:
            TimeLimitError: a process is not ready in time; its log says why.
        """
        self._provider_child.start()
        self.provider = Provider(self._provider_child)
        for hop, service in self.services.items():
            files = self.certificates(service.pool.account)
            own = {**settings.get(EVERY, {}), **settings.get(hop, {})}
            self.pods[hop] = [
                self._pod(f"{service.pool.name}-{number}", service, files, own)
                for number in range(self._replicas.get(hop, 1))
            ]
        for pod in self.all_pods:
            pod.child.start()
            pod.proxy.start()
        self.ingress.start()
        for proxy in self.proxies:
            proxy.wait_live()
        # From the inside: routing is not ready before it has found agents.
        for hop, pods in reversed(self.pods.items()):
            for pod in pods:
                self.wait_ready(pod)
            self.publish_all(hop)

    def end(self) -> None:
        """End everything, the outer hops first."""
        end_all([*(pod.child for pod in self.all_pods), self._provider_child])
        for proxy in self.proxies:
            proxy.end()

    @property
    def all_pods(self) -> list[Pod]:
        """Return every pod, the outer hops first."""
        return [pod for pods in self.pods.values() for pod in pods]

    @property
    def proxies(self) -> list[Proxy]:
        """Return every sidecar."""
        return [*(pod.proxy for pod in self.all_pods), self.ingress]

    def callers(self, hop: str) -> list[Proxy]:
        """Return the sidecars that send calls to a hop."""
        if hop == GATEWAY:
            return [self.ingress]
        callers = {edge.caller for edge in EDGES if edge.callee == hop}
        return [pod.proxy for caller in callers for pod in self.pods.get(caller, ())]

    def endpoints(self, hop: str) -> dict[str, dict[int, Endpoint]]:
        """Return how each calling sidecar sees the pods of a hop, by sidecar and port."""
        name = self.services[hop].name
        return {
            proxy.name: {each.port: each for each in proxy.endpoints(name)}
            for proxy in self.callers(hop)
        }

    def ejected(self, hop: str) -> dict[str, set[str]]:
        """Return which pods of a hop each calling sidecar has ejected, by sidecar."""
        names = {pod.port: pod.name for pod in self.pods[hop]}
        return {
            proxy: {names.get(port, str(port)) for port, each in seen.items() if each.ejected}
            for proxy, seen in self.endpoints(hop).items()
        }

    def publish(self, hop: str, ports: Sequence[int]) -> None:
        """Let every sidecar know the pods of a hop, as a cluster's endpoints do."""
        self.publish_pool(self.services[hop].pool.name, ports)

    def publish_all(self, hop: str, *more: int) -> None:
        """Let calls find every pod of a hop, and ports that are none; return once they do."""
        ports = [*(pod.port for pod in self.pods[hop]), *more]
        self.publish(hop, ports)
        self.wait_seen(hop, ports)

    def wait_seen(self, hop: str, ports: Sequence[int]) -> None:
        """Wait until every calling sidecar knows exactly these."""
        wait_until(
            lambda: all(set(seen) == set(ports) for seen in self.endpoints(hop).values()),
            WAIT_S,
            f"all sidecars know {ports} of {hop}",
        )

    def forget(self, hop: str) -> None:
        """Have every sidecar forget what it has learned about the pods of a hop."""
        self.publish(hop, ())
        self.wait_seen(hop, ())
        self.publish_all(hop)

    def wait_ready(self, pod: Pod) -> None:
        """Wait until a pod has logged that calls may come, and serves."""

        def look() -> bool:
            said = {line["event"] for line in pod.child.events()}
            return not pod.child.alive or {"hop_ready", "hop_serving"} <= said

        wait_until(look, START_TIMEOUT_S, f"{pod.name} is ready")
        if not pod.child.alive:
            raise TimeLimitError(f"{pod.name} ended instead: {pod.child.log.read_text()[-2000:]}")

    def certificates(self, account: str) -> Certificates:
        """Return the files by which a workload is known."""
        return Certificates(self._authority.root, *self._authority.issue(account))

    def _pod(
        self, name: str, service: Service, files: Certificates, settings: Mapping[str, str]
    ) -> Pod:
        callees = [edge.callee for edge in EDGES if edge.caller == service.hop]
        if service.hop == GATEWAY:
            # It looks at every hop.
            callees = [hop for hop in self.services if hop != GATEWAY]
        callees = [hop for hop in callees if hop in self.services]
        app_port, port, admin_port, *others = free_ports(3 + len(callees))
        outbound = dict(zip(callees, others, strict=True))
        sidecar = Sidecar(name, files, admin_port)
        sidecar.take(port, app_port, self._manifests.roles(service.pool, port))
        for callee, own in outbound.items():
            self._send(sidecar, own, callee)
        folder = self.folder / name
        fill(folder, service.hop)
        said = environment(name, service.hop, folder, self._config, self.provider.port)
        ports = {service.hop: app_port, **outbound}
        told = {f"SIXHOP_{hop.upper()}__PORT": str(port) for hop, port in ports.items()}
        child = Child(name, command(service.hop), {**said, **told, **settings}, self.folder)
        proxy = Proxy(sidecar, self.folder)
        return Pod(name, service.hop, app_port, port, outbound, folder, child, proxy)

    def _send(
        self, sidecar: Sidecar, port: int, hop: str, routes: Sequence[Config] | None = None
    ) -> None:
        callee = self.services[hop]
        sidecar.send(hop, port, callee.routes if routes is None else routes)
        for each in callee.destinations:
            sidecar.know(each.cluster, self.endpoints_file(each.pool.name), each.pool.account)

    def endpoints_file(self, pool: str) -> Path:
        """Return where sidecars read which pods are behind a service."""
        return self.folder / "endpoints" / f"{pool}.json"

    def publish_pool(self, pool: str, ports: Sequence[int]) -> None:
        """Let every sidecar know the pods of one Deployment; a hop may have several."""
        self._version += 1
        places = [
            {"endpoint": {"address": {"socket_address": {"address": LOOPBACK, "port_value": port}}}}
            for port in ports
        ]
        resource = {
            "@type": "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
            "cluster_name": pool,
            "endpoints": [{"lb_endpoints": places}] if places else [],
        }
        # Envoy reads a file anew when another one takes its place.
        path = self.endpoints_file(pool)
        new = path.with_suffix(".new")
        new.write_text(json.dumps({"version_info": str(self._version), "resources": [resource]}))
        new.replace(path)


@contextmanager
def running_house(
    folder: Path,
    manifests: Manifests,
    settings: Mapping[str, Mapping[str, str]],
    replicas: Mapping[str, int] = REPLICAS,
) -> Iterator[House]:
    """Run the mesh while the block runs; what starts is ended, however it goes."""
    house = House(folder, manifests, replicas)
    try:
        house.start(settings)
        yield house
    finally:
        house.end()
