"""Computes how many pods each tier takes, what each call does there and how long that takes."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from gateway.planning.flows import EDGE_PROXY, Flow, hop_of, rates
from gateway.planning.queueing import NONE, Moments, in_flight, moments, shared_time
from gateway.planning.traffic import HopCost, Traffic
from gateway.sizes import inflight_target
from services.runtime.call import Group
from services.runtime.checks.tree import Tree
from services.runtime.places import places_for
from services.runtime.topology import DOMAIN, GATEWAY, LLM, TOOL

CPU, IN_FLIGHT, FEWEST = "cpu", "in flight", "fewest"
"""What decides how many pods a tier has."""
_MOST_EJECTED = 0.9
"""A pool of which more may be ejected has no size that would be enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """Is one Deployment, or the provider, at the busiest minute."""

    name: str
    calls_per_s: float
    time: Moments
    """How long a call is there, with all that it waits for."""
    own_s: float
    """Of that its own work, at the load of this plan."""
    in_flight: float
    """Calls in flight in all pods, on average."""
    cores: float
    """CPU that its pods use, in cores; 0 for the provider."""
    pods: int
    """The pods at the busiest minute, spare ones included; 0 for the provider."""
    because: str
    """What decides that: `cpu`, `in flight` or `fewest`; empty for the provider."""
    min_pods: int
    """The pods at the average load, for the HPA."""
    max_pods: int
    """The pods that carry the load while as many as may be are ejected, for the HPA."""
    inflight_target: int
    """Calls in flight per pod that the HPA aims at; 0 where no limit is in force."""
    busy_ratio: float
    """The part of the cores of its pods that is in use, 0–1."""
    memory_mib: float
    """What one pod holds, MiB."""
    sidecar_cores: float
    """CPU of all its sidecars, in cores."""

    @property
    def per_pod(self) -> float:
        """Return the calls in flight in one pod, on average."""
        return self.in_flight / self.pods if self.pods else 0.0


def plan_tiers(
    traffic: Traffic, found: Sequence[Flow], tree: Tree, *, run_bytes: int
) -> Sequence[Tier]:
    """Return every tier, from the client inwards.

    Args:
        traffic: what comes and what it costs.
        found: the calls of a run, callers first.
        tree: the configuration, for the limits of admission.
        run_bytes: what a gateway keeps of runs at most, bytes.
    """
    peak, average = rates(found, traffic.peak_qps), rates(found, traffic.qps)
    target = inflight_target(tree)
    times: dict[str, Moments] = {}
    tiers: list[Tier] = []
    # The ones that are called first: a call takes as long as what it waits for.
    for name in reversed(peak):
        if name == LLM:
            tier = _provider(traffic, peak[name])
        else:
            tier = _Sizing(traffic, found, name, target, times).tier(peak, average)
        if name == GATEWAY:
            tier = _with_runs(tier, run_bytes)
        times[name] = tier.time
        tiers.insert(0, tier)
    return tiers


def _provider(traffic: Traffic, rate: float) -> Tier:
    time = moments(traffic.llm)
    return Tier(
        name=LLM,
        calls_per_s=rate,
        time=time,
        own_s=time.mean_s,
        in_flight=in_flight(rate, time.mean_s),
        cores=0.0,
        pods=0,
        because="",
        min_pods=0,
        max_pods=0,
        inflight_target=0,
        busy_ratio=0.0,
        memory_mib=0.0,
        sidecar_cores=0.0,
    )


