"""Holds what scales and what evicts to the pods that are there."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from gateway.manifests.cluster import WORKLOAD_KINDS, Cluster
from gateway.manifests.documents import Document, at, items
from gateway.manifests.labels import namespace_of, pod_labels, pod_makers, selects
from services.runtime.checks.finding import Finding, violation, warning


def scaling_findings(cluster: Cluster) -> Iterator[Finding]:
    """Yield what is wrong with the scalers and the budgets of disruption."""
    for document in cluster.of_kind("HorizontalPodAutoscaler"):
        yield from _scaler(document, cluster)
    for document in cluster.of_kind("PodDisruptionBudget"):
        yield from _budget(document, cluster)


def _scaler(document: Document, cluster: Cluster) -> Iterator[Finding]:
    kind, name = (document.at("spec", "scaleTargetRef", key) for key in ("kind", "name"))
    least, most = (document.at("spec", key) for key in ("minReplicas", "maxReplicas"))
    if isinstance(least, int) and isinstance(most, int) and least > most:
        yield violation(
            "scaler-scales",
            f"{document.where}: minReplicas {least} is above maxReplicas {most}; lower one",
        )
    target = next(
        (
            each
            for each in pod_makers(cluster, namespace_of(document))
            if each.name == name and kind in (each.kind, None)
        ),
        None,
    )
    named = (kind, name, namespace_of(document))
    # Compared one by one: a manifest may hold anything, and not all of that has a hash.
    if target is None and any(named == made for made in _made_by_mesh(cluster)):
        return
    if target is None:
        yield violation(
            "scaler-scales",
            f"{document.where}: it scales {kind} {name}, which is not here; name one of "
            f"{', '.join(_named(cluster)) or 'the workloads'}",
        )
        return
    if target.at("spec", "replicas") is not None:
        yield warning(
            "scaler-scales",
            f"{target.where}: replicas is written, so whoever applies it again undoes what "
            f"{document.kind} {document.name} has scaled; leave it out",
        )
    for metric in items(document.at("spec"), "metrics"):
        yield from _metric(document, target, metric)


def _metric(document: Document, target: Document, metric: Mapping[str, Any]) -> Iterator[Finding]:
    source = metric.get("containerResource")
    if not isinstance(source, Mapping):
        return
    spec = target.at("spec", "template", "spec")
    containers = {str(each.get("name")): each for each in items(spec, "containers")}
    chosen = containers.get(str(source.get("container")))
    if chosen is None:
        yield violation(
            "scaler-scales",
            f"{document.where}: it looks at container {source.get('container')!r}, and "
            f"{target.kind} {target.name} has {', '.join(containers)}; it would never scale",
        )
        return
    resource = str(source.get("name"))
    by_share = at(source, "target", "type") == "Utilization"
    if by_share and at(chosen, "resources", "requests", resource) is None:
        yield violation(
            "scaler-scales",
            f"{document.where}: it scales by a share of the {resource} that "
            f"{source.get('container')} requests, which requests none; set "
            f"resources.requests.{resource} there",
        )


def _made_by_mesh(cluster: Cluster) -> set[tuple[str, str, str]]:
    """Return the Deployments that the mesh makes for Gateways: each is called GATEWAY-CLASS."""
    return {
        ("Deployment", f"{each.name}-{each.at('spec', 'gatewayClassName')}", namespace_of(each))
        for each in cluster.of_kind("Gateway")
    }


def _named(cluster: Cluster) -> Iterator[str]:
    return (f"{each.kind} {each.name}" for each in cluster.of_kind(*WORKLOAD_KINDS))


def _budget(document: Document, cluster: Cluster) -> Iterator[Finding]:
    least, most = (document.at("spec", key) for key in ("minAvailable", "maxUnavailable"))
    if least is not None and most is not None:
        yield violation(
            "budget-holds",
            f"{document.where}: it has both minAvailable and maxUnavailable, which the cluster "
            "refuses; keep maxUnavailable: 1",
        )
        return
    for maker in pod_makers(cluster, namespace_of(document)):
        if not selects(document.at("spec", "selector"), pod_labels(maker)):
            continue
        count = cluster.least_pods(maker)
        # Both are rounded up, as the controller does.
        away = _pods(most, count) if least is None else count - _pods(least, count)
        if away < 1:
            yield violation(
                "budget-holds",
                f"{document.where}: of the {count} pods of {maker.kind} {maker.name} none may "
                "leave, so no node can be drained; set maxUnavailable: 1 alone",
            )
        elif count == 1:
            yield warning(
                "budget-holds",
                f"{document.where}: {maker.kind} {maker.name} has one pod at least, so this keeps "
                "none of several; give it a scaler with minReplicas: 3, or take this out",
            )
        elif away >= count:
            yield warning(
                "budget-holds",
                f"{document.where}: all {count} pods of {maker.kind} {maker.name} may leave at "
                "once; set maxUnavailable: 1 alone",
            )


def _pods(said: Any, count: int) -> int:
    if isinstance(said, int):
        return said
    if isinstance(said, str) and said.endswith("%") and said[:-1].isdigit():
        return math.ceil(int(said[:-1]) * count / 100)
    return 1
