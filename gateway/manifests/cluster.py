"""Sorts manifests into what runs the hops, what leads to them and what says how."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gateway.manifests.documents import Document, at, items, table, texts
from gateway.manifests.hops import hop_of
from services.runtime.launch import AS
from services.runtime.topology import DEPLOYMENTS, GATEWAY, HOPS

WORKLOAD_KINDS = ("Deployment", "StatefulSet", "DaemonSet", "Rollout")
KNOWN_KINDS = (
    *WORKLOAD_KINDS,
    "AuthorizationPolicy",
    "ConfigMap",
    "DestinationRule",
    "EnvoyFilter",
    "Gateway",
    "GRPCRoute",
    "HorizontalPodAutoscaler",
    "HTTPRoute",
    "Ingress",
    "IstioOperator",
    "Namespace",
    "NetworkPolicy",
    "PeerAuthentication",
    "PodDisruptionBudget",
    "Service",
    "ServiceAccount",
    "Sidecar",
    "VirtualService",
)
"""What is looked at; everything else is counted."""


_MESH_KINDS = ("VirtualService", "DestinationRule")
_MESH_GROUPS = ("networking.istio.io/", "security.istio.io/")
INJECT, REVISION, AMBIENT = "sidecar.istio.io/inject", "istio.io/rev", "istio.io/dataplane-mode"
NAMESPACE_INJECT = "istio-injection"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Is what runs the pods of one hop."""

    document: Document
    hop: str
    container: Mapping[str, Any]
    """The container that is the hop; sidecars are others."""
    replica_count: int
    """How many pods there are at least."""

    @property
    def pod(self) -> Any:
        """Return the specification of its pods."""
        return self.document.at("spec", "template", "spec")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Holds the manifests by what they are for."""

    documents: tuple[Document, ...]
    workloads: tuple[Workload, ...]
    least: Mapping[str, Any]
    """How many pods a scaler leaves of a workload at least, by the workload's name."""
    mesh_retries: Mapping[str, Any] | None
    """How the mesh repeats what no route speaks about; None when nobody says, which is twice."""

    def of_kind(self, *kinds: str) -> Iterator[Document]:
        """Yield the objects of some kinds."""
        return (document for document in self.documents if document.kind in kinds)

    def replica_count(self, host: str) -> int | None:
        """Return how many pods stand behind a host at least; None when it is not known."""
        short = host.split(".", 1)[0]
        named = [each for each in self.workloads if each.document.name == short]
        found = named or [each for each in self.workloads if each.hop == hop_of(host)]
        return min((each.replica_count for each in found), default=None)

    def least_pods(self, maker: Document) -> int:
        """Return how many pods a workload has at least."""
        return _least_pods(maker, self.least)

    @property
    def in_mesh(self) -> bool:
        """Return whether Istio is meant to be there."""
        return any(
            document.kind in _MESH_KINDS
            or str(document.at("apiVersion")).startswith(_MESH_GROUPS)
            or _injected(document)
            for document in self.documents
        )


def sort_out(documents: tuple[Document, ...]) -> Cluster:
    """Return the manifests by what they are for."""
    least = {
        str(document.at("spec", "scaleTargetRef", "name")): document.at("spec", "minReplicas")
        for document in documents
        if document.kind == "HorizontalPodAutoscaler"
    }
    workloads = tuple(
        workload
        for document in documents
        if document.kind in WORKLOAD_KINDS
        for workload in _workloads(document, least)
    )
    return Cluster(
        documents=documents,
        workloads=workloads,
        least=least,
        mesh_retries=_mesh_retries(documents),
    )


def ignored(documents: tuple[Document, ...]) -> dict[str, int]:
    """Return how many objects of each kind nobody looks at."""
    return dict(
        sorted(Counter(each.kind for each in documents if each.kind not in KNOWN_KINDS).items())
    )


def _workloads(document: Document, least: Mapping[str, Any]) -> Iterator[Workload]:
    for container in items(document.at("spec", "template", "spec"), "containers"):
        hop = _started(container) or hop_of(str(container.get("name", "")))
        if hop is None and len(items(document.at("spec", "template", "spec"), "containers")) == 1:
            hop = hop_of(document.name)
        if hop is None:
            continue
        yield Workload(
            document=document,
            hop=hop,
            container=container,
            replica_count=_least_pods(document, least),
        )


def _least_pods(document: Document, least: Mapping[str, Any]) -> int:
    declared = document.at("spec", "replicas")
    count = least.get(document.name, declared if declared is not None else 1)
    return count if isinstance(count, int) else 1


def _injected(document: Document) -> bool:
    """Tell whether a namespace, or the pods of a workload, are put into a mesh."""
    around = ("spec", "template") if document.kind in WORKLOAD_KINDS else ()
    if not around and document.kind != "Namespace":
        return False
    labels = table(document.body, *around, "metadata", "labels")
    return (
        labels.get(NAMESPACE_INJECT) == "enabled"
        or labels.get(INJECT) == "true"
        or labels.get(AMBIENT) == "ambient"
        or REVISION in labels
    )


def _started(container: Mapping[str, Any]) -> str | None:
    """Return the hop whose module a container starts."""
    words = [*texts(container, "command"), *texts(container, "args")]
    text = [part for word in words for part in word.split()]
    for hop in HOPS:
        if (GATEWAY if hop == GATEWAY else f"services.{hop}") in text:
            named = [part.removeprefix(AS) for part in text if part.startswith(AS)]
            return named[-1] if named and DEPLOYMENTS.get(named[-1]) == hop else hop
    return None


def _mesh_retries(documents: tuple[Document, ...]) -> Mapping[str, Any] | None:
    for document in documents:
        if document.kind == "IstioOperator":
            found = document.at("spec", "meshConfig", "defaultHttpRetryPolicy")
        elif document.kind == "MeshConfig":
            found = at(document.body, "defaultHttpRetryPolicy")
        else:
            continue
        if isinstance(found, Mapping):
            return found
    return None
