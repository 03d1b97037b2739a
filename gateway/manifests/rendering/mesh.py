"""Writes the mesh: who may call whom, how long, how often, and when a pod is ejected."""

import math
from collections.abc import Iterator, Sequence

from gateway.manifests.hops import Method, methods, needed_s
from gateway.manifests.pools import permits_towards
from gateway.manifests.rendering.names import (
    GRPC,
    HTTP,
    Body,
    described,
    object_name,
)
from gateway.manifests.rendering.pods import ports
from gateway.manifests.routes import SAFE_RETRIES
from gateway.sizes import requests_let_through
from services.runtime.checks.tree import Tree
from services.runtime.topology import GATEWAY

API = "networking.istio.io/v1"
CONNECT_TIMEOUT = "250ms"
RETRIES: Body = {"attempts": 1, "retryOn": ",".join(sorted(SAFE_RETRIES))}
"""Once, and only what has never reached anybody."""
EJECTION: Body = {
    "consecutiveGatewayErrors": 3,
    "consecutive5xxErrors": 10,
    "interval": "5s",
    "baseEjectionTime": "30s",
    "maxEjectionPercent": 50,
}
"""When a pod is ejected by what it answers. No field may be left out: each has a default that
ejects the wrong pods, or none."""
HTTP_EJECTION: Body = {
    # Over HTTP the gateway says 502 and 504 for what is behind it: no reason to eject a gateway.
    "consecutiveGatewayErrors": 0,
    "consecutive5xxErrors": 0,
    "splitExternalLocalOriginErrors": True,
    "consecutiveLocalOriginFailures": 3,
    "interval": "5s",
    "baseEjectionTime": "30s",
    "maxEjectionPercent": 50,
}
"""When a gateway is ejected for what it does over HTTP: when it cannot be reached."""
WATCH = "/sixhop.runtime.v1.RuntimeService/WatchSnapshots"
"""The stream that every hop serves beside its own."""


def destination(name: str, hop: str, tree: Tree) -> Body:
    """Return how callers reach a service of a hop, and when they avoid one of its pods."""
    if hop == GATEWAY:
        # Its callers are the world; how many it takes is its own business.
        policy = _policy(None, EJECTION)
        number = ports(hop, tree.config)[HTTP]
        policy["portLevelSettings"] = [{"port": {"number": number}, **_policy(None, HTTP_EJECTION)}]
    else:
        policy = _policy(permits_towards(name, tree), EJECTION)
    return described(API, "DestinationRule", name) | {
        "spec": {"host": name, "trafficPolicy": policy}
    }


def _policy(permits: int | None, ejection: Body) -> Body:
    pool: Body = {"tcp": {"connectTimeout": CONNECT_TIMEOUT}}
    if permits is not None:
        most = requests_let_through(permits)
        pool["http"] = {"http2MaxRequests": most, "maxRetries": most}
    return {
        "loadBalancer": {"simple": "LEAST_REQUEST"},
        "connectionPool": pool,
        "outlierDetection": ejection,
    }


def route(hop: str, tree: Tree) -> Body:
    """Return the ways to a hop: streams without a limit, answers with the one that callers have."""
    return described(API, "VirtualService", object_name(hop)) | {
        "spec": {"hosts": [object_name(hop)], "http": hop_routes(hop, tree, object_name(hop))}
    }


def hop_routes(hop: str, tree: Tree, service: str) -> list[Body]:
    """Return the routes of a hop's calls to a service of it."""
    if hop == GATEWAY:
        return list(_gateway_routes(tree, service))
    streams = [method.path for method in methods(hop) if method.streaming]
    match = [{"uri": {"exact": path}} for path in (*streams, WATCH)]
    answers = [method for method in methods(hop) if not method.streaming]
    return [
        {"name": "streams", "match": match, **way(service, hop, tree)},
        {"name": "answers", "timeout": longest(answers, tree), **way(service, hop, tree)},
    ]


def longest(answers: Sequence[Method], tree: Tree) -> str:
    """Return how long callers wait for any of these answers at most, as the mesh writes it."""
    return f"{max(math.ceil(needed_s(method, tree.config)) for method in answers)}s"


def _gateway_routes(tree: Tree, service: str) -> Iterator[Body]:
    for port in ports(GATEWAY, tree.config):
        number = ports(GATEWAY, tree.config)[port]
        # No limit: the gateway gives each call a deadline of its own, and cuts those of clients.
        yield {"name": port, "match": [{"port": number}], **way(service, GATEWAY, tree, port)}


def way(service: str, hop: str, tree: Tree, port: str = GRPC) -> Body:
    """Return where a route leads to, and what is repeated on it."""
    number = ports(hop, tree.config)[port]
    there = {"destination": {"host": service, "port": {"number": number}}}
    return {"retries": RETRIES, "route": [there]}
