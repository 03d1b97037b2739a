"""Tells which hop a name means, which methods it serves, and how long they may take."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from services.runtime.call import Group
from services.runtime.config import Config
from services.runtime.rungs import legs
from services.runtime.topology import (
    DEPLOYMENTS,
    DOMAIN,
    GATEWAY,
    HOPS,
    MODEL,
    MODEL_BACKUP,
    ROUTING,
    TOOL,
)
from sixhop.domain.v1 import domain_pb2
from sixhop.gateway.v1 import gateway_pb2
from sixhop.model.v1 import model_pb2
from sixhop.routing.v1 import routing_pb2
from sixhop.runtime.v1 import runtime_pb2
from sixhop.tool.v1 import tool_pb2

PREFIX = "sixhop-"
OTHER_NAMES = {"model-backup": MODEL_BACKUP, "model-primary": MODEL}
"""What workloads are called whose process has another name."""
SNAPSHOT = "/sixhop.runtime.v1.RuntimeService/GetSnapshot"
SPLIT_HOPS = (DOMAIN, TOOL)
"""What may run as several deployments of the same code, one for some agents, or for a group."""
TOOL_GROUPS = (Group.CORE, Group.DATA, Group.AUXILIARY, Group.EXTERNAL)
"""The groups that tools may be of."""
_FILES: Mapping[str, Any] = {
    GATEWAY: gateway_pb2.DESCRIPTOR,
    ROUTING: routing_pb2.DESCRIPTOR,
    DOMAIN: domain_pb2.DESCRIPTOR,
    TOOL: tool_pb2.DESCRIPTOR,
    MODEL: model_pb2.DESCRIPTOR,
}


@dataclass(frozen=True, slots=True)
class Method:
    """Is one RPC of a hop."""

    hop: str
    path: str
    """As a request names it: `/sixhop.tool.v1.ToolService/ExecuteTool`."""
    streaming: bool


def hop_of(name: str) -> str | None:
    """Return the hop that a workload, a service or a host means; None for what is not ours.

    A host may have its namespace and domain: `tool.sixhop.svc.cluster.local`. A hop may run as
    several deployments: `tool-data`.
    """
    short = _short(name)
    whole = short.partition("-")[0]
    if short in HOPS or whole in SPLIT_HOPS:
        return whole
    return OTHER_NAMES.get(short)


def groups_behind(host: str) -> tuple[Group, ...]:
    """Return whose permits calls to a host of the tool hop use: of one group, or of any."""
    group = _short(host).partition("-")[2]
    return (Group(group),) if group in TOOL_GROUPS else TOOL_GROUPS


def _short(name: str) -> str:
    return name.split(".", 1)[0].removeprefix(PREFIX)


def methods(hop: str) -> Iterator[Method]:
    """Yield the RPCs of a hop."""
    for service in _file(hop).services_by_name.values():
        for method in service.methods:
            path = f"/{service.full_name}/{method.name}"
            yield Method(hop, path, bool(method.server_streaming))


def runtime_methods() -> Iterator[str]:
    """Yield the paths of the RPCs that every hop serves about itself."""
    for service in runtime_pb2.DESCRIPTOR.services_by_name.values():
        for method in service.methods:
            yield f"/{service.full_name}/{method.name}"


def looks(caller: str, callee: str) -> set[str]:
    """Return by which RPCs a hop looks at the state of another, or has its breakers ordered.

    The gateway asks all of them for all; routing's board asks the replicas of its callee.
    """
    if caller == GATEWAY != callee:
        return set(runtime_methods())
    return {SNAPSHOT} if (caller, callee) == (ROUTING, DOMAIN) else set()


def service_names(hop: str) -> list[str]:
    """Return the full names of a hop's gRPC services."""
    return [service.full_name for service in _file(hop).services_by_name.values()]


def _file(hop: str) -> Any:
    return _FILES[DEPLOYMENTS.get(hop, hop)]


def longest_s(hop: str, config: Config) -> float:
    """Return how long one call of a hop may last: what of the longest deadline reaches it."""
    deadline_s = config.deadline.max_deadline_s
    if hop == GATEWAY:
        return deadline_s
    # A deployment that the configuration leaves out would have what its hop has.
    callee = hop if config.runs(hop) else DEPLOYMENTS[hop]
    return max(leg.deadline_s for leg in legs(deadline_s, config) if leg.callee == callee)


def needed_s(method: Method, config: Config) -> float:
    """Return how long a proxy must let a call of a method last.

    A stream lasts as long as its run, and so does every call of the gateway. Another answer is
    waited for as long as the step timeout, or as the longest deadline leaves.
    """
    longest = longest_s(method.hop, config)
    if method.streaming or method.hop == GATEWAY:
        return longest
    return min(longest, config.limits(method.hop).step_timeout_s)
