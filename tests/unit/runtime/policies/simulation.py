"""Simulates a process under load, in no time, with admission at its door."""

import asyncio
import itertools
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from services.runtime.call import Criticality, Identity, Inbound
from services.runtime.errors import LoadShedError, SelfTimeoutError
from services.runtime.policies.admission import Admission
from services.runtime.policies.deadline import margin_s
from tests.unit.runtime.fake_time import LoopClock


@dataclass(frozen=True, slots=True)
class Source:
    """Sends calls at random instants, so many a second on average, or keeps some in flight."""

    name: str
    rate: float = 0.0
    criticality: Criticality = Criticality.CRITICAL
    deadline_s: float = 2.0
    at_once: int = 0
    """How many calls it has in flight all the time; in place of a rate."""


@dataclass(slots=True)
class Result:
    """Counts what became of the calls, by source."""

    sent: Counter[str] = field(default_factory=Counter)
    in_time: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    late: Counter[str] = field(default_factory=Counter)
    peak: int = 0
    latencies: dict[str, list[float]] = field(default_factory=dict)

    def p99(self, *sources: str) -> float:
        """Return what all but one of a hundred calls of some sources took at most."""
        lengths = sorted(itertools.chain.from_iterable(map(self.latencies.__getitem__, sources)))
        return lengths[int(0.99 * (len(lengths) - 1))]


class Process:
    """Has places that work and a queue before them; the deadline cuts what takes too long."""

    def __init__(self, admission: Admission, places: int, seed: int) -> None:
        """Take the gate, how many calls are worked on at once, and a seed."""
        self._admission = admission
        self._clock = LoopClock()
        self._places = asyncio.Semaphore(places)
        self._rng = random.Random(seed)
        self._inflight = 0
        self.result = Result()

    async def run(self, sources: Sequence[Source], length_s: float, work_s: float) -> Result:
        """Take calls for some time, then let all end."""
        ends_at = self._clock.now() + length_s
        async with asyncio.TaskGroup() as calls:
            for source in sources:
                if source.rate:
                    calls.create_task(self._send(source, ends_at, work_s, calls))
                for _ in range(source.at_once):
                    calls.create_task(self._repeat(source, ends_at, work_s))
        return self.result

    async def _send(
        self, source: Source, ends_at: float, work_s: float, calls: asyncio.TaskGroup
    ) -> None:
        while True:
            await self._clock.sleep(self._rng.expovariate(source.rate))
            if self._clock.now() >= ends_at:
                return
            calls.create_task(self._arrive(source, self._rng.expovariate(1 / work_s)))

    async def _repeat(self, source: Source, ends_at: float, work_s: float) -> None:
        while self._clock.now() < ends_at:
            await self._arrive(source, self._rng.expovariate(1 / work_s))
            # A caller that was refused at once does not come back in no time.
            await self._clock.sleep(0.01)

    async def _arrive(self, source: Source, work_s: float) -> None:
        now = self._clock.now()
        margin = margin_s(source.deadline_s)
        inbound = Inbound("model", "Generate", True, now, now + source.deadline_s, margin_s=margin)
        inbound.identity = Identity(tenant=source.name, criticality=source.criticality)
        result, name = self.result, source.name
        result.sent[name] += 1
        try:
            async with self._admission(inbound):
                await self._work(inbound, work_s)
        except LoadShedError:
            result.refused[name] += 1
        except SelfTimeoutError:
            result.late[name] += 1
        else:
            result.in_time[name] += 1
            result.latencies.setdefault(name, []).append(self._clock.now() - now)

    async def _work(self, inbound: Inbound, work_s: float) -> None:
        self._inflight += 1
        self.result.peak = max(self.result.peak, self._inflight)
        try:
            async with asyncio.timeout_at(inbound.self_deadline), self._places:
                await self._clock.sleep(work_s)
        except TimeoutError:
            raise SelfTimeoutError("late", cause="deadline") from None
        finally:
            self._inflight -= 1


def overload(times: float, capacity: float, parts: Sequence[float]) -> list[Source]:
    """Return four sources, one for each level, that send so many times the capacity."""
    return [
        Source(level.name, times * capacity * part, level)
        for level, part in zip(Criticality, parts, strict=True)
    ]
