"""Lets runs come at random, call by call, to see what a plan says about them.

It knows nothing of the plan's arithmetic: pods share their core among the calls that they work
on, callers draw two pods and take the one with fewer of their own calls, permits are taken in turn,
and all else is chance from one seed. It is told the traffic, and how many pods there are.
"""

import heapq
import math
import random
from collections import defaultdict, deque
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field

from gateway.planning.traffic import TOOL_GROUPS, HopCost, Spread, Traffic
from services.runtime.call import Group

Then = Callable[[], None]
"""Is what happens next."""
Wait = Callable[[Then], None]
"""Takes what is to be done when the wait is over."""
Steps = Generator[Wait, None, None]
"""Is something that goes on in steps: it yields what it waits for."""
EDGE = "edge"


class World:
    """Is the clock, and what happens next."""

    def __init__(self, seed: int) -> None:
        self.now = 0.0
        self.chance = random.Random(seed)
        self._events: list[tuple[float, int, Then]] = []
        self._count = 0

    def after(self, length_s: float, then: Then) -> None:
        self._count += 1
        heapq.heappush(self._events, (self.now + length_s, self._count, then))

    def run(self, until_s: float) -> None:
        while self._events and self._events[0][0] <= until_s:
            self.now, _, then = heapq.heappop(self._events)
            then()
        self.now = until_s

    def sleep(self, length_s: float) -> Wait:
        return lambda then: self.after(length_s, then)

    def lasting(self, spread: Spread) -> float:
        """Draw a length whose logarithm is normal."""
        if spread.p99_s == spread.p50_s:
            return spread.p50_s
        deviation = (math.log(spread.p99_s) - math.log(spread.p50_s)) / 2.32635
        return self.chance.lognormvariate(math.log(spread.p50_s), deviation)

    def times(self, average: float) -> int:
        """Draw how often something is done that is done so often on average."""
        whole = int(average)
        return whole + (self.chance.random() < average - whole)


def go(steps: Steps, ended: Then = lambda: None) -> None:
    """Do the next step, and the ones after it when their waits are over."""
    try:
        wait = next(steps)
    except StopIteration:
        ended()
        return
    wait(lambda: go(steps, ended))


@dataclass(slots=True)
class Gauge:
    """Watches a number: how long it was what."""

    held_s: defaultdict[int, float] = field(default_factory=lambda: defaultdict(float))
    value: int = 0
    since: float = 0.0

    def add(self, change: int, now: float) -> None:
        self.held_s[self.value] += now - self.since
        self.value += change
        self.since = now

    def begin(self, now: float) -> None:
        """Forget what was."""
        self.held_s.clear()
        self.since = now


class Pod:
    """Has a core that all calls share, and permits of each group."""

    def __init__(self, world: World, cores: float, permits: Mapping[Group, int]) -> None:
        self._world = world
        self._speed = cores
        self._work: list[tuple[float, int, Then]] = []
        self._done = 0.0
        """How much each call has got since the start of the world."""
        self._at = 0.0
        self._turn = 0
        self.permits = dict(permits)
        self.queues: dict[Group, deque[Then]] = {g: deque() for g in Group}
        self.inside = Gauge()
        self.held = {group: Gauge() for group in Group}

    def work(self, work_s: float) -> Wait:
        def wait(then: Then) -> None:
            self._advance()
            self._turn += 1
            heapq.heappush(self._work, (self._done + work_s, self._turn, then))
            self._plan()

        return wait

    def _advance(self) -> None:
        now = self._world.now
        if self._work:
            self._done += (now - self._at) * min(1.0, self._speed / len(self._work))
        self._at = now

    def _plan(self) -> None:
        if not self._work:
            return
        self._turn += 1
        turn = self._turn
        left = max(0.0, self._work[0][0] - self._done)

        def finish() -> None:
            if turn != self._turn:
                return
            self._advance()
            _, _, then = heapq.heappop(self._work)
            self._plan()
            then()

        self._world.after(left / min(1.0, self._speed / len(self._work)), finish)


@dataclass(slots=True)
class Waits:
    """Counts how calls waited for permits."""

    calls: int = 0
    waited: int = 0
    wait_s: float = 0.0

    @property
    def ratio(self) -> float:
        return self.waited / self.calls

    @property
    def mean_s(self) -> float:
        return self.wait_s / self.calls


Serve = Callable[[Pod], Steps]
"""Does the work of one call in a pod."""


