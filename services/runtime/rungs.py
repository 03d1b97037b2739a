"""Computes what each hop gets of a deadline, along every path of the topology."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from services.runtime.call import CallLimits
from services.runtime.config import Config
from services.runtime.policies.deadline import attempt_timeout_s, floor_to_grid, margin_s
from services.runtime.topology import (
    DEPLOYMENTS,
    DOMAIN,
    GATEWAY,
    LLM,
    MODEL,
    ROUTING,
    TOOL,
    Edge,
    require_edge,
)

SIX_HOPS = (GATEWAY, ROUTING, DOMAIN, TOOL, MODEL, LLM)
"""The longest path: an agent's tool asks the model."""


@dataclass(frozen=True, slots=True)
class Rung:
    """Tells what one hop gets when every hop before it forwards at once; lengths in seconds."""

    hop: str
    deadline_s: float
    """The time remaining on arrival, if it has to answer at once."""
    wait_s: float
    """The longest that its caller waits for the answer, or for a stream's first content."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leg:
    """Is the last edge of one path, with what is there to spend; lengths in seconds."""

    path: tuple[str, ...]
    """The hops from the gateway to the callee."""
    streaming: bool
    """Whether the callee answers by a stream."""
    limits: CallLimits
    """The declared limits of its calls."""
    has_s: float
    """What the caller has on arrival, to its own caller's deadline."""
    wait_s: float
    """The longest that the caller waits for an answer, or for the first event."""
    deadline_s: float
    """What the callee has on arrival."""

    @property
    def caller(self) -> str:
        """Return who calls."""
        return self.path[-2]

    @property
    def callee(self) -> str:
        """Return who is called."""
        return self.path[-1]

    @property
    def name(self) -> str:
        """Return the whole path, for people."""
        return " → ".join(self.path)

    @property
    def own_time_s(self) -> float:
        """Return what the caller has until it answers by itself."""
        return self.has_s - margin_s(self.has_s)

    @property
    def silence_s(self) -> float:
        """Return after how long without content the caller gives up."""
        return min(self.wait_s, patience_s(self.limits))


@dataclass(frozen=True, slots=True)
class StandIn:
    """Is a call to what stands in for a model that was silent as long as it may."""

    leg: Leg
    """The last edge of its path; `has_s` is what the caller has left by then."""
    after_s: float
    """How long the caller has waited for the first model, seconds."""

    @property
    def own_time_s(self) -> float:
        """Return what the caller then has until it answers by itself, seconds."""
        # Its margin is a part of what it had on arrival, and not of what is left.
        return self.leg.has_s - margin_s(self.leg.has_s + self.after_s)


def patience_s(limits: CallLimits) -> float:
    """Return how long a callee may be silent by declaration: for an answer or the first content."""
    if limits.first_content_timeout_s is None:
        return limits.step_timeout_s
    return min(limits.step_timeout_s, limits.first_content_timeout_s)


def patience_name(callee: str, config: Config) -> str:
    """Return the setting that says so."""
    limits = config.limits(callee)
    first = limits.first_content_timeout_s
    if first is not None and first < limits.step_timeout_s:
        return f"calls.{callee}.first_content_timeout_s"
    return f"calls.{callee}.step_timeout_s"


def unary_ladder(deadline_s: float, share: float) -> list[Rung]:
    """Return the ladder of a chain in which every hop asks for one answer."""
    rungs = [Rung(SIX_HOPS[0], deadline_s, deadline_s)]
    for hop in SIX_HOPS[1:]:
        deadline_s *= share
        rungs.append(Rung(hop, deadline_s, deadline_s))
    return rungs


def path_ladder(deadline_s: float, config: Config) -> list[Rung]:
    """Return the ladder of the six-hop path as it is: streams, but for the tool."""
    rungs = [Rung(SIX_HOPS[0], deadline_s, deadline_s)]
    for caller, callee in itertools.pairwise(SIX_HOPS):
        leg = _leg((caller,), require_edge(caller, callee), deadline_s, config)
        deadline_s = leg.deadline_s
        rungs.append(Rung(callee, deadline_s, min(leg.silence_s, deadline_s)))
    return rungs


def legs(deadline_s: float, config: Config) -> tuple[Leg, ...]:
    """Return the last edge of every path from the gateway, shorter paths first."""
    return tuple(sorted(_onward((GATEWAY,), deadline_s, config), key=lambda leg: len(leg.path)))


def stand_ins(deadline_s: float, config: Config) -> tuple[StandIn, ...]:
    """Return every call to a stand-in, shorter paths first; none without one."""
    return tuple(
        StandIn(_leg(leg.path[:-1], edge, leg.has_s - leg.silence_s, config), leg.silence_s)
        for leg in legs(deadline_s, config)
        for edge in config.edges
        if edge.caller == leg.caller and DEPLOYMENTS.get(edge.callee) == leg.callee
    )


def _onward(path: tuple[str, ...], deadline_s: float, config: Config) -> Iterator[Leg]:
    for edge in config.edges:
        if edge.caller == path[-1]:
            leg = _leg(path, edge, deadline_s, config)
            yield leg
            yield from _onward(leg.path, leg.deadline_s, config)


def _leg(path: tuple[str, ...], edge: Edge, has_s: float, config: Config) -> Leg:
    limits = config.limits(edge.callee)
    wait_s = attempt_timeout_s(limits, has_s)
    if config.static_deadlines:
        deadline_s = wait_s = limits.step_timeout_s
    elif edge.streaming:
        deadline_s = floor_to_grid(has_s - margin_s(has_s))
    else:
        deadline_s = wait_s = floor_to_grid(wait_s)
    return Leg(
        path=(*path, edge.callee),
        streaming=edge.streaming,
        limits=limits,
        has_s=has_s,
        wait_s=wait_s,
        deadline_s=deadline_s,
    )
