"""Holds who may call whom, in the mesh and in the network, to the call graph."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gateway.manifests.authorization import Authorization
from gateway.manifests.cluster import Cluster, Workload
from gateway.manifests.hops import looks, methods, runtime_methods
from gateway.manifests.labels import namespace_of
from gateway.manifests.networks import Networks
from gateway.manifests.rendering.outside import places
from services.runtime.checks.finding import Finding, violation
from services.runtime.config import Config
from services.runtime.topology import EDGES, GATEWAY

_EDGES = frozenset((edge.caller, edge.callee) for edge in EDGES)


@dataclass(frozen=True, slots=True)
class _Pair:
    """Is one workload that may want to call another."""

    caller: Workload
    callee: Workload

    @property
    def where(self) -> str:
        return self.callee.document.where

    @property
    def named(self) -> str:
        return f"{self.caller.document.name} to {self.callee.document.name}"

    @property
    def calls(self) -> bool:
        """Return whether the call graph has this edge."""
        return (self.caller.hop, self.callee.hop) in _EDGES

    @property
    def looks(self) -> set[str]:
        """Return by which RPCs the caller looks at the callee, or orders its breakers."""
        return looks(self.caller.hop, self.callee.hop)

    def paths(self) -> tuple[set[str], set[str]]:
        """Return the RPCs that the caller needs of the callee, and the others."""
        own = {method.path for method in methods(self.callee.hop)}
        needed = (own if self.calls else set()) | self.looks
        return needed, (own | set(runtime_methods())) - needed


def access_findings(cluster: Cluster, config: Config) -> Iterator[Finding]:
    """Yield the edges of the call graph that are refused, and the calls that are no edge.

    Nothing is said of the mesh without an AuthorizationPolicy, nor of the network without a
    NetworkPolicy: then everybody may, and nobody has said otherwise.
    """
    policies = tuple(cluster.of_kind("AuthorizationPolicy"))
    if policies:
        mesh = Authorization(policies)
        for pair in _pairs(cluster):
            yield from _in_mesh(pair, mesh, config.port(pair.callee.hop))
        for callee in cluster.workloads:
            yield from _strangers(callee, mesh, config.port(callee.hop))
    networks = tuple(cluster.of_kind("NetworkPolicy"))
    if networks:
        network = Networks(networks, tuple(cluster.of_kind("Namespace")))
        for pair in _pairs(cluster):
            yield from _in_network(pair, network, config.port(pair.callee.hop))
        for workload in cluster.workloads:
            yield from _reachable(workload, network, config.port(workload.hop), cluster.in_mesh)
            yield from _addresses(workload, network, config)


def _pairs(cluster: Cluster) -> Iterator[_Pair]:
    for callee in cluster.workloads:
        for caller in cluster.workloads:
            if caller.hop != callee.hop:
                yield _Pair(caller, callee)


def _in_mesh(pair: _Pair, mesh: Authorization, port: int) -> Iterator[Finding]:
    needed, others = pair.paths()
    callee, caller = pair.callee.document, pair.caller.document
    refused = sorted(path for path in needed if not mesh.allows(caller, callee, path, port))
    if refused:
        yield violation(
            "mesh-is-call-graph",
            f"{pair.where}: no AuthorizationPolicy lets {caller.name} call {_some(refused)} here; "
            "allow its principal and these paths at port " + str(port),
        )
    if pair.callee.hop == GATEWAY and mesh.allows(None, callee, "/", port):
        return  # A gateway that is open to all is a choice.
    allowed = sorted(path for path in others if mesh.allows(caller, callee, path, port))
    # What everybody may is told once, and not for everyone.
    if allowed and not mesh.allows(None, callee, allowed[0], port):
        yield violation(
            "mesh-is-call-graph",
            f"{pair.where}: an AuthorizationPolicy lets {caller.name} call {_some(allowed)} here, "
            "and the call graph has no such edge; take the principal or the path out",
        )


def _strangers(callee: Workload, mesh: Authorization, port: int) -> Iterator[Finding]:
    if callee.hop == GATEWAY:
        return
    paths = [*(method.path for method in methods(callee.hop)), *runtime_methods()]
    open_to_all = sorted(path for path in paths if mesh.allows(None, callee.document, path, port))
    if open_to_all:
        yield violation(
            "mesh-is-call-graph",
            f"{callee.document.where}: anybody may call {_some(open_to_all)} here; select its pods "
            "by an AuthorizationPolicy whose rules name principals, beside one with spec: {}",
        )


def _in_network(pair: _Pair, network: Networks, port: int) -> Iterator[Finding]:
    caller, callee = pair.caller.document, pair.callee.document
    inwards = network.lets_in(caller, callee, port)
    outwards = network.lets_out(caller, callee, port)
    if pair.calls or pair.looks:
        closed: list[tuple[bool, Callable[[], str]]] = [
            (inwards, lambda: f"{pair.where}: no ingress of a NetworkPolicy lets {caller.name} in"),
            (outwards, lambda: f"{caller.where}: no egress of a NetworkPolicy leads to "
                               f"{callee.name}"),
        ]  # fmt: skip
        for is_open, said in closed:
            if not is_open:
                yield violation("network-is-call-graph", f"{said()} at port {port}; allow it")
    elif inwards and outwards and not network.lets_in(None, callee, port):
        yield violation(
            "network-is-call-graph",
            f"{pair.where}: the NetworkPolicies let {pair.named} at port {port}, and the call "
            "graph has no such edge; take it out",
        )


def _reachable(
    workload: Workload, network: Networks, port: int, in_mesh: bool
) -> Iterator[Finding]:
    document = workload.document
    if workload.hop != GATEWAY and network.lets_in(None, document, port):
        yield violation(
            "network-is-call-graph",
            f"{document.where}: any pod of {namespace_of(document) or 'its namespace'} may come in "
            f"at port {port}; select its pods by a NetworkPolicy that names who may",
        )
    needs = [("the names of hosts", 53, "UDP")]
    needs += [("the mesh's control plane", 15012, "TCP")] if in_mesh else []
    for what, number, protocol in needs:
        if not network.lets_out_anywhere(document, number, protocol):
            yield violation(
                "network-is-call-graph",
                f"{document.where}: no egress of a NetworkPolicy leads to {what}; allow port "
                f"{number} of {protocol}",
            )


def _addresses(workload: Workload, network: Networks, config: Config) -> Iterator[Finding]:
    """Yield the addresses of others that a hop is told to call and cannot reach.

    Of names nothing is said: nobody here knows where they lead.
    """
    document = workload.document
    for place in places(workload.hop, config):
        if place.block and not network.lets_out_to(document, place.block, place.port):
            yield violation(
                "network-is-call-graph",
                f"{document.where}: its configuration names {place.host}, and no egress of a "
                f"NetworkPolicy leads there at port {place.port}; allow ipBlock {place.block}, or "
                "run `sixhop k8s render`",
            )


def _some(paths: list[str]) -> str:
    return paths[0] + (f" and {len(paths) - 1} more" if len(paths) > 1 else "")
