"""Holds that there is what the other rules judge: who takes an object away breaks none of them."""

from collections.abc import Iterator, Mapping

from gateway.manifests.authorization import ROOT_NAMESPACE
from gateway.manifests.cluster import WORKLOAD_KINDS, Cluster
from gateway.manifests.documents import Document, items, table, texts
from gateway.manifests.hops import hop_of
from gateway.manifests.hosts import is_inside, service_of
from gateway.manifests.labels import namespace_of, pod_labels, pod_makers, selects
from services.runtime.checks.finding import Finding, violation, warning

_DIRECTIONS = {"Ingress": "ingress", "Egress": "egress"}

_CLOSE = "add one with podSelector: {} and policyTypes: [Ingress, Egress]"


def absent_findings(cluster: Cluster) -> Iterator[Finding]:
    """Yield what is not there, and would be with the rest of what is.

    Rules of a mesh are missed where there is one, and those of the network there, and where there
    is any of them.
    """
    makers = list(dict.fromkeys(each.document.where for each in cluster.workloads))
    hops = [each for each in cluster.of_kind(*WORKLOAD_KINDS) if each.where in makers]
    namespaces = list(dict.fromkeys(namespace_of(each) for each in hops))
    if cluster.in_mesh:
        for service in cluster.of_kind("Service"):
            yield from _ejected(service, cluster)
        for namespace in namespaces:
            yield from _mesh_closed(namespace, cluster)
    if cluster.in_mesh or any(True for _ in cluster.of_kind("NetworkPolicy")):
        for namespace in namespaces:
            yield from _network_closed(namespace, cluster)
    for maker in hops:
        yield from _kept(maker, cluster)
    yield from _scaled(hops, cluster)


def _ejected(service: Document, cluster: Cluster) -> Iterator[Finding]:
    hop = hop_of(service.name)
    if hop not in {workload.hop for workload in cluster.workloads}:
        return
    for rule in cluster.of_kind("DestinationRule"):
        host = rule.at("spec", "host")
        found = service_of(rule, host, cluster)
        # One with a host that is not there has been told of already.
        if found is service or (rule.name == service.name and found is None and is_inside(host)):
            return
    yield violation(
        "pods-ejected",
        f"{service.where}: no DestinationRule is for it, so a sick pod keeps its share of the "
        "calls; add one with outlierDetection",
    )


def _mesh_closed(namespace: str, cluster: Cluster) -> Iterator[Finding]:
    policies = [
        each
        for each in cluster.of_kind("AuthorizationPolicy")
        if namespace_of(each) in (namespace, ROOT_NAMESPACE)
    ]
    if any(_refuses_others(each) for each in policies):
        return
    what = "no AuthorizationPolicy refuses what none of them names" if policies else (
        "there is no AuthorizationPolicy"
    )  # fmt: skip
    yield violation(
        "closed-by-default",
        f"{_place(namespace, cluster)}: {what}, so whoever is in the mesh may call the pods that "
        "nobody speaks of; add one with spec: {}",
    )


def _refuses_others(policy: Document) -> bool:
    spec = table(policy.body, "spec")
    return (
        spec.get("action", "ALLOW") == "ALLOW"
        and not {"selector", "targetRef", "targetRefs"} & set(spec)
        and all(items(spec, "rules"))
    )


def _network_closed(namespace: str, cluster: Cluster) -> Iterator[Finding]:
    policies = [
        each for each in cluster.of_kind("NetworkPolicy") if namespace_of(each) == namespace
    ]
    if not policies:
        # A choice of whoever has no network that holds them; the mesh refuses as well.
        yield warning(
            "closed-by-default",
            f"{_place(namespace, cluster)}: there is no NetworkPolicy, so the proxies alone keep "
            f"pods from each other; {_CLOSE}",
        )
        return
    for direction, key in _DIRECTIONS.items():
        closing = [each for each in policies if _closes(each, direction, key)]
        if closing and all(items(each.at("spec"), key) for each in closing):
            yield warning(
                "closed-by-default",
                f"{closing[0].where}: it alone closes {direction} of the pods that nobody speaks "
                f"of, and is there for something else; {_CLOSE}",
            )
        if not closing:
            yield violation(
                "closed-by-default",
                f"{_place(namespace, cluster)}: no NetworkPolicy is for all pods and {direction}, "
                f"so those that nobody speaks of are open; {_CLOSE}",
            )


def _closes(policy: Document, direction: str, key: str) -> bool:
    kinds = texts(policy.body, "spec", "policyTypes") or ["Ingress"]
    return (
        isinstance(policy.at("spec", "podSelector"), Mapping)
        and not any(table(policy.body, "spec", "podSelector").values())
        and direction in kinds
        # A rule that names nothing lets everything.
        and all(items(policy.at("spec"), key))
    )


def _place(namespace: str, cluster: Cluster) -> str:
    """Return where a namespace is spoken of: itself, or else the first of its hops."""
    own = (each for each in cluster.of_kind("Namespace") if each.name == namespace)
    hops = (each.document for each in cluster.workloads if namespace_of(each.document) == namespace)
    return next((each.where for each in (*own, *hops)), namespace)


def _kept(maker: Document, cluster: Cluster) -> Iterator[Finding]:
    count = cluster.least_pods(maker)
    if count > 1 and not any(
        _is_for(budget, maker, cluster) for budget in cluster.of_kind("PodDisruptionBudget")
    ):
        yield violation(
            "budget-holds",
            f"{maker.where}: no PodDisruptionBudget is for its {count} pods, so all of them may be "
            "evicted at once; add one with maxUnavailable: 1",
        )


def _is_for(budget: Document, maker: Document, cluster: Cluster) -> bool:
    if namespace_of(budget) != namespace_of(maker):
        return False
    selector = budget.at("spec", "selector")
    chosen = [
        each.where
        for each in pod_makers(cluster, namespace_of(maker))
        if selects(selector, pod_labels(each))
    ]
    # One that selects nobody has been told of already.
    return maker.where in chosen or (not chosen and budget.name == maker.name)


def _scaled(hops: list[Document], cluster: Cluster) -> Iterator[Finding]:
    scaled = {
        (namespace_of(each), _target(each)) for each in cluster.of_kind("HorizontalPodAutoscaler")
    }
    if not any((namespace_of(each), each.name) in scaled for each in hops):
        return
    for maker in hops:
        if maker.kind != "DaemonSet" and (namespace_of(maker), maker.name) not in scaled:
            yield warning(
                "pods-scaled",
                f"{maker.where}: no HorizontalPodAutoscaler is for it, and others have one, so it "
                "keeps its number of pods whatever the load is; add one",
            )


def _target(scaler: Document) -> str:
    return str(scaler.at("spec", "scaleTargetRef", "name"))
