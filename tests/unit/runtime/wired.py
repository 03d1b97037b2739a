"""Wires one hop to its callees as a process does, with every policy in THE ORDER."""

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from services.runtime.call import (
    Alternative,
    Call,
    Callee,
    CallLimits,
    Fallback,
    Identity,
    Inbound,
)
from services.runtime.circuit import BreakerState
from services.runtime.clock import Clock
from services.runtime.config import Config, load_config
from services.runtime.errors import SixhopError
from services.runtime.estimate import PathEstimator
from services.runtime.loads import Loads
from services.runtime.outgoing import Outgoing
from services.runtime.stack import ClientPolicies, client_policies, client_stack
from services.runtime.statistics import Activity
from services.runtime.status import no_answer
from services.runtime.verdict import GRID_RATIO
from tests.unit.runtime.fake_time import FakeTimeLoop, LoopClock
from tests.unit.runtime.policies.client_samples import SQL, sql_call
from tests.unit.runtime.scripted import ScriptedWire, Step, serving

Tables = Mapping[str, Mapping[str, Any]]
"""Sections of a configuration, by name."""
KEY = SQL.key
MODEL = "model"
LIMITS = CallLimits(step_timeout_s=5.0, min_useful_s=0.0)
HEDGED: Tables = {"hedge": {"keys": [KEY]}, "retry": {"not_for": [KEY]}}
"""Has the calls to the tool hedged in place of retried."""
ONE_PERMIT: Tables = {"bulkhead": {"core": {"permits": 1, "max_queued": 4}}}
NO_QUEUE: Tables = {"bulkhead": {"core": {"permits": 1, "max_queued": 0}}}
WARM_CALLS = 60
"""After so many calls a hedge is paid for, and what is late is known."""
LONG_S = 1000.0
"""Longer than anything that a policy remembers."""


def configured(tables: Tables) -> Config:
    """Return the defaults with some sections set."""
    return replace(load_config(None, {}), raw=tables)


@dataclass(frozen=True, slots=True)
class Sent:
    """Is one attempt as the callee sees it."""

    at: float
    given_s: float
    attempt: int
    last_chance: bool


@dataclass(slots=True)
class ScriptedCallee:
    """Answers as its script says, the last step for ever; an attempt ends by its timeout."""

    clock: Clock
    steps: Sequence[tuple[float, SixhopError | None]]
    sent: list[Sent] = field(default_factory=list)
    running: int = 0
    watch: Callable[[], None] = lambda: None
    """Is called whenever an attempt arrives."""

    async def send(self, call: Call) -> str:
        """Serve one attempt."""
        number = len(self.sent)
        now = self.clock.now()
        self.sent.append(Sent(now, call.attempt_timeout_s, call.attempt, call.last_chance))
        length_s, error = self.steps[min(number, len(self.steps) - 1)]
        self.running += 1
        self.watch()
        try:
            await self.clock.sleep(min(length_s, call.attempt_timeout_s))
        finally:
            self.running -= 1
        if length_s > call.attempt_timeout_s:
            whole = call.attempt_timeout_s >= GRID_RATIO * call.limits.step_timeout_s
            cause = "step_timeout" if whole else "deadline_share"
            raise no_answer(call.dependency, call.attempt_timeout_s, cause)
        if error is not None:
            raise error
        return f"answer {number + 1}"


