"""Holds the call graph as data."""

from dataclasses import dataclass

GATEWAY = "gateway"
ROUTING = "routing"
DOMAIN = "domain"
TOOL = "tool"
MODEL = "model"
MODEL_BACKUP = "model_backup"
"""The model hop once more, with a model that stands in for the first one."""
LLM = "llm"
"""The provider behind the model hop: HTTP, not ours."""
SIM = "sim"
"""A simulated provider, for drills."""

HOPS = (GATEWAY, ROUTING, DOMAIN, TOOL, MODEL)
"""The services, from the client inwards; each is a process and a folder."""

DEPLOYMENTS = {MODEL_BACKUP: MODEL}
"""Processes that run the code of a hop with settings of their own, and only where they are
configured: each is called apart, with its own limits, breaker and permits."""

DEFAULT_PORTS = {
    GATEWAY: 7400,
    ROUTING: 7401,
    DOMAIN: 7402,
    TOOL: 7403,
    MODEL: 7404,
    MODEL_BACKUP: 7405,
    LLM: 7410,
}


@dataclass(frozen=True, slots=True)
class Edge:
    """Says that one hop calls another."""

    caller: str
    callee: str
    streaming: bool
    """True when the main call of the edge streams its answer."""


EDGES = (
    Edge(GATEWAY, ROUTING, streaming=True),
    Edge(ROUTING, DOMAIN, streaming=True),
    Edge(DOMAIN, TOOL, streaming=False),
    Edge(DOMAIN, MODEL, streaming=True),
    Edge(TOOL, MODEL, streaming=True),
    Edge(MODEL, LLM, streaming=True),
    Edge(DOMAIN, MODEL_BACKUP, streaming=True),
    Edge(TOOL, MODEL_BACKUP, streaming=True),
    Edge(MODEL_BACKUP, LLM, streaming=True),
)


def hops_behind(hop: str) -> int:
    """Return how many hops the longest path behind a hop has; none for the last one."""
    return max((1 + hops_behind(edge.callee) for edge in EDGES if edge.caller == hop), default=0)


class UnknownEdgeError(Exception):
    """Refuses, at start-up, a call that the topology does not know."""


def require_edge(caller: str, callee: str) -> Edge:
    """Return the edge, or refuse.

    Raises:
        UnknownEdgeError: the topology has no such edge.
    """
    for edge in EDGES:
        if (edge.caller, edge.callee) == (caller, callee):
            return edge
    allowed = ", ".join(edge.callee for edge in EDGES if edge.caller == caller) or "nobody"
    raise UnknownEdgeError(f"{caller} may not call {callee}; the topology lets it call {allowed}")
