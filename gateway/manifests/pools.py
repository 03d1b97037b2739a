"""Holds the pools and the ejection of a mesh to what the hops need of them."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from gateway.manifests.cluster import Cluster
from gateway.manifests.documents import Document, at, items
from gateway.manifests.hops import groups_behind, hop_of, longest_s
from gateway.manifests.lengths import seconds
from services.runtime.call import Mode
from services.runtime.checks.finding import Finding, violation, warning
from services.runtime.checks.tree import Tree
from services.runtime.heartbeat import MAX_HEARTBEAT_SHARE
from services.runtime.outgoing import CALLEES
from services.runtime.topology import GATEWAY, TOOL

DEFAULT_MAX_EJECTION_PERCENT = 10
DEFAULT_CONSECUTIVE_5XX = 5


def pool_findings(cluster: Cluster, tree: Tree) -> Iterator[Finding]:
    """Yield what is wrong with the rules of what stands behind a host."""
    for document in cluster.of_kind("DestinationRule"):
        host = str(document.at("spec", "host"))
        hop = hop_of(host)
        if hop is None:
            continue
        for policy in _policies(document):
            pool = at(policy, "connectionPool") or {}
            yield from _connections(document, host, pool, tree)
            yield from _idle(document, pool, tree.config.heartbeat.interval_s)
        whole = document.at("spec", "trafficPolicy")
        yield from _ejection(document, host, at(whole, "outlierDetection"), cluster)


def _policies(document: Document) -> Iterator[Mapping[str, Any]]:
    """Yield the policies of an object: its own, those of ports and those of subsets."""
    subsets = items(document.at("spec"), "subsets")
    policies = (at(each, "trafficPolicy") for each in subsets)
    for policy in (document.at("spec", "trafficPolicy"), *policies):
        if isinstance(policy, Mapping):
            yield policy
            yield from items(policy, "portLevelSettings")


def permits_towards(host: str, tree: Tree) -> int:
    """Return how many calls one process may have under way to a hop, or to a part of it.

    Raises:
        KeyError: nobody of the suite calls it, such as the gateway.
    """
    hop = hop_of(host)
    groups = groups_behind(host) if hop == TOOL else (CALLEES[hop or host].group,)
    return sum(tree.policies.bulkhead.size(group).allowed for group in groups)


def _connections(
    document: Document, host: str, pool: Mapping[str, Any], tree: Tree
) -> Iterator[Finding]:
    hop = hop_of(host) or host
    most = at(pool, "http", "http2MaxRequests")
    enforced = tree.engine and tree.policies.bulkhead.mode is Mode.ENFORCE
    if isinstance(most, int) and most > 0 and hop != GATEWAY and enforced:
        permits = permits_towards(host, tree)
        if most < permits:
            yield violation(
                "pool-holds-bulkhead",
                f"{document.where}: http2MaxRequests {most} is below the {permits} permits that "
                f"one caller has for {host}, so the sidecar refuses first, with UNAVAILABLE and "
                f"without a retry-after; raise it to {permits}",
            )
    longest = longest_s(hop, tree.config)
    lasting_s = seconds(at(pool, "tcp", "maxConnectionDuration"))
    if lasting_s is not None and lasting_s < longest:
        yield violation(
            "stream-not-cut",
            f"{document.where}: maxConnectionDuration {lasting_s:g} s cuts runs, which may last "
            f"{longest:.1f} s; leave it out",
        )
    if at(pool, "http", "maxRequestsPerConnection") == 1:
        yield warning(
            "pool-multiplexes",
            f"{document.where}: maxRequestsPerConnection 1 opens a connection for every call; "
            "leave it out",
        )
    yield from _connect(document, hop, pool, tree)


def _connect(
    document: Document, hop: str, pool: Mapping[str, Any], tree: Tree
) -> Iterator[Finding]:
    text = at(pool, "tcp", "connectTimeout")
    connect_s = seconds(text) if text is not None else 10.0
    if hop == GATEWAY or connect_s is None or not pool:
        return
    wait_s = tree.config.limits(hop).step_timeout_s
    if connect_s >= wait_s:
        said = f"connectTimeout {connect_s:g} s" if text else "connectTimeout is left out: 10 s"
        yield violation(
            "connect-fits",
            f"{document.where}: {said}, and callers wait {wait_s:g} s for {hop}, so a pod that "
            "cannot be reached is never counted as failed; set it to 250ms",
        )


def _idle(document: Document, pool: Mapping[str, Any], heartbeat_s: float) -> Iterator[Finding]:
    for layer in ("tcp", "http"):
        idle_s = seconds(at(pool, layer, "idleTimeout"))
        yield from idle_findings(document.where, f"{layer}.idleTimeout", idle_s, heartbeat_s)


def idle_findings(
    where: str, name: str, idle_s: float | None, heartbeat_s: float
) -> Iterator[Finding]:
    """Yield that a limit on silence is shorter than three heartbeats; zero and None are none."""
    least_s = heartbeat_s / MAX_HEARTBEAT_SHARE
    if idle_s is not None and 0 < idle_s < least_s:
        yield violation(
            "idle-holds-heartbeats",
            f"{where}: {name} {idle_s:g} s is less than three heartbeats of {heartbeat_s:g} s, "
            f"so a run that thinks is cut; raise it to at least {least_s:g} s",
        )


def _ejection(document: Document, host: str, outlier: Any, cluster: Cluster) -> Iterator[Finding]:
    where = document.where
    if not isinstance(outlier, Mapping):
        yield violation(
            "pods-ejected",
            f"{where}: without outlierDetection a sick pod keeps its share of the calls; set "
            "consecutiveGatewayErrors: 3, consecutive5xxErrors: 10 and maxEjectionPercent: 50",
        )
        return
    if not outlier.get("consecutiveGatewayErrors"):
        yield violation(
            "pods-ejected",
            f"{where}: consecutiveGatewayErrors is left out, so UNAVAILABLE and DEADLINE_EXCEEDED "
            "count only among the 5xx errors; set it to 3",
        )
    internal = outlier.get("consecutive5xxErrors", DEFAULT_CONSECUTIVE_5XX)
    if isinstance(internal, int) and 0 < internal <= DEFAULT_CONSECUTIVE_5XX:
        said = f"is {internal}" if "consecutive5xxErrors" in outlier else "is left out"
        yield warning(
            "pods-ejected",
            f"{where}: consecutive5xxErrors {said}, and {internal} INTERNAL in a row eject a pod, "
            "though a defect that one kind of request meets is in all pods; set it to 10",
        )
    if outlier.get("splitExternalLocalOriginErrors"):
        yield violation(
            "pods-ejected",
            f"{where}: splitExternalLocalOriginErrors sets the proxy's own timeouts apart, where "
            "each answer clears them: a pod that hangs is never ejected; leave it out",
        )
    yield from _percent(document, host, outlier, cluster)


def _percent(
    document: Document, host: str, outlier: Mapping[str, Any], cluster: Cluster
) -> Iterator[Finding]:
    percent = outlier.get("maxEjectionPercent", DEFAULT_MAX_EJECTION_PERCENT)
    count = cluster.replica_count(host)
    if not isinstance(percent, int):
        return
    if count is not None and count > 1 and math.floor(count * percent / 100) < 1:
        yield violation(
            "small-pool-ejects",
            f"{document.where}: maxEjectionPercent {percent} of {count} pods is less than one, so "
            f"none is ever ejected; set it to {math.ceil(100 / count)} or more",
        )
    elif percent >= 100:
        yield warning(
            "small-pool-ejects",
            f"{document.where}: maxEjectionPercent {percent} lets all pods be ejected at once; set "
            "it to 50",
        )
