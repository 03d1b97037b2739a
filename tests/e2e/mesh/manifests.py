"""Reads the objects that are applied to a cluster, as the overlay for production has them."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from gateway.manifests.hops import hop_of
from services.runtime.topology import DEPLOYMENTS, HOPS
from tests.e2e.mesh.access import require_mutual_tls, role_filter
from tests.e2e.mesh.identities import principal
from tests.e2e.mesh.translation import Config, Object, cluster, routes
from tests.processes import ROOT

OVERLAY = ROOT / "k8s" / "overlays" / "production"
KUBECTL = Path(sys.executable).parent / "kubectl"
"""Where its package puts it, whatever the path is."""
TIMEOUT_S = 60.0
TIERS = (*HOPS, *DEPLOYMENTS)


POOL = "sixhop.io/pool"
"""The label that tells the pods of one Deployment from others of the same hop."""


@dataclass(frozen=True, slots=True)
class Pool:
    """Is what the objects say about the pods of one Deployment."""

    name: str
    account: str
    """The principal of its pods."""
    labels: Mapping[str, str]
    """Of its pods."""
    port: int
    """Where the container listens."""
    probe: Mapping[str, Any]
    """How the kubelet asks whether it is ready."""


@dataclass(frozen=True, slots=True)
class Destination:
    """Is one service that a route leads to."""

    cluster: Config
    pool: Pool
    """Whose pods stand behind it."""


@dataclass(frozen=True, slots=True)
class Service:
    """Is what callers of a hop find."""

    hop: str
    routes: Sequence[Config]
    destinations: Sequence[Destination]
    """All that the routes lead to; the last one takes what none before has taken."""

    @property
    def name(self) -> str:
        """Return the cluster of the pods that take what is for no others."""
        return str(self.destinations[-1].cluster["name"])

    @property
    def pool(self) -> Pool:
        """Return the same pods."""
        return self.destinations[-1].pool


class Manifests:
    """Holds the objects of one overlay."""

    def __init__(self, objects: Sequence[Object]) -> None:
        """Take the objects.

        Raises:
            UntranslatedError: they do not ask for mutual TLS.
        """
        self.objects = tuple(objects)
        require_mutual_tls(self.of_kind("PeerAuthentication"))

    def of_kind(self, kind: str) -> list[Object]:
        """Return the objects of one kind."""
        return [each for each in self.objects if each["kind"] == kind]

    def service(self, hop: str) -> Service:
        """Return what callers of a hop find."""
        name = next(
            each["metadata"]["name"]
            for each in self.of_kind("Service")
            if hop_of(each["metadata"]["name"]) == hop
        )
        port = self._pool_of(name).port
        made = routes(self._leading_to(name, "VirtualService"), name, port)
        goals = dict.fromkeys(goal for way in made for goal in _goals(way["route"]))
        return Service(hop, made, [self._destination(goal) for goal in goals])

    def _destination(self, cluster_named: str) -> Destination:
        _, port, _, host = cluster_named.split("|")
        made = cluster(cluster_named, self._leading_to(host, "DestinationRule"), int(port))
        return Destination(made, self._pool_of(host))

    def _pool_of(self, service: str) -> Pool:
        """Return the pods that a Service selects."""
        (selector,) = [
            each["spec"]["selector"]
            for each in self.of_kind("Service")
            if each["metadata"]["name"] == service
        ]
        for workload in self.of_kind("Deployment"):
            template = workload["spec"]["template"]
            labels = template["metadata"]["labels"]
            if selector.items() <= labels.items():
                break
        else:
            raise LookupError(f"no pod has what the Service {service} selects: {selector}")
        (container,) = [each for each in template["spec"]["containers"] if each["name"] == "app"]
        probe = container["readinessProbe"]
        namespace = workload["metadata"]["namespace"]
        return Pool(
            name=labels[POOL],
            account=principal(namespace, template["spec"]["serviceAccountName"]),
            labels=labels,
            port=probe["grpc"]["port"],
            probe=probe,
        )

    @property
    def configuration(self) -> str:
        """Return the configuration of all pods, as it is mounted."""
        found = [each["data"]["sixhop.toml"] for each in self.of_kind("ConfigMap")]
        return str(found[0])

    @property
    def edge_account(self) -> str:
        """Return the principal of the pods that Istio makes for the gateway at the edge."""
        (edge,) = self.of_kind("Gateway")
        account = f"{edge['metadata']['name']}-{edge['spec']['gatewayClassName']}"
        return principal(edge["metadata"]["namespace"], account)

    def roles(self, pool: Pool, listening_port: int) -> list[Config]:
        """Return the filters of some pods, whose port is another one here."""
        policies = self.of_kind("AuthorizationPolicy")
        found = role_filter(policies, pool.labels, {str(pool.port): listening_port})
        return [] if found is None else [found]

    def _leading_to(self, host: str, kind: str) -> Object | None:
        """Return the one object of a kind that is about a service."""
        found = []
        for each in self.of_kind(kind):
            hosts = each["spec"].get("hosts") or [each["spec"].get("host")]
            if host in [str(one).split(".", 1)[0] for one in hosts]:
                found.append(each)
        if len(found) > 1:
            raise LookupError(f"{len(found)} of {kind} are about {host}; Istio would merge them")
        return found[0] if found else None


def _goals(action: Config) -> list[str]:
    if "cluster" in action:
        return [action["cluster"]]
    return [each["name"] for each in action["weighted_clusters"]["clusters"]]


def production() -> Manifests:
    """Return what `kubectl kustomize` prints for the overlay."""
    printed = subprocess.run(
        [str(KUBECTL), "kustomize", str(OVERLAY)],
        check=True,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    return Manifests([each for each in yaml.safe_load_all(printed.stdout) if each])
