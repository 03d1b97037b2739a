"""Follows the calls of a run from tier to tier."""

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.planning.traffic import TOOL_GROUPS, Traffic
from services.runtime.call import Group
from services.runtime.outgoing import CALLEES
from services.runtime.topology import DOMAIN, GATEWAY, LLM, MODEL, MODEL_BACKUP, ROUTING, TOOL

EDGE_PROXY = "edge"
"""Stands before the gateway; no tier of ours."""
RAREST = 1e-9
"""What is called less often than by one run of a billion is not planned for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """Is what one tier calls of another."""

    caller: str
    callee: str
    calls: float
    """Calls of one call of the caller, on average."""
    events: float
    """Events that one call streams back; 0 for one answer."""
    group: Group
    """Whose permits it takes at the caller."""


def tool_tier(group: Group) -> str:
    """Return the name of the tier that runs the tools of a group."""
    return f"{TOOL}/{group}"


def hop_of(tier: str) -> str:
    """Return whose code a tier runs: `tool` for `tool/data`."""
    return tier.partition("/")[0]


def flows(traffic: Traffic) -> Sequence[Flow]:
    """Return all calls of a run, from the client inwards; those that nobody makes are left out."""
    text = traffic.chunks
    groups = [group for group in TOOL_GROUPS if traffic.tool_cost(group).calls > 0]
    found = [
        _flow(EDGE_PROXY, GATEWAY, 1.0, traffic.events),
        _flow(GATEWAY, ROUTING, 1.0, traffic.events),
        _flow(ROUTING, DOMAIN, 1.0, traffic.events),
        *(
            Flow(
                caller=DOMAIN,
                callee=tool_tier(group),
                calls=traffic.tool_cost(group).calls,
                events=0.0,
                group=group,
            )
            for group in groups
        ),
        _flow(DOMAIN, MODEL, traffic.direct_model_calls, text),
        *(_flow(tool_tier(g), MODEL, traffic.tool_cost(g).model_calls, text) for g in groups),
    ]
    ratio = traffic.backup_ratio
    found += [
        _flow(flow.caller, MODEL_BACKUP, ratio * flow.calls, text)
        for flow in found
        if flow.callee == MODEL
    ]
    found += [_flow(MODEL, LLM, 1.0, text), _flow(MODEL_BACKUP, LLM, 1.0, text)]
    return _reached([flow for flow in found if flow.calls >= RAREST])


def _flow(caller: str, callee: str, calls: float, events: float) -> Flow:
    # The edge takes no permits; its group is not looked at.
    group = CALLEES[callee].group if callee in CALLEES else Group.CORE
    return Flow(caller=caller, callee=callee, calls=calls, events=events, group=group)


def _reached(found: Sequence[Flow]) -> Sequence[Flow]:
    """Leave out what only tiers call that nobody calls."""
    reached = {EDGE_PROXY}
    kept = []
    for flow in found:
        if flow.caller in reached:
            reached.add(flow.callee)
            kept.append(flow)
    return kept


def rates(found: Sequence[Flow], runs_per_s: float) -> dict[str, float]:
    """Return the calls per second of each tier, callers before callees.

    Args:
        found: the calls of a run, callers first.
        runs_per_s: the runs that come per second.
    """
    by_tier = {EDGE_PROXY: runs_per_s}
    for flow in found:
        by_tier[flow.callee] = by_tier.get(flow.callee, 0.0) + flow.calls * by_tier[flow.caller]
    del by_tier[EDGE_PROXY]
    return by_tier
