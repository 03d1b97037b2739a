"""Writes how calls find their part of a hop that runs as several deployments."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gateway.manifests.hops import Method, methods
from gateway.manifests.rendering import access, mesh, network, pods
from gateway.manifests.rendering.names import POOL_LABEL, PROCESSES, Body, described, object_name
from services.runtime.call import Group
from services.runtime.checks.tree import Tree
from services.runtime.parts import AGENT_KEY, TOOL_GROUP_KEY
from services.runtime.topology import DOMAIN, TOOL


@dataclass(frozen=True, slots=True)
class Splitting:
    """Says by what the calls of a hop are told apart."""

    header: str
    method: str
    """The RPC that has it; all others go to the rest."""
    rest: str
    """The part that is the rest as well; empty leaves that to the deployment that is not split."""


SPLITTINGS = {
    TOOL: Splitting(TOOL_GROUP_KEY, "ExecuteTool", Group.CORE),
    DOMAIN: Splitting(AGENT_KEY, "RunAgent", ""),
}


@dataclass(frozen=True, slots=True)
class Part:
    """Is one of several deployments of a hop."""

    hop: str
    word: str
    """What the header says of calls that are for it."""

    @property
    def name(self) -> str:
        """Return how its objects are called."""
        return f"{self.hop}-{self.word}"

    @property
    def is_rest(self) -> bool:
        """Return whether all calls come here that are for no other part."""
        return self.word == SPLITTINGS[self.hop].rest


def parts_in(folder: Path) -> list[Part]:
    """Return the parts that a folder of manifests has: each is a folder named HOP-WORD."""
    found = [each.name.partition("-") for each in sorted(folder.glob("*-*/")) if each.is_dir()]
    return [Part(hop, word) for hop, _, word in found if hop in SPLITTINGS]


def part_services(parts: Sequence[Part], tree: Tree) -> list[Body]:
    """Return the services of the parts."""
    return [pods.pool_service(part.name, part.hop, tree.config) for part in parts]


def part_destinations(parts: Sequence[Part], tree: Tree) -> list[Body]:
    """Return how callers reach the parts, and when they avoid one of their pods."""
    return [mesh.destination(part.name, part.hop, tree) for part in parts]


def patches(parts: Sequence[Part], tree: Tree) -> list[Body]:
    """Return what changes in the objects of the hops that have parts."""
    split = [hop for hop in PROCESSES if any(part.hop == hop for part in parts)]
    names = {hop: [part.name for part in parts if part.hop == hop] for hop in split}
    bodies = [_routes(hop, [part for part in parts if part.hop == hop], tree) for hop in split]
    # Who is in no mesh and calls the hop by its name comes to the rest.
    bodies += [
        described("v1", "Service", object_name(part.hop))
        | {"spec": {"selector": {POOL_LABEL: part.name}}}
        for part in parts
        if part.is_rest
    ]
    return bodies + [
        access.sidecar(hop, tree.config, names)
        for hop in PROCESSES
        if set(network.callees(hop)) & set(split)
    ]


def _routes(hop: str, parts: Sequence[Part], tree: Tree) -> Body:
    rest = [part.name for part in parts if part.is_rest]
    others = [_route(part, tree) for part in parts if not part.is_rest]
    service = rest[0] if rest else object_name(hop)
    body = mesh.route(hop, tree)
    return body | {"spec": body["spec"] | {"http": [*others, *mesh.hop_routes(hop, tree, service)]}}


def _route(part: Part, tree: Tree) -> Body:
    splitting = SPLITTINGS[part.hop]
    (method,) = (each for each in methods(part.hop) if each.path.endswith(f"/{splitting.method}"))
    headers = {splitting.header: {"exact": part.word}}
    return {
        "name": part.word,
        "match": [{"uri": {"exact": method.path}, "headers": headers}],
        **_limit(method, tree),
        **mesh.way(part.name, part.hop, tree),
    }


def _limit(method: Method, tree: Tree) -> Body:
    return {} if method.streaming else {"timeout": mesh.longest([method], tree)}
