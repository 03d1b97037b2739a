"""Writes who is let in at each hop by the mesh, and whom each hop's proxy knows."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gateway.manifests.hops import looks, service_names
from gateway.manifests.rendering.mesh import API
from gateway.manifests.rendering.names import (
    EDGE_ACCOUNT,
    EDGE_NAMESPACE,
    NAMESPACE,
    PROCESSES,
    TRUST_DOMAIN,
    Body,
    described,
    domain_name,
    labelled,
    object_name,
)
from gateway.manifests.rendering.network import callees
from gateway.manifests.rendering.outside import places
from gateway.manifests.rendering.pods import ports
from services.runtime.config import Config
from services.runtime.topology import EDGES, GATEWAY, LLM

SECURITY_API = "security.istio.io/v1"
RUNTIME_SERVICE = "/sixhop.runtime.v1.RuntimeService"
OPEN_SERVICES = ("grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection")
"""What the gateway answers to everybody, beside its own service."""
OPERATORS_ALONE = ("/v1/admin", "/v1/admin/*", "/metrics")
"""What the gateway serves over HTTP and nobody outside may ask for."""


def authorization_policies(config: Config) -> list[Body]:
    """Return that nobody is let in, and then one policy for each edge of the call graph."""
    nobody = described(SECURITY_API, "AuthorizationPolicy", "deny-all") | {"spec": {}}
    return [nobody, _from_outside(config), *_along_edges(config), *_states(config)]


def _along_edges(config: Config) -> Iterator[Body]:
    for edge in EDGES:
        if edge.callee == LLM:
            continue
        paths = [f"/{name}/*" for name in service_names(edge.callee)]
        if edge.caller != GATEWAY:
            paths += sorted(looks(edge.caller, edge.callee))
        yield _allow(edge.caller, edge.callee, paths, config)


def _states(config: Config) -> Iterator[Body]:
    """Yield that the gateway asks each hop how it is, and passes on an operator's orders."""
    for hop in PROCESSES:
        if hop != GATEWAY:
            yield _allow(GATEWAY, hop, [f"{RUNTIME_SERVICE}/*"], config, what="state")


def _from_outside(config: Config) -> Body:
    own = ports(GATEWAY, config)
    names = (*service_names(GATEWAY), *OPEN_SERVICES)
    grpc = {"ports": [str(own["grpc"])], "paths": [f"/{name}/*" for name in names]}
    http = {"ports": [str(own["http"])], "notPaths": list(OPERATORS_ALONE)}
    edge = f"{TRUST_DOMAIN}/ns/{EDGE_NAMESPACE}/sa/{EDGE_ACCOUNT}"
    return _policy("gateway-from-edge", GATEWAY, edge, [{"operation": grpc}, {"operation": http}])


def _allow(
    caller: str, callee: str, paths: Sequence[str], config: Config, what: str = "calls"
) -> Body:
    name = f"{object_name(callee)}-{what}-from-{object_name(caller)}"
    operation = {"ports": [str(config.port(callee))], "paths": list(paths)}
    return _policy(name, callee, principal(caller), [{"operation": operation}])


def principal(hop: str) -> str:
    """Return by what name the mesh knows a hop."""
    return f"{TRUST_DOMAIN}/ns/{NAMESPACE}/sa/{object_name(hop)}"


def _policy(name: str, hop: str, who: str, what: Sequence[Mapping[str, Any]]) -> Body:
    return described(SECURITY_API, "AuthorizationPolicy", name) | {
        "spec": {
            "selector": labelled(hop),
            "action": "ALLOW",
            "rules": [{"from": [{"source": {"principals": [who]}}], "to": list(what)}],
        }
    }


def sidecar(hop: str, config: Config, parts: Mapping[str, Sequence[str]]) -> Body:
    """Return whom a hop's proxy knows; it refuses to lead anywhere else.

    Args:
        hop: the hop.
        config: the configuration.
        parts: the services of the parts of hops that have any, by hop.
    """
    names = [name for each in callees(hop) for name in (object_name(each), *parts.get(each, ()))]
    hosts = [f"./{domain_name(name)}" for name in names]
    hosts += [place.known_as for place in places(hop, config)]
    # A proxy that may know nobody still needs one entry, and `~` is nobody.
    return described(API, "Sidecar", object_name(hop)) | {
        "spec": {
            "workloadSelector": {"labels": labelled(hop)["matchLabels"]},
            "outboundTrafficPolicy": {"mode": "REGISTRY_ONLY"},
            "egress": [{"hosts": hosts or ["~/*"]}],
        }
    }
