"""Holds the routes of the Gateway API from outside to the doors and the paths of clients."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from gateway.manifests.cluster import Cluster
from gateway.manifests.documents import Document, at, items
from gateway.manifests.hops import hop_of, longest_s
from gateway.manifests.lengths import seconds
from gateway.manifests.rendering.access import OPERATORS_ALONE
from gateway.manifests.rendering.names import GRPC, HTTP
from gateway.manifests.rendering.pods import ports
from services.runtime.checks.finding import Finding, violation
from services.runtime.config import Config
from services.runtime.topology import GATEWAY

ORDERS = "sixhop.runtime.v1.RuntimeService"
"""Takes the orders of operators; every hop serves it."""
LASTING = ("/v1/chat/completions", "/v1/responses", "/v1/runs/x/events", "/v1/state/events")
"""Where answers over HTTP may be streams, which last as long as their runs."""
_GRPC_PATHS = ("/sixhop.", "/grpc.")


def edge_findings(cluster: Cluster, config: Config) -> Iterator[Finding]:
    """Yield where routes let in what is for operators, cut streams, repeat, or miss the door."""
    for document in cluster.of_kind("GRPCRoute", "HTTPRoute"):
        parents = items(document.at("spec"), "parentRefs")
        # One whose parent is a Service is a route within the mesh.
        if parents and all(each.get("kind") == "Service" for each in parents):
            continue
        for number, rule in enumerate(items(document.at("spec"), "rules"), 1):
            backends = [
                each
                for each in items(rule, "backendRefs")
                if hop_of(str(each.get("name"))) == GATEWAY
            ]
            if backends:
                where = f"{document.where}, rule {number}"
                yield from _doors(document, where, rule, backends, config)
                yield from _orders(document, where, rule)
                yield from _lasting(document, where, rule, config)


def _doors(
    document: Document,
    where: str,
    rule: Mapping[str, Any],
    backends: list[Mapping[str, Any]],
    config: Config,
) -> Iterator[Finding]:
    own = ports(GATEWAY, config)
    over_grpc = document.kind == "GRPCRoute" or _asks_grpc(rule)
    right, wrong = (own[GRPC], own[HTTP]) if over_grpc else (own[HTTP], own[GRPC])
    if any(each.get("port") == wrong for each in backends):
        yield violation(
            "edge-right-door",
            f"{where}: it leads {'gRPC' if over_grpc else 'HTTP'} to port {wrong}, where the "
            f"gateway speaks {'HTTP' if over_grpc else 'gRPC'}; lead it to {right}",
        )


def _asks_grpc(rule: Mapping[str, Any]) -> bool:
    paths = [str(at(each, "path", "value")) for each in items(rule, "matches")]
    return bool(paths) and all(path.startswith(_GRPC_PATHS) for path in paths)


def _orders(document: Document, where: str, rule: Mapping[str, Any]) -> Iterator[Finding]:
    matches = items(rule, "matches") or [{}]
    if document.kind == "GRPCRoute":
        let_in = [ORDERS] if any(_takes_service(each, ORDERS) for each in matches) else []
    else:
        paths = [path.replace("*", "shed") for path in OPERATORS_ALONE]
        let_in = [path for path in paths if any(_takes(each, path) for each in matches)]
    if let_in:
        yield violation(
            "edge-keeps-orders",
            f"{where}: it lets {let_in[0]} in from outside, which is for operators alone; name "
            "what clients ask for, each by itself",
        )


def _lasting(
    document: Document, where: str, rule: Mapping[str, Any], config: Config
) -> Iterator[Finding]:
    if document.kind != "HTTPRoute":
        return
    longest = longest_s(GATEWAY, config)
    matches = items(rule, "matches") or [{}]
    taken = [path for path in LASTING if any(_takes(each, path) for each in matches)]
    for name in ("request", "backendRequest") if taken else ():
        text = at(rule, "timeouts", name)
        limit_s = seconds(text)
        if text is not None and limit_s is None:
            yield violation("route-length", f"{where}: {name} {text!r} is no length like 30s")
        elif limit_s is not None and 0 < limit_s < longest:
            yield violation(
                "stream-not-cut",
                f"{where}: timeouts.{name} {limit_s:g} s cuts the stream of {taken[0]}, which may "
                f"run for {longest:.1f} s; leave it out, or raise it to {longest:.0f} s",
            )
    if rule.get("retry") is not None and at(rule, "retry", "attempts") != 0:
        yield violation(
            "mesh-repeats-nothing",
            f"{where}: retry asks again what the gateway may have begun, so a run is paid for "
            "twice; leave it out",
        )


def _takes(match: Mapping[str, Any], path: str) -> bool:
    """Tell whether a request for a path may meet a match; a prefix is of whole parts."""
    kind, value = at(match, "path", "type") or "PathPrefix", at(match, "path", "value")
    text = "/" if value is None else str(value)
    if kind == "Exact":
        return path == text
    if kind == "PathPrefix":
        return f"{path}/".startswith(text.rstrip("/") + "/")
    return _fully(text, path)


def _takes_service(match: Mapping[str, Any], service: str) -> bool:
    value = at(match, "method", "service")
    if value is None:
        return True
    if at(match, "method", "type") == "RegularExpression":
        return _fully(str(value), service)
    return bool(value == service)


def _fully(expression: str, text: str) -> bool:
    try:
        return re.fullmatch(expression, text) is not None
    except re.error:
        return True  # A proxy may know more than Python does.