class Wired:
    """Is the domain hop's way to a tool and to the model, through one set of policies."""

    def __init__(
        self,
        clock: Clock,
        callee: ScriptedCallee,
        *tables: Tables,
        limits: CallLimits = LIMITS,
        seed: int = 7,
    ) -> None:
        """Take who answers, the sections that are not as by default, and the declared limits."""
        merged = {name: section for each in tables for name, section in each.items()}
        self.clock = clock
        self.callee = callee
        self.activity = Activity()
        self.policies: ClientPolicies = client_policies(
            configured(merged), clock, random.Random(seed), lambda change: None
        )
        self.estimator = PathEstimator(clock, Loads(clock))
        stack = client_stack(clock, self.activity, self.policies, self.estimator)
        self._tool = Outgoing("domain", "tool", limits, stack, clock)
        self._model = Outgoing("domain", "model", limits, stack, clock)
        self.inbounds: list[Inbound] = []
        """The calls that were served; each made one call."""

    @property
    def inbound(self) -> Inbound:
        """Return the newest call that was served."""
        return self.inbounds[-1]

    async def ask(
        self,
        *,
        remaining_s: float = 30.0,
        alternatives: Sequence[Alternative] = (),
        callee: Callee = SQL,
        tenant: str = "",
    ) -> str:
        """Serve a call by calling the tool."""
        with serving(self.clock, remaining_s) as inbound:
            inbound.identity = Identity(tenant=tenant)
            self.inbounds.append(inbound)
            return await self._tool.unary(
                "ExecuteTool", self.callee.send, callee=callee, alternatives=alternatives
            )

    async def read(self, *scripts: Sequence[Step], remaining_s: float = 30.0) -> list[str]:
        """Serve a call by reading a stream of the model to its end; attempts follow the scripts."""
        left = list(scripts)

        async def open_wire(call: Call) -> ScriptedWire:
            return ScriptedWire(self.clock, left.pop(0) if len(left) > 1 else left[0])

        with serving(self.clock, remaining_s) as inbound:
            self.inbounds.append(inbound)
            stream = self._model.stream("Generate", open_wire)
            async with stream as events:
                return [event async for event in events]

    def some_call(self) -> Call:
        """Return a call of somebody else's that shares what this hop has."""
        return sql_call(arrived_at=self.clock.now())

    async def warm(self, count: int = WARM_CALLS) -> None:
        """Make calls, one after the other, so that the policies know what is normal."""
        for _ in range(count):
            await self.ask()

    async def half_open(self, *keys: str) -> None:
        """Bring breakers to where they probe."""
        for key in keys or (KEY,):
            self.policies.breakers.force_open(key, for_s=1.0)
        await self.clock.sleep(1.0)

    def state(self, key: str = KEY) -> BreakerState:
        """Return how a breaker stands."""
        return self.policies.breakers.state(key)

    def held(self) -> dict[str, int]:
        """Return what is held or waited for now; nothing when all is quiet."""
        groups = self.policies.bulkhead.snapshot().groups.values()
        counts = {
            "calls": self.activity.outgoing,
            "permits": sum(group.inflight for group in groups),
            "queued": sum(group.queued for group in groups),
            "tenants": sum(len(group.tenants) for group in groups),
            "probes": sum(each.probes for each in self.policies.breakers.snapshot().values()),
            "attempts": self.callee.running,
            "waits": sum(len(inbound.waiting) for inbound in self.inbounds),
        }
        return {name: count for name, count in counts.items() if count}

    async def leftovers(self) -> dict[str, int]:
        """Return what is still held when everything should be over; nothing when all is well."""
        await self.policies.hedge.wait_parted()
        found = self.held()
        loop = asyncio.get_running_loop()
        if isinstance(loop, FakeTimeLoop):
            found |= {"timers": loop.timer_count()} if loop.timer_count() else {}
        tasks = len(asyncio.all_tasks()) - 1
        found |= {"tasks": tasks} if tasks else {}
        # An attempt that a breaker still watches is overdue some day.
        await self.clock.sleep(LONG_S)
        overdue = sum(each.overdue for each in self.policies.breakers.snapshot().values())
        return found | ({"overdue": overdue} if overdue else {})


def spare(clock: Clock, length_s: float = 0.0) -> Alternative:
    """Return an alternative that takes its time."""

    async def run() -> str:
        await clock.sleep(length_s)
        return "spare"

    return Alternative(mechanism=Fallback.DEFAULT, run=run, expected_s=length_s)


def wired(*steps: tuple[float, SixhopError | None], tables: Sequence[Tables] = ()) -> Wired:
    """Return a hop on the running loop whose callee follows the steps."""
    clock = LoopClock()
    return Wired(clock, ScriptedCallee(clock, steps), *tables)
