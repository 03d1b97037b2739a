"""Holds selectors to selecting what is there: the cluster takes one that selects nothing."""

from collections.abc import Iterator, Mapping
from typing import Any

from gateway.manifests.cluster import WORKLOAD_KINDS, Cluster
from gateway.manifests.documents import Document, at, items, table
from gateway.manifests.labels import (
    contains,
    namespace_of,
    pod_labels,
    pod_makers,
    selects,
)
from services.runtime.checks.finding import Finding, violation

_SELECTORS: Mapping[str, tuple[str, ...]] = {
    "PodDisruptionBudget": ("spec", "selector"),
    "NetworkPolicy": ("spec", "podSelector"),
    "AuthorizationPolicy": ("spec", "selector"),
    "PeerAuthentication": ("spec", "selector"),
    "RequestAuthentication": ("spec", "selector"),
    "Telemetry": ("spec", "selector"),
    "Sidecar": ("spec", "workloadSelector"),
}
"""Where the objects that choose pods say which."""
GATEWAY_LABEL = "gateway.networking.k8s.io/gateway-name"
"""The mesh gives it to the pods that it starts for a Gateway."""


def selector_findings(cluster: Cluster) -> Iterator[Finding]:
    """Yield the selectors that select nothing, or not what they are meant to."""
    for document in cluster.of_kind(*WORKLOAD_KINDS):
        yield from _own_pods(document)
    if not any(True for _ in cluster.of_kind(*WORKLOAD_KINDS)):
        return
    for document in cluster.of_kind("Service"):
        yield from _service(document, cluster)
    for document in cluster.of_kind(*_SELECTORS):
        yield from _chooser(document, cluster)


def _own_pods(document: Document) -> Iterator[Finding]:
    labels = pod_labels(document)
    selector = document.at("spec", "selector")
    if selector is not None and not selects(selector, labels):
        yield violation(
            "pods-selected",
            f"{document.where}: its selector does not select its own pods, whose labels are "
            f"{_said(labels)}; give both the same labels",
        )
    for spread in items(document.at("spec", "template", "spec"), "topologySpreadConstraints"):
        if not selects(spread.get("labelSelector"), labels):
            yield violation(
                "pods-selected",
                f"{document.where}: its topologySpreadConstraints select no pod of its own, so "
                f"they spread nothing; select {_said(labels)}",
            )


def _chooser(document: Document, cluster: Cluster) -> Iterator[Finding]:
    selector = document.at(*_SELECTORS[document.kind])
    # Istio writes labels where Kubernetes writes `matchLabels`, in a Sidecar alone.
    labels = at(selector, "labels") if document.kind == "Sidecar" else None
    selector = {"matchLabels": labels} if labels is not None else selector
    if not selector:
        return
    makers = list(pod_makers(cluster, namespace_of(document)))
    # What others install in namespaces of theirs, or an edge of its own account, is not here.
    if not makers or GATEWAY_LABEL in table(selector, "matchLabels"):
        return
    if not any(selects(selector, pod_labels(each)) for each in makers):
        yield violation(
            "pods-selected",
            f"{document.where}: it selects {_said(selector)}, which no pod here has, so it says "
            "nothing to anybody; write the labels of the pods it is meant for",
        )


def _service(document: Document, cluster: Cluster) -> Iterator[Finding]:
    selector = document.at("spec", "selector")
    if not selector:
        return
    chosen = [
        each
        for each in pod_makers(cluster, namespace_of(document))
        if contains(pod_labels(each), selector)
    ]
    if not chosen:
        yield violation(
            "pods-selected",
            f"{document.where}: it selects {_said(selector)}, which no pod here has, so every "
            "call to it is refused; write the labels of the pods it is meant for",
        )
    for maker in chosen:
        yield from _target_ports(document, maker)


def _target_ports(service: Document, maker: Document) -> Iterator[Finding]:
    declared = list(container_ports(maker))
    names = [port.get("name") for port in declared]
    numbers = [port.get("containerPort") for port in declared]
    for port in items(service.at("spec"), "ports"):
        target = port.get("targetPort", port.get("port"))
        # A container may listen where it declares nothing, so only declared ones contradict.
        if isinstance(target, int) and (target in numbers or not declared):
            continue
        if target not in names:
            there = ", ".join(
                f"{each.get('name')} ({each.get('containerPort')})" for each in declared
            )
            yield violation(
                "target-port-there",
                f"{service.where}: port {port.get('port')} leads to {target!r}, which no container "
                f"of {maker.kind} {maker.name} opens; it opens {there or 'nothing by name'}",
            )


def container_ports(maker: Document) -> Iterator[Mapping[str, Any]]:
    """Yield the ports that the containers of a pod declare."""
    spec = maker.at("spec", "template", "spec")
    # A sidecar that starts first is an init container that stays.
    for container in (*items(spec, "containers"), *items(spec, "initContainers")):
        yield from items(container, "ports")


def _said(labels: Any) -> str:
    labels = at(labels, "matchLabels") or labels
    if not isinstance(labels, Mapping):
        return str(labels)
    return ", ".join(f"{key}={value}" for key, value in labels.items()) or "none"