class _Sizing:
    """Sizes one tier."""

    def __init__(
        self,
        traffic: Traffic,
        found: Iterable[Flow],
        name: str,
        target: int,
        times: Mapping[str, Moments],
    ) -> None:
        flows = list(found)
        self._traffic, self._name, self._target = traffic, name, target
        self._out = [flow for flow in flows if flow.caller == name]
        self._in = [flow for flow in flows if flow.callee == name]
        self._hop: HopCost = traffic.hop_cost(hop_of(name))
        self._waited = added([waits_of(traffic, name), *(_calls(f, times) for f in self._out)])
        self._cpu_s = cpu_s(traffic, name, self._in[0].events)

    def tier(self, peak: Mapping[str, float], average: Mapping[str, float]) -> Tier:
        """Return the tier, with pods for both rates."""
        rate = peak[self._name]
        by_cpu, by_calls = self._pods_by_cpu(rate), self._pods_by_calls(rate)
        needed = max(by_cpu, by_calls)
        pods = self._with_spare(needed)
        cores = rate * self._cpu_s
        busy = cores / (pods * self._hop.cores)
        own_s = shared_time(self._cpu_s, busy)
        # Own work among that of others: about as variable as an exponential spread.
        time = added([Moments(own_s, 1.0), self._waited])
        ejected = min(self._traffic.ejection.max_ejection_percent / 100, _MOST_EJECTED)
        calls = in_flight(rate, time.mean_s)
        held_kib = self._traffic.stream_kib * calls / pods
        return Tier(
            name=self._name,
            calls_per_s=rate,
            time=time,
            own_s=own_s,
            in_flight=calls,
            cores=cores,
            pods=pods,
            because=FEWEST if pods > needed + self._traffic.spare_pods else _why(by_cpu, by_calls),
            min_pods=self._with_spare(self._needed(average[self._name])),
            max_pods=max(pods, math.ceil(needed / (1 - ejected))),
            inflight_target=self._target,
            busy_ratio=busy,
            memory_mib=self._hop.memory_mib + held_kib / 1024,
            sidecar_cores=rate * self._sidecar_cpu_s(),
        )

    def _with_spare(self, needed: int) -> int:
        return max(self._traffic.min_pods, needed + self._traffic.spare_pods)

    def _needed(self, rate: float) -> int:
        return max(self._pods_by_cpu(rate), self._pods_by_calls(rate))

    def _pods_by_cpu(self, rate: float) -> int:
        full = self._hop.cores * self._traffic.cpu_utilisation
        return places_for(rate * self._cpu_s, full)

    def _pods_by_calls(self, rate: float) -> int:
        """Return the pods for the calls in flight, with the cores as busy as they may be."""
        if not self._target:
            return 1
        own_s = shared_time(self._cpu_s, self._traffic.cpu_utilisation)
        calls = in_flight(rate, own_s + self._waited.mean_s)
        return places_for(calls, self._target)

    def _sidecar_cpu_s(self) -> float:
        """Return the CPU of a pod's sidecar for one call: it passes what comes and what goes."""
        sidecar = self._traffic.sidecar
        passed = 1 + sum(flow.calls for flow in self._out)
        streamed = self._in[0].events + sum(flow.calls * flow.events for flow in self._out)
        return (passed * sidecar.cpu_ms + streamed * sidecar.event_cpu_ms) / 1000


def cpu_s(traffic: Traffic, name: str, events: float) -> float:
    """Return the CPU time of one call at a tier, seconds.

    Args:
        traffic: what it costs.
        name: the tier.
        events: how many events it passes on.
    """
    hop = traffic.hop_cost(hop_of(name))
    spent_ms = hop.cpu_ms + hop.event_cpu_ms * events
    if name == DOMAIN:
        spent_ms += hop.tool_cpu_ms * traffic.tool_calls
    if hop_of(name) == TOOL:
        spent_ms += traffic.tool_cost(Group(name.partition("/")[2])).cpu_ms
    return spent_ms / 1000


def waits_of(traffic: Traffic, name: str) -> Moments:
    """Return how long one call of a tier waits for what is not in the suite."""
    own = moments(traffic.hop_cost(hop_of(name)).waits)
    if hop_of(name) != TOOL:
        return own
    return added([own, moments(traffic.tool_cost(Group(name.partition("/")[2])).waits)])


def added(lengths: Iterable[Moments]) -> Moments:
    """Return what lengths come to, one after the other, that know nothing of each other."""
    mean_s = variance = 0.0
    for each in lengths:
        mean_s += each.mean_s
        variance += each.scv * each.mean_s**2
    return Moments(mean_s, variance / mean_s**2) if mean_s > 0 else NONE


def _calls(flow: Flow, times: Mapping[str, Moments]) -> Moments:
    """Return how long all calls of one flow take a caller, one after the other.

    Of 2.3 calls on average, all make two, and three of ten one more: the variance is that of a sum
    of a random number (Wald): `E[n] · Var + Var[n] · mean²`.
    """
    each = times[flow.callee]
    odd = flow.calls - math.floor(flow.calls)
    mean_s = flow.calls * each.mean_s
    variance = (flow.calls * each.scv + odd * (1 - odd)) * each.mean_s**2
    return Moments(mean_s, variance / mean_s**2) if mean_s > 0 else NONE


def _why(by_cpu: int, by_calls: int) -> str:
    return CPU if by_cpu >= by_calls else IN_FLIGHT


def _with_runs(tier: Tier, run_bytes: int) -> Tier:
    """Add what a gateway keeps of recent runs to what its pods hold."""
    return replace(tier, memory_mib=tier.memory_mib + run_bytes / 2**20)


def callers_of(
    name: str, found: Iterable[Flow], tiers: Iterable[Tier], traffic: Traffic
) -> list[tuple[float, int]]:
    """Return who calls a tier: for each kind of caller its calls per second and its pods."""
    by_name = {tier.name: tier for tier in tiers}
    callers = []
    for flow in found:
        if flow.callee != name:
            continue
        if flow.caller == EDGE_PROXY:
            callers.append((traffic.peak_qps * flow.calls, traffic.edge_pods))
        else:
            caller = by_name[flow.caller]
            callers.append((caller.calls_per_s * flow.calls, caller.pods))
    return callers
