"""Holds what stands before the hops to speaking gRPC and to bearing silence."""

from collections.abc import Iterator, Mapping
from typing import Any

from gateway.manifests.cluster import Cluster
from gateway.manifests.documents import Document, items
from gateway.manifests.hops import hop_of
from gateway.manifests.lengths import seconds
from gateway.manifests.pools import idle_findings
from services.runtime.checks.finding import Finding, Severity
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
