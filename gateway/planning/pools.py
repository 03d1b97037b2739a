"""Computes how many permits callers need, and what they wait with the ones that are configured."""

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.planning.flows import EDGE_PROXY, Flow
from gateway.planning.queueing import (
    Moments,
    mean_wait_s,
    p99,
    part_variance,
    pod_variance,
    wait_ratio,
)
from gateway.planning.tiers import Tier, callers_of
from gateway.planning.traffic import Traffic
from gateway.sizes import requests_let_through
from services.runtime.call import Group, Mode
from services.runtime.checks.tree import Tree
from services.runtime.places import places_for
from services.runtime.topology import LLM

RELIEF = 0.1
"""By which part fewer calls come to a pod whose calls wait for permits: it has more in flight than
others then, and balancers see that. A fit to simulations of pools that are 60 to 85 % in use. Where
most of a run's time goes through the pool it is more, and waits are told up to a quarter too long.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Is the permits of one group in one pod of a caller."""

    caller: str
    group: Group
    callees: tuple[str, ...]
    """The tiers that are called with them."""
    load: float
    """Permits in use on average."""
    held: Moments
    """How long a call holds one."""
    p99: int
    """Permits in use in all but one of a hundred moments."""
    permits: int
    """What it should have: the load at the utilisation, and no less than the 99th percentile."""
    configured: int
    """What it has."""
    wait_ratio: float
    """The part of its calls that wait with what is configured, 0–1."""
    mean_wait_s: float
    """How long they wait then on average, seconds; without end where all permits are taken."""

    @property
    def too_small(self) -> bool:
        """Return whether it has fewer than it should."""
        return self.configured < self.permits


@dataclass(frozen=True, slots=True, kw_only=True)
class Connections:
    """Is what the sidecars of one caller have open to one callee."""

    caller: str
    callee: str
    max_requests: int
    """`http2MaxRequests` of the callee, as `k8s render` writes it: what one caller may have under
    way there. 0 for the gateway, which has none: it says itself what is too much."""
    connections: int
    """Connections of all sidecars: callers × pods × worker threads."""


@dataclass(frozen=True, slots=True)
class Crowd:
    """Is what is in flight in one pod."""

    mean: float
    variance: float
    pair_load: float
    """Of that the calls of one caller, on average."""

    @property
    def evened_ratio(self) -> float:
        """Return how much more even that is than by chance, 0–1."""
        return 1 - self.variance / self.mean


def crowds(traffic: Traffic, found: Sequence[Flow], tiers: Sequence[Tier]) -> dict[str, Crowd]:
    """Return the calls in flight in one pod of each tier."""
    told = {}
    for tier in tiers:
        if tier.name == LLM:
            continue
        callers = [
            (rate * tier.time.mean_s, count)
            for rate, count in callers_of(tier.name, found, tiers, traffic)
        ]
        pair_load = tier.per_pod / sum(count for _, count in callers)
        told[tier.name] = Crowd(tier.per_pod, pod_variance(callers, tier.pods), pair_load)
    return told


def plan_pools(
    traffic: Traffic, found: Sequence[Flow], tiers: Sequence[Tier], tree: Tree
) -> Sequence[Pool]:
    """Return the permits of every caller, from the client inwards."""
    by_name = {tier.name: tier for tier in tiers}
    inside = crowds(traffic, found, tiers)
    pools = []
    for tier in tiers:
        for group in Group:
            out = [flow for flow in found if flow.caller == tier.name and flow.group == group]
            if out:
                pools.append(_pool(traffic, tier, out, by_name, inside[tier.name], tree))
    return pools


def _pool(
    traffic: Traffic,
    tier: Tier,
    out: Sequence[Flow],
    by_name: dict[str, Tier],
    inside: Crowd,
    tree: Tree,
) -> Pool:
    rate = tier.calls_per_s / tier.pods
    group = out[0].group
    held = mixed([(flow.calls, by_name[flow.callee].time) for flow in out])
    load = rate * sum(flow.calls for flow in out) * held.mean_s
    part = min(1.0, load / inside.mean)
    variance = part_variance(inside.mean, part, inside.variance)
    most = p99(load, variance)
    # Balancers even out all calls of the pod, those that wait as well; with less than a call of
    # its own there a caller hardly sees that some wait.
    seen = inside.pair_load / (1 + inside.pair_load)
    peakedness = min(1.0, variance / load) * (1 - part * inside.evened_ratio * seen)
    configured = tree.policies.bulkhead.size(group).allowed
    limited = tree.engine and tree.policies.bulkhead.mode is Mode.ENFORCE
    return Pool(
        caller=tier.name,
        group=group,
        callees=tuple(flow.callee for flow in out),
        load=load,
        held=held,
        p99=most,
        permits=max(places_for(load, traffic.utilisation), most),
        configured=configured,
        wait_ratio=wait_ratio(configured, load, peakedness) if limited else 0.0,
        mean_wait_s=mean_wait_s(configured, load, held, peakedness, RELIEF) if limited else 0.0,
    )


def mixed(parts: Sequence[tuple[float, Moments]]) -> Moments:
    """Return the moments of a length that is one of several, each as often as its weight says."""
    weight = sum(each for each, _ in parts)
    mean_s = sum(each * length.mean_s for each, length in parts) / weight
    second = sum(each * (1 + length.scv) * length.mean_s**2 for each, length in parts) / weight
    return Moments(mean_s, second / mean_s**2 - 1) if mean_s > 0 else Moments(0.0, 0.0)


def group_sizes(pools: Sequence[Pool]) -> dict[Group, int]:
    """Return the permits of each group that are enough for every hop: all read one configuration.

    What is configured stays where it is enough. The provider's connections are as many as core has
    permits, so they count there.
    """
    sizes: dict[Group, int] = {}
    for pool in pools:
        sizes[pool.group] = max(sizes.get(pool.group, pool.configured), pool.permits)
    return sizes


def plan_connections(
    traffic: Traffic, found: Sequence[Flow], tiers: Sequence[Tier], tree: Tree
) -> Sequence[Connections]:
    """Return what the sidecars have for every flow between pods.

    A caller's sidecar must not refuse what its bulkhead lets pass: it answers UNAVAILABLE, without
    a retry-after. So it takes some more requests than the group has permits by the configuration.
    """
    by_name = {tier.name: tier for tier in tiers}
    told = []
    for flow in found:
        callee = by_name[flow.callee]
        if callee.name == LLM:
            continue
        if flow.caller == EDGE_PROXY:
            callers = traffic.edge_pods
            most = 0
        else:
            callers = by_name[flow.caller].pods
            most = requests_let_through(tree.policies.bulkhead.size(flow.group).allowed)
        told.append(
            Connections(
                caller=flow.caller,
                callee=flow.callee,
                max_requests=most,
                connections=callers * callee.pods * traffic.sidecar.workers,
            )
        )
    return told
