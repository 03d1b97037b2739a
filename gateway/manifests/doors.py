"""Holds what stands before the hops to speaking gRPC and to bearing silence."""

from collections.abc import Iterator, Mapping
from typing import Any

from gateway.manifests.cluster import Cluster, Workload
from gateway.manifests.documents import Document, items, table
from gateway.manifests.hops import hop_of
from gateway.manifests.labels import contains, namespace_of, pod_labels
from gateway.manifests.lengths import seconds
from gateway.manifests.pools import idle_findings
from gateway.manifests.rendering.names import GRPC
from gateway.manifests.rendering.pods import ports
from gateway.manifests.selectors import container_ports
from services.runtime.checks.finding import Finding, Severity, violation
from services.runtime.config import Config

GRPC_PROTOCOLS = ("grpc", "kubernetes.io/h2c")
IDLE_ANNOTATIONS = (
    "nginx.ingress.kubernetes.io/proxy-read-timeout",
    "nginx.ingress.kubernetes.io/proxy-send-timeout",
    "service.beta.kubernetes.io/aws-load-balancer-connection-idle-timeout",
)
"""Limits on silence, in seconds, that balancers take from annotations."""
_ENVOY_IDLE = ("stream_idle_timeout", "idle_timeout")


def door_findings(cluster: Cluster, config: Config) -> Iterator[Finding]:
    """Yield what is wrong with services, ingresses and proxies."""
    heartbeat_s = config.heartbeat.interval_s
    for document in cluster.of_kind("Service"):
        hop = hop_of(document.name)
        if hop is not None:
            yield from _protocol(document, config.port(hop))
            yield from _targets(document, hop, cluster, ports(hop, config))
        yield from _annotations(document, heartbeat_s)
    for document in cluster.of_kind("Ingress"):
        yield from _annotations(document, heartbeat_s)
    for document in cluster.of_kind("EnvoyFilter"):
        yield from _proxy_limits(document, document.body, heartbeat_s)


def _protocol(document: Document, number: int) -> Iterator[Finding]:
    ports = items(document.at("spec"), "ports")
    ours = [port for port in ports if number in (port.get("port"), port.get("targetPort"))]
    for port in ours or (ports if len(ports) == 1 else []):
        name, protocol = str(port.get("name", "")), port.get("appProtocol")
        if protocol in GRPC_PROTOCOLS or (protocol is None and name.split("-")[0] == "grpc"):
            continue
        yield Finding(
            rule="grpc-named",
            severity=Severity.VIOLATION,
            text=(
                f"{document.where}: port {port.get('port')} does not say that it is gRPC, so the "
                "mesh balances connections and not calls, and ejects nobody; set appProtocol: grpc"
            ),
        )


def _targets(
    service: Document, hop: str, cluster: Cluster, doors: Mapping[str, int]
) -> Iterator[Finding]:
    """Look where the ports lead that callers of a hop ask at."""
    selector = table(service.body, "spec", "selector")
    chosen = [
        each
        for each in cluster.workloads
        if each.hop == hop
        and selector
        and namespace_of(each.document) == namespace_of(service)
        and contains(pod_labels(each.document), selector)
    ]
    for port in items(service.at("spec"), "ports"):
        door = _door(port, doors)
        for workload in chosen if door is not None else ():
            number = _number(port.get("targetPort", port.get("port")), workload)
            if number not in (None, door):
                yield violation(
                    "target-port-there",
                    f"{service.where}: port {port.get('port')} leads to {number} of "
                    f"{workload.document.kind} {workload.document.name}, and {hop} answers it at "
                    f"{door}; name that in targetPort",
                )


def _door(port: Mapping[str, Any], doors: Mapping[str, int]) -> int | None:
    """Return the door that a port of a Service is meant for; None for another."""
    if port.get("appProtocol") in GRPC_PROTOCOLS:
        return doors[GRPC]
    named = doors.get(str(port.get("name")))
    return next((each for each in doors.values() if each == port.get("port")), named)


def _number(target: Any, workload: Workload) -> int | None:
    """Return the port that a target means in a pod; None when it is not known."""
    if isinstance(target, int):
        return target
    declared = container_ports(workload.document)
    found = (each.get("containerPort") for each in declared if each.get("name") == target)
    return next((each for each in found if isinstance(each, int)), None)


def _annotations(document: Document, heartbeat_s: float) -> Iterator[Finding]:
    annotations = document.at("metadata", "annotations")
    if not isinstance(annotations, Mapping):
        return
    for name in IDLE_ANNOTATIONS:
        text = str(annotations.get(name, ""))
        if text.isdigit():
            yield from idle_findings(document.where, name, float(text), heartbeat_s)


def _proxy_limits(document: Document, body: Any, heartbeat_s: float) -> Iterator[Finding]:
    """Look for limits on silence at any depth: a patch may hold any part of Envoy's settings."""
    if isinstance(body, Mapping):
        for key, value in body.items():
            idle_s = seconds(value) if key in _ENVOY_IDLE else None
            yield from idle_findings(document.where, str(key), idle_s, heartbeat_s)
            yield from _proxy_limits(document, value, heartbeat_s)
    elif isinstance(body, list):
        for each in body:
            yield from _proxy_limits(document, each, heartbeat_s)
