"""Names the objects, labels and ports of a suite in a cluster."""

from typing import Any

from services.runtime.topology import DEPLOYMENTS, HOPS

NAMESPACE = "sixhop"
TRUST_DOMAIN = "cluster.local"
"""What Istio takes for the trust domain of the mesh, whatever that is called."""
NAME_LABEL = "app.kubernetes.io/name"
"""Says which hop a pod is: its account, its callers and its callees go by it."""
POOL_LABEL = "sixhop.io/pool"
"""Says which deployment a pod belongs to: one hop may have several."""
PART_OF = {"app.kubernetes.io/part-of": "sixhop"}
CONTAINER = "app"
"""The container that is the hop."""
EDGE_NAMESPACE = "sixhop-edge"
"""Where the ingress gateway of the mesh runs, which is not ours and so is apart from us."""
EDGE_ACCOUNT = "edge-istio"
"""The account of that gateway, as Istio makes it: the Gateway's name and its class."""
GRPC, HTTP, METRICS = "grpc", "http", "metrics"
"""The names of ports."""
PROCESSES = (*HOPS, *DEPLOYMENTS)
"""All that may run. A stand-in that the configuration leaves out has its objects all the same: an
overlay without one leaves its folder out."""

Body = dict[str, Any]
"""An object, or a part of one."""


def object_name(hop: str) -> str:
    """Return how the objects of a hop are called: names in a cluster have no underscores."""
    return hop.replace("_", "-")


def labelled(hop: str) -> Body:
    """Return the selector of all pods of a hop."""
    return {"matchLabels": {NAME_LABEL: object_name(hop)}}


def described(api: str, kind: str, name: str) -> Body:
    """Return the beginning of an object.

    It names its namespace: what a component adds is in none else, and would go to another.
    """
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": api, "kind": kind, "metadata": metadata}


def patch_of(api: str, kind: str, name: str) -> Body:
    """Return the beginning of a patch of an object that has no namespace yet."""
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name}}


def domain_name(name: str) -> str:
    """Return the whole name of a service, for what takes no short one."""
    return f"{name}.{NAMESPACE}.svc.{TRUST_DOMAIN}"