class Simulation:
    """Is the suite."""

    def __init__(
        self,
        traffic: Traffic,
        pods: Mapping[str, int],
        permits: Mapping[Group, int],
        *,
        seed: int,
    ) -> None:
        """Take what comes, the pods of each tier, and the permits of each group in each of them."""
        self.world = World(seed)
        self._traffic = traffic
        self.pods = {
            name: [Pod(self.world, self._hop(name).cores, permits) for _ in range(count)]
            for name, count in pods.items()
        }
        self._edges = [Pod(self.world, 1.0, {}) for _ in range(traffic.edge_pods)]
        self._own: dict[tuple[int, str], list[int]] = {}
        """The calls of one caller in flight at each pod of a tier."""
        self.provider = Gauge()
        self.waits: dict[tuple[str, Group], Waits] = {}
        self._counting = False
        self._window_s = 0.0

    def run(self, warm_up_s: float, window_s: float) -> None:
        """Let runs come, and watch from the end of the warm-up on."""
        self.world.after(0.0, self._arrive)
        self.world.run(warm_up_s)
        self._counting, self._window_s = True, window_s
        for gauge in self._gauges():
            gauge.begin(warm_up_s)
        self.world.run(warm_up_s + window_s)
        for gauge in self._gauges():
            gauge.add(0, self.world.now)

    def in_flight(self, tier: str) -> float:
        """Return the calls in flight in all pods of a tier, on average."""
        gauges = [self.provider] if tier == "llm" else [pod.inside for pod in self.pods[tier]]
        return sum(_mean(gauge, self._window_s) for gauge in gauges)

    def needed(self, tier: str, group: Group) -> int:
        """Return the permits in use in a pod in all but one of a hundred moments."""
        together: defaultdict[int, float] = defaultdict(float)
        for pod in self.pods[tier]:
            for value, length_s in pod.held[group].held_s.items():
                together[value] += length_s
        left_s = 0.01 * sum(together.values())
        for value in sorted(together, reverse=True):
            left_s -= together[value]
            if left_s < 0:
                return value
        raise AssertionError("nothing was watched")

    def _gauges(self) -> list[Gauge]:
        pods = [pod for each in self.pods.values() for pod in each]
        held = [gauge for pod in pods for gauge in pod.held.values()]
        return [self.provider, *(pod.inside for pod in pods), *held]

    def _hop(self, tier: str) -> HopCost:
        hop = tier.split("/")[0]
        cost: HopCost = getattr(self._traffic, "model" if hop == "model_backup" else hop)
        return cost

    def _arrive(self) -> None:
        rate = self._traffic.qps * self._traffic.peak_factor
        self.world.after(self.world.chance.expovariate(rate), self._arrive)
        edge = self.world.chance.choice(self._edges)
        go(self._call(edge, EDGE, "gateway", self._gateway))

    def _call(
        self,
        caller: Pod,
        name: str,
        callee: str,
        serve: Serve,
        group: Group | None = None,
    ) -> Steps:
        """Take a permit, choose a pod, be served, and give both back."""
        world = self.world
        if group is not None:
            yield from self._permit(caller, name, group)
        own = self._own.setdefault((id(caller), callee), [0] * len(self.pods[callee]))
        draw = world.chance.randrange
        one, other = draw(len(own)), draw(len(own))
        chosen = one if own[one] <= own[other] else other
        own[chosen] += 1
        pod = self.pods[callee][chosen]
        pod.inside.add(1, world.now)
        yield from serve(pod)
        pod.inside.add(-1, world.now)
        own[chosen] -= 1
        if group is not None:
            self._give_back(caller, group)

    def _permit(self, caller: Pod, name: str, group: Group) -> Steps:
        began, world = self.world.now, self.world
        if caller.permits[group] > 0:
            caller.permits[group] -= 1
        else:
            yield caller.queues[group].append
        caller.held[group].add(1, world.now)
        if self._counting:
            waits = self.waits.setdefault((name, group), Waits())
            waits.calls += 1
            waits.waited += world.now > began
            waits.wait_s += world.now - began

    def _give_back(self, caller: Pod, group: Group) -> None:
        caller.held[group].add(-1, self.world.now)
        if caller.queues[group]:
            caller.queues[group].popleft()()
        else:
            caller.permits[group] += 1

    def _gateway(self, pod: Pod) -> Steps:
        tools = {g: self.world.times(self._traffic.tool_cost(g).calls) for g in TOOL_GROUPS}
        direct = self.world.times(self._traffic.direct_model_calls)
        tool_count = sum(tools.values())
        told = 5 + 2 * tool_count + direct * self._traffic.chunks

        def own(name: str) -> float:
            hop = self._hop(name)
            tool_ms = hop.tool_cpu_ms * tool_count if name == "domain" else 0.0
            return (hop.cpu_ms + told * hop.event_cpu_ms + tool_ms) / 1000

        def domain(pod: Pod) -> Steps:
            yield pod.work(own("domain"))
            for group, count in tools.items():
                for _ in range(count):
                    name = f"tool/{group}"
                    serve = self._tool(group)
                    yield from self._call(pod, "domain", name, serve, group)
            for _ in range(direct):
                yield from self._generation(pod, "domain")

        def routing(pod: Pod) -> Steps:
            yield pod.work(own("routing"))
            yield from self._call(pod, "routing", "domain", domain, Group.CORE)

        yield pod.work(own("gateway"))
        yield from self._call(pod, "gateway", "routing", routing, Group.CORE)

    def _tool(self, group: Group) -> Serve:
        cost = self._traffic.tool_cost(group)

        def serve(pod: Pod) -> Steps:
            yield pod.work((cost.cpu_ms + self._traffic.tool.cpu_ms) / 1000)
            if cost.waits is not None:
                yield self.world.sleep(self.world.lasting(cost.waits))
            for _ in range(self.world.times(cost.model_calls)):
                yield from self._generation(pod, f"tool/{group}")

        return serve

    def _generation(self, pod: Pod, name: str) -> Steps:
        yield from self._call(pod, name, "model", self._model, Group.CORE)
        if self.world.chance.random() < self._traffic.backup_ratio:
            yield from self._call(pod, name, "model_backup", self._model, Group.BACKUP)

    def _model(self, pod: Pod) -> Steps:
        hop = self._traffic.model
        yield pod.work((hop.cpu_ms + hop.event_cpu_ms * self._traffic.chunks) / 1000)
        yield from self._permit(pod, "model", Group.CORE)
        self.provider.add(1, self.world.now)
        yield self.world.sleep(self.world.lasting(self._traffic.llm))
        self.provider.add(-1, self.world.now)
        self._give_back(pod, Group.CORE)


def _mean(gauge: Gauge, window_s: float) -> float:
    return sum(value * length_s for value, length_s in gauge.held_s.items()) / window_s
