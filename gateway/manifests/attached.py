"""Holds the routes of the Gateway API to listeners that take them: another leads nowhere."""

from collections.abc import Iterator, Mapping
from typing import Any

from gateway.manifests.cluster import Cluster
from gateway.manifests.documents import Document, at, items, texts
from gateway.manifests.labels import namespace_labels, namespace_of, selects
from services.runtime.checks.finding import Finding, violation

ROUTES = ("GRPCRoute", "HTTPRoute")


def attached_findings(cluster: Cluster) -> Iterator[Finding]:
    """Yield the routes that no listener of their Gateway takes, as far as the Gateways are here."""
    gateways = list(cluster.of_kind("Gateway"))
    for route in cluster.of_kind(*ROUTES):
        for parent in items(route.at("spec"), "parentRefs"):
            if gateways and parent.get("kind", "Gateway") == "Gateway":
                yield from _attached(route, parent, gateways, cluster)


def _attached(
    route: Document, parent: Mapping[str, Any], gateways: list[Document], cluster: Cluster
) -> Iterator[Finding]:
    namespace = str(parent.get("namespace") or namespace_of(route))
    name = parent.get("name")
    gateway = next(
        (each for each in gateways if (each.name, namespace_of(each)) == (name, namespace)), None
    )
    if gateway is None:
        there = ", ".join(f"{each.name} in {namespace_of(each)}" for each in gateways)
        yield violation(
            "routes-attached",
            f"{route.where}: its parent {name} in {namespace} is not here, so it leads nowhere; "
            f"there are {there}",
        )
        return
    section = parent.get("sectionName")
    listeners = [
        each
        for each in items(gateway.at("spec"), "listeners")
        if section in (None, each.get("name"))
    ]
    refusals = [_refusal(route, each, gateway, cluster) for each in listeners]
    if all(refusals):
        why = "; ".join(f"{text}" for text in refusals if text) or f"none is called {section}"
        yield violation(
            "routes-attached",
            f"{route.where}: no listener of {gateway.where} takes it, so it leads nowhere: {why}",
        )


def _refusal(
    route: Document, listener: Mapping[str, Any], gateway: Document, cluster: Cluster
) -> str:
    """Return why a listener does not take a route; empty when it does."""
    name, allowed = listener.get("name"), at(listener, "allowedRoutes")
    kinds = [each.get("kind") for each in items(allowed, "kinds")]
    if kinds and route.kind not in kinds:
        return f"{name} takes {', '.join(map(str, kinds))}"
    whence = at(allowed, "namespaces", "from") or "Same"
    namespace = namespace_of(route)
    labels = namespace_labels(namespace, cluster.of_kind("Namespace"))
    selector = at(allowed, "namespaces", "selector")
    if whence == "Same" and namespace != namespace_of(gateway):
        return f"{name} takes those of its own namespace"
    if whence == "Selector" and not selects(selector, labels):
        return f"{name} takes no route of {namespace}"
    hosts, own = texts(route.body, "spec", "hostnames"), listener.get("hostname")
    if hosts and own and not any(_meet(host, str(own)) for host in hosts):
        return f"{name} is for {own}"
    return ""


def _meet(one: str, other: str) -> bool:
    """Tell whether two names have a host in common; `*.` stands for one label or more."""
    if one.startswith("*.") and other.startswith("*."):
        return one.endswith(other[1:]) or other.endswith(one[1:])
    if one.startswith("*."):
        return other.endswith(one[1:])
    return one == other or (other.startswith("*.") and one.endswith(other[1:]))
