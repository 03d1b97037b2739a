"""Writes which pods may reach which: what the call graph says, and names."""

from collections.abc import Iterator
from typing import Any

from gateway.manifests.rendering.names import (
    EDGE_NAMESPACE,
    PART_OF,
    PROCESSES,
    Body,
    described,
    labelled,
    object_name,
)
from gateway.manifests.rendering.outside import Place, places
from gateway.manifests.rendering.pods import metrics_port, ports
from services.runtime.config import Config
from services.runtime.topology import EDGES, GATEWAY

MONITORING_NAMESPACE = "monitoring"
"""Where Prometheus is."""
PRIVATE = (
    "10.0.0.0/8",
    "100.64.0.0/10",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.168.0.0/16",
)
"""What is no provider outside: the cluster, and what machines tell about themselves."""
DNS = 53


def network_policies(config: Config) -> list[Body]:
    """Return that nobody reaches anybody, and then who may."""
    return [
        _policy("default-deny", {}, {"policyTypes": ["Ingress", "Egress"]}),
        _policy("dns", {"matchLabels": PART_OF}, {"policyTypes": ["Egress"], "egress": [_dns()]}),
        *(_hop(hop, config) for hop in PROCESSES),
    ]


def callers(hop: str) -> list[str]:
    """Return who calls a hop; the gateway asks every hop how it is."""
    found = [edge.caller for edge in EDGES if edge.callee == hop]
    return found if hop == GATEWAY or GATEWAY in found else [*found, GATEWAY]


def callees(hop: str) -> list[str]:
    """Return whom a hop calls, providers apart."""
    return [each for each in PROCESSES if hop in callers(each)]


def _hop(hop: str, config: Config) -> Body:
    own = list(ports(hop, config).values())
    who: list[Body] = [{"podSelector": labelled(each)} for each in callers(hop)]
    if hop == GATEWAY:
        who = [{"namespaceSelector": _named(EDGE_NAMESPACE)}]
    ingress = [{"from": who, "ports": _tcp(*own)}]
    if number := metrics_port(hop, config):
        prometheus = {"namespaceSelector": _named(MONITORING_NAMESPACE)}
        ingress.append({"from": [prometheus], "ports": _tcp(number)})
    egress = list(_egress(hop, config))
    return _policy(
        object_name(hop),
        labelled(hop),
        {"policyTypes": ["Ingress", "Egress"], "ingress": ingress, "egress": egress},
    )


def _egress(hop: str, config: Config) -> Iterator[Body]:
    for callee in callees(hop):
        yield {
            "to": [{"podSelector": labelled(callee)}],
            "ports": _tcp(config.port(callee)),
        }
    for place in places(hop, config):
        yield {"to": [_peer(place)], "ports": _tcp(place.port)}


def _peer(place: Place) -> Body:
    if place.namespace:
        return {"namespaceSelector": _named(place.namespace)}
    if place.block:
        # Whoever writes an address means it, a private one as well.
        return {"ipBlock": {"cidr": place.block}}
    return {"ipBlock": {"cidr": "0.0.0.0/0", "except": list(PRIVATE)}}


def _dns() -> Body:
    return {
        "to": [
            {
                "namespaceSelector": _named("kube-system"),
                "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}},
            }
        ],
        "ports": [{"protocol": each, "port": DNS} for each in ("UDP", "TCP")],
    }


def _policy(name: str, pods: Body, rules: Body) -> Body:
    policy = described("networking.k8s.io/v1", "NetworkPolicy", name)
    return policy | {"spec": {"podSelector": pods, **rules}}


def _named(namespace: str) -> Body:
    return {"matchLabels": {"kubernetes.io/metadata.name": namespace}}


def _tcp(*numbers: int) -> list[dict[str, Any]]:
    return [{"protocol": "TCP", "port": number} for number in numbers]
