"""Holds what leads to a host to hosts, ports and subsets that are there."""

from collections.abc import Iterator, Mapping
from typing import Any

from gateway.manifests.cluster import Cluster
from gateway.manifests.documents import Document, at, items, texts
from gateway.manifests.labels import namespace_of
from services.runtime.checks.finding import Finding, violation

_CLUSTER = (".svc", ".svc.cluster.local")
"""How the name of a Service of another namespace ends."""
_MESH = "mesh"


def host_findings(cluster: Cluster) -> Iterator[Finding]:
    """Yield the hosts that no Service has; names outside of the cluster are not looked up."""
    if not any(True for _ in cluster.of_kind("Service")):
        return
    for document in cluster.of_kind("DestinationRule"):
        yield from _host(document, document.at("spec", "host"), cluster)
    for document in cluster.of_kind("VirtualService"):
        # At an edge alone the hosts are what the world asks for.
        if _MESH in (texts(document.body, "spec", "gateways") or [_MESH]):
            for host in texts(document.body, "spec", "hosts"):
                yield from _host(document, host, cluster)
        for route in items(document.at("spec"), "http"):
            for each in items(route, "route"):
                yield from _destination(document, at(each, "destination"), cluster)
    for document in cluster.of_kind("GRPCRoute", "HTTPRoute"):
        for rule in items(document.at("spec"), "rules"):
            for backend in items(rule, "backendRefs"):
                if backend.get("kind", "Service") == "Service":
                    yield from _backend(document, backend, cluster)


def _host(document: Document, host: Any, cluster: Cluster) -> Iterator[Finding]:
    service = service_of(document, host, cluster)
    if host is not None and service is None and is_inside(host):
        yield _absent(document, host, cluster)


def _destination(document: Document, body: Any, cluster: Cluster) -> Iterator[Finding]:
    host, number, subset = at(body, "host"), at(body, "port", "number"), at(body, "subset")
    yield from _host(document, host, cluster)
    service = service_of(document, host, cluster)
    if service is not None and number is not None:
        yield from _port(document, service, number)
    rules = (
        each
        for each in cluster.of_kind("DestinationRule")
        if _short(each.at("spec", "host")) == _short(host)
    )
    subsets = [each.get("name") for rule in rules for each in items(rule.at("spec"), "subsets")]
    if subset is not None and subset not in subsets:
        yield violation(
            "hosts-there",
            f"{document.where}: no DestinationRule names the subset {subset!r} of {host}, so every "
            "call is refused; add it there, or leave it out here",
        )


def _backend(document: Document, backend: Mapping[str, Any], cluster: Cluster) -> Iterator[Finding]:
    name, number = backend.get("name"), backend.get("port")
    namespace = str(backend.get("namespace") or namespace_of(document))
    for service in cluster.of_kind("Service"):
        if service.name == name and namespace_of(service) == namespace:
            if number is not None:
                yield from _port(document, service, number)
            return
    yield _absent(document, name, cluster)


def _port(document: Document, service: Document, number: Any) -> Iterator[Finding]:
    ports = [port.get("port") for port in items(service.at("spec"), "ports")]
    if number not in ports:
        yield violation(
            "hosts-there",
            f"{document.where}: it leads to port {number} of {service.name}, which has "
            f"{', '.join(map(str, ports))}",
        )


def service_of(document: Document, host: Any, cluster: Cluster) -> Document | None:
    """Return the Service that a host means where an object lies; None when it is not here."""
    name, _, rest = str(host).partition(".")
    namespace = rest.split(".")[0] or namespace_of(document)
    for service in cluster.of_kind("Service"):
        there = namespace_of(service)
        # What names no namespace goes to where it is applied.
        if service.name == name and (there == namespace or "" in (there, namespace)):
            return service
    return None


def is_inside(host: Any) -> bool:
    """Return whether a host can only be a Service of this cluster."""
    text = str(host)
    return "*" not in text and ("." not in text or text.endswith(_CLUSTER))


def _short(host: Any) -> str:
    return str(host).split(".", 1)[0]


def _absent(document: Document, host: Any, cluster: Cluster) -> Finding:
    there = ", ".join(dict.fromkeys(each.name for each in cluster.of_kind("Service")))
    return violation(
        "hosts-there",
        f"{document.where}: no Service here is called {host}, so nothing holds what it says; "
        f"there are {there}",
    )
