"""Holds the routes of a mesh to letting runs last, and to repeating nothing that has arrived."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gateway.manifests.cluster import Cluster
from gateway.manifests.documents import Document, at, items, table
from gateway.manifests.hops import Method, hop_of, methods, needed_s
from gateway.manifests.lengths import seconds
from services.runtime.checks.finding import Finding, violation
from services.runtime.checks.tree import Tree
from services.runtime.topology import DEPLOYMENTS, EDGES, HOPS, Edge

SAFE_RETRIES = frozenset({"connect-failure", "refused-stream", "reset-before-request"})
"""Conditions under which the request never reached anybody."""
DEFAULT_ATTEMPTS = 2
"""How often Istio repeats when nobody says anything: also what was answered UNAVAILABLE."""
MAX_AMPLIFICATION = 1.2
"""How many attempts a call may come to, over all who repeat."""
_CONDITIONS = frozenset({"uri", "name", "ignoreUriCase"})
"""What a match may say and still be met by every request for the path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Is one way of a request, as a mesh or an edge describes it."""

    document: Document
    number: int
    """Its place among those of the object, from 1."""
    hop: str
    """Where it leads to."""
    paths: tuple["Path", ...]
    """What it takes; without any it takes everything."""
    timeout: Any
    """As it is written; None without one."""
    retries: Mapping[str, Any] | None
    """How it repeats; None leaves that to the mesh."""
    istio: bool
    """Whether Istio's rules for what is left out apply."""

    @property
    def where(self) -> str:
        """Return where it stands."""
        return f"{self.document.where}, route {self.number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """Is one condition on a request."""

    exact: str | None = None
    prefix: str | None = None
    regex: str | None = None
    always: bool = True
    """Whether the path alone decides; False when a header or a port has a say."""

    def takes(self, path: str) -> bool:
        """Tell whether a request for this path may meet it."""
        if self.exact is not None:
            return path == self.exact
        if self.prefix is not None:
            return path.startswith(self.prefix)
        try:
            return self.regex is None or re.fullmatch(self.regex, path) is not None
        except re.error:
            return True  # Envoy may know more than Python does.


def route_findings(cluster: Cluster, tree: Tree) -> Iterator[Finding]:
    """Yield what is wrong with the ways to the hops."""
    routes = list(_routes(cluster))
    run = {workload.hop for workload in cluster.workloads}
    for hop in (*HOPS, *(name for name in DEPLOYMENTS if name in run)):
        there = [route for route in routes if route.hop == hop]
        for method in methods(hop):
            for route in _taking(there, method):
                yield from _lengths(route, method, tree)
        if cluster.in_mesh and not any(route.istio for route in there):
            yield from _default_retries(hop, cluster, tree)
    for route in routes:
        yield from _repeats(route, cluster, tree)
    for edge in EDGES:
        yield from _chain(edge, routes)


def _routes(cluster: Cluster) -> Iterator[Route]:
    for document in cluster.of_kind("VirtualService"):
        for number, http in enumerate(items(document.at("spec"), "http"), 1):
            hops = {hop_of(str(at(each, "destination", "host"))) for each in items(http, "route")}
            for hop in sorted(hop for hop in hops if hop):
                yield Route(
                    document=document,
                    number=number,
                    hop=hop,
                    paths=tuple(_istio_path(match) for match in items(http, "match")),
                    timeout=http.get("timeout"),
                    retries=None if at(http, "retries") is None else table(http, "retries"),
                    istio=True,
                )
    for document in cluster.of_kind("HTTPRoute"):
        for number, rule in enumerate(items(document.at("spec"), "rules"), 1):
            hops = {hop_of(str(each.get("name"))) for each in items(rule, "backendRefs")}
            for hop in sorted(hop for hop in hops if hop):
                yield Route(
                    document=document,
                    number=number,
                    hop=hop,
                    paths=tuple(_gateway_path(match) for match in items(rule, "matches")),
                    timeout=at(rule, "timeouts", "request"),
                    retries={},
                    istio=False,
                )


def _istio_path(match: Mapping[str, Any]) -> Path:
    uri = match.get("uri")
    return Path(
        exact=_text(at(uri, "exact")),
        prefix=_text(at(uri, "prefix")),
        regex=_text(at(uri, "regex")),
        always=not set(match) - _CONDITIONS,
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _gateway_path(match: Mapping[str, Any]) -> Path:
    kind, value = at(match, "path", "type"), _text(at(match, "path", "value"))
    return Path(
        exact=value if kind == "Exact" else None,
        prefix=value if kind in ("PathPrefix", None) else None,
        regex=value if kind == "RegularExpression" else None,
        always=not set(match) - {"path"},
    )


def _taking(routes: list[Route], method: Method) -> Iterator[Route]:
    """Yield the routes that a request for a method may take, in their order."""
    for route in routes:
        taking = [path for path in route.paths if path.takes(method.path)]
        if taking or not route.paths:
            yield route
        if not route.paths or any(path.always for path in taking):
            return


def _lengths(route: Route, method: Method, tree: Tree) -> Iterator[Finding]:
    yield from _length(route, method, tree, "timeout", route.timeout)
    if route.retries is not None:
        yield from _length(route, method, tree, "perTryTimeout", route.retries.get("perTryTimeout"))


def _length(route: Route, method: Method, tree: Tree, name: str, text: Any) -> Iterator[Finding]:
    if text is None:
        return
    limit_s, most_s = seconds(text), needed_s(method, tree.config)
    if limit_s is None:
        yield violation("route-length", f"{route.where}: {name} {text!r} is no length like 30s")
    elif limit_s == 0 and route.istio:
        yield violation(
            "route-length",
            f"{route.where}: {name} {text} is refused by the cluster; leave it out for no limit",
        )
    elif 0 < limit_s < most_s and method.streaming:
        yield violation(
            "stream-not-cut",
            f"{route.where}: {name} {limit_s:g} s cuts the stream of {method.path}, which may run "
            f"for {most_s:.1f} s; leave it out, or raise it to {most_s:.0f} s",
        )
    elif 0 < limit_s < most_s:
        yield violation(
            "route-above-ladder",
            f"{route.where}: {name} {limit_s:g} s is less than the {most_s:.1f} s that callers "
            f"wait for {method.path}; raise it to {most_s:.0f} s or lower "
            f"calls.{method.hop}.step_timeout_s",
        )


def _chain(edge: Edge, routes: list[Route]) -> Iterator[Finding]:
    """Compare the streams of a caller with all calls of its callee, where both are limited."""
    outer = [found for found in _limits(edge.caller, routes) if found[0].streaming]
    inner = _limits(edge.callee, routes)
    for around, route, limit_s in outer:
        for method, below, inner_s in inner:
            if inner_s >= limit_s:
                yield violation(
                    "route-below-caller",
                    f"{below.where}: timeout {inner_s:g} s of {method.path} is not below the "
                    f"{limit_s:g} s of {around.path} ({route.where}), which waits for it, so the "
                    "mesh ends the outer call first, and the pod in between is blamed; lower it",
                )


def _limits(hop: str, routes: list[Route]) -> list[tuple[Method, Route, float]]:
    there = [route for route in routes if route.hop == hop and route.istio]
    if not there:
        return []
    found = [(each, route) for each in methods(hop) for route in _taking(there, each)]
    timed = [(each, route, seconds(route.timeout)) for each, route in found]
    return [(each, route, limit_s) for each, route, limit_s in timed if limit_s]


def _repeats(route: Route, cluster: Cluster, tree: Tree) -> Iterator[Finding]:
    if not route.istio:
        return
    retries = route.retries if route.retries is not None else cluster.mesh_retries
    if retries is None:
        yield violation(
            "mesh-repeats-nothing",
            f"{route.where}: retries are left out, so Istio repeats a call that {route.hop} "
            f"answered UNAVAILABLE {DEFAULT_ATTEMPTS} times; {_product(DEFAULT_ATTEMPTS, tree)}; "
            "set retries: {attempts: 0}",
        )
        return
    attempts = retries.get("attempts", DEFAULT_ATTEMPTS)
    said = str(retries.get("retryOn") or "")
    unsafe = sorted({part.strip() for part in said.split(",") if part.strip()} - SAFE_RETRIES)
    if not isinstance(attempts, int) or attempts < 1 or (said and not unsafe):
        return
    why = ", ".join(unsafe) if said else "what Istio repeats by itself, UNAVAILABLE among it"
    if (1 + attempts) * own_amplification(tree) > MAX_AMPLIFICATION:
        yield violation(
            "mesh-repeats-nothing",
            f"{route.where}: {attempts} retries on {why} repeat what {route.hop} has begun; "
            f"{_product(attempts, tree)}; set retries: {{attempts: 0}}, or retryOn to "
            f"{', '.join(sorted(SAFE_RETRIES))}",
        )


def _default_retries(hop: str, cluster: Cluster, tree: Tree) -> Iterator[Finding]:
    services = [each for each in cluster.of_kind("Service") if hop_of(each.name) == hop]
    if services and cluster.mesh_retries is None:
        yield violation(
            "mesh-repeats-nothing",
            f"{services[0].where}: no VirtualService leads to {hop}, so Istio repeats a call that "
            f"it answered UNAVAILABLE {DEFAULT_ATTEMPTS} times; "
            f"{_product(DEFAULT_ATTEMPTS, tree)}; add one with retries: {{attempts: 0}}",
        )


def own_amplification(tree: Tree) -> float:
    """Return how many attempts our own retries make of a call in the long run."""
    retry = tree.policies.retry
    if not tree.engine or retry.max_attempts < 2 or retry.mode == "off":
        return 1.0
    return 1.0 + retry.token_ratio if retry.mode == "budgeted" else retry.max_attempts


def _product(attempts: int, tree: Tree) -> str:
    own = own_amplification(tree)
    return (
        f"with our own retries ({own:g}) a call comes to {(1 + attempts) * own:g} attempts, and "
        f"{MAX_AMPLIFICATION:g} are allowed"
    )
