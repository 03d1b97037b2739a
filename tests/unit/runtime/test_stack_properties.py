"""Holds the whole way of a call to its arithmetic, whatever the configuration and the timeline.

Through the lists that a process uses, with any settings of the policies that are valid, settings
that change while calls are under way, and callees that answer, fail, hang and push back at random.
"""

import asyncio
import random
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from services.runtime.call import CallLimits, Group
from services.runtime.circuit import BreakerState
from services.runtime.errors import SixhopError
from services.runtime.policies.deadline import margin_s
from services.runtime.policy_settings import policy_settings
from tests.unit.runtime.fake_time import LoopClock, run_in_fake_time
from tests.unit.runtime.policies.client_samples import SQL, failed, overloaded
from tests.unit.runtime.scripted import Pause, Step
from tests.unit.runtime.wired import (
    KEY,
    ScriptedCallee,
    Tables,
    Wired,
    configured,
    spare,
)

EPSILON_S = 1e-6
MAX_PROBES = 3
RETRY = st.fixed_dictionaries(
    {
        "max_attempts": st.integers(1, 5),
        "initial_backoff_s": st.floats(0.0, 1.5),
        "jitter_ratio": st.floats(0.0, 1.0),
        "max_tokens": st.floats(1.0, 40.0),
        "expected_factor": st.floats(1.0, 2.0),
    }
)
BREAKER = st.fixed_dictionaries(
    {
        "min_calls": st.integers(1, 10),
        "max_failure_ratio": st.floats(0.0, 0.9),
        "open_duration_s": st.floats(0.1, 2.0),
        "max_half_open_s": st.floats(0.1, 5.0),
        "max_probes": st.integers(1, MAX_PROBES),
        "window_s": st.integers(1, 20),
    }
)
BULKHEAD = st.fixed_dictionaries(
    {
        "core": st.fixed_dictionaries(
            {"permits": st.integers(1, 9), "max_queued": st.integers(0, 6)}
        ),
        "max_wait_s": st.floats(0.0, 0.5),
        "tenant_ratio": st.floats(0.1, 1.0),
        "callee_queue_ratio": st.floats(0.1, 1.0),
    }
)
ADAPTIVE = st.fixed_dictionaries({"enabled": st.booleans(), "min_timeout_s": st.floats(0.1, 5.0)})
HEDGE = st.fixed_dictionaries(
    {"keys": st.just([KEY]), "percentile": st.floats(0.5, 1.0), "max_tokens": st.floats(1.0, 5.0)}
)
RETRYING = st.fixed_dictionaries(
    {"retry": RETRY, "breaker": BREAKER, "bulkhead": BULKHEAD, "adaptive": ADAPTIVE}
)
HEDGING = st.fixed_dictionaries(
    {
        "hedge": HEDGE,
        "retry": st.just({"not_for": [KEY]}),
        "breaker": BREAKER,
        "bulkhead": BULKHEAD,
        "adaptive": ADAPTIVE,
    }
)
TABLES: st.SearchStrategy[Tables] = st.one_of(RETRYING, HEDGING)
LIMITS = st.builds(
    CallLimits,
    step_timeout_s=st.floats(0.05, 1.0) | st.floats(0.05, 20.0),
    min_useful_s=st.floats(0.0, 0.1),
    share=st.floats(0.05, 0.6),
)


Steps = list[tuple[float, SixhopError | None]]


def steps(chance: random.Random, longest_s: float, count: int = 8) -> Steps:
    """Return what a callee does that answers, fails, hangs and pushes back at random."""

    def end() -> SixhopError | None:
        return chance.choice([None, failed(), failed(), overloaded(chance.uniform(0, 4))])

    return [(chance.uniform(0, longest_s), end()) for _ in range(count)]


@settings(max_examples=100, deadline=None)
@given(
    tables=TABLES,
    limits=LIMITS,
    remaining_s=st.floats(0.1, 6.0) | st.floats(0.1, 60.0),
    spare_s=st.one_of(st.none(), st.floats(0.0, 5.0)),
    calls_before=st.sampled_from([0, 25, 60, 120]),
    full=st.booleans(),
    seed=st.integers(0, 10_000),
)
def test_no_attempt_exceeds_its_share_nor_all_of_them_and_their_waits_the_budget(
    tables: Tables,
    limits: CallLimits,
    remaining_s: float,
    spare_s: float | None,
    calls_before: int,
    full: bool,
    seed: int,
) -> None:
    async def play() -> None:
        clock, chance = LoopClock(), random.Random(seed)
        hop = Wired(clock, ScriptedCallee(clock, [(0.01, None)]), tables, limits=limits, seed=seed)
        with suppress(SixhopError):
            await hop.warm(calls_before)
        # Strangers that have all permits, and give them back one by one.
        others = tables["bulkhead"]["core"]["permits"] if full else 0
        taken = [
            asyncio.create_task(hop.read([Pause(chance.uniform(0, 0.5)), "one"]))
            for _ in range(others)
        ]
        await asyncio.sleep(0)
        callee = hop.callee = ScriptedCallee(clock, steps(chance, 1.2 * limits.step_timeout_s))
        began = clock.now()
        alternatives = [] if spare_s is None else [spare(clock, spare_s)]

        await asyncio.gather(
            hop.ask(remaining_s=remaining_s, alternatives=alternatives), return_exceptions=True
        )

        ended, inbound = clock.now(), hop.inbound
        assert inbound.arrived_at == began
        assert ended <= inbound.self_deadline + EPSILON_S
        assert len(callee.sent) <= policy_settings(configured(tables)).retry.max_attempts
        assert spare_s is None or not any(sent.last_chance for sent in callee.sent)
        for sent in callee.sent:
            # What the wait for a permit took is off it already.
            left_s = remaining_s if sent.last_chance else inbound.deadline - sent.at
            assert sent.given_s <= min(limits.step_timeout_s, limits.share * left_s) + EPSILON_S
            assert sent.at + sent.given_s <= inbound.self_deadline + EPSILON_S
        await asyncio.gather(*taken, return_exceptions=True)
        assert await hop.leftovers() == {}

    run_in_fake_time(play())


@settings(max_examples=60, deadline=None)
@given(
    limits=LIMITS,
    tables=RETRYING,
    remaining_s=st.floats(0.2, 60.0),
    seed=st.integers(0, 10_000),
)
def test_no_wait_of_a_stream_exceeds_its_share_nor_the_stream_its_budget(
    limits: CallLimits, tables: Tables, remaining_s: float, seed: int
) -> None:
    async def play() -> None:
        clock, chance = LoopClock(), random.Random(seed)
        limited = replace(
            limits,
            read_timeout_s=chance.uniform(0.1, 5.0),
            first_content_timeout_s=chance.choice([None, chance.uniform(0.1, 5.0)]),
        )
        hop = Wired(clock, ScriptedCallee(clock, []), tables, limits=limited, seed=seed)
        scripts = [script(chance, limited.step_timeout_s) for _ in range(6)]

        await asyncio.gather(hop.read(*scripts, remaining_s=remaining_s), return_exceptions=True)

        inbound = hop.inbound
        whole_s = remaining_s - margin_s(remaining_s)
        assert clock.now() <= inbound.self_deadline + EPSILON_S
        assert sum(report.used_s for report in inbound.reports) <= whole_s + EPSILON_S
        for report in inbound.reports:
            assert report.given_s <= whole_s - report.start_s + EPSILON_S
        assert await hop.leftovers() == {}

    run_in_fake_time(play())


def script(chance: random.Random, longest_s: float) -> Sequence[Step]:
    """Return a stream that begins or not, goes on or not, and ends well or not."""
    steps: list[Step] = [Pause(chance.uniform(0, 1.5 * longest_s))]
    for _ in range(chance.randrange(6)):
        steps += ["event", Pause(chance.uniform(0, 4.0))]
    return [*steps, failed(hop="model")] if chance.random() < 0.5 else steps


@dataclass(slots=True)
class Crowd:
    """Watches many calls, whose settings change under way."""

    hop: Wired
    tables: Tables
    changed_at: float = -1.0
    permits: int = 0
    """The most that held at this instant."""
    probes: int = 0

    def __post_init__(self) -> None:
        """Begin with the settings that the hop was made with."""
        self.permits, self.probes = self._limits(self.tables)

    def change(self, tables: Tables) -> None:
        """Change the settings."""
        self.hop.policies.reconfigure(policy_settings(configured(tables)))
        now = self.hop.clock.now()
        permits, probes = self._limits(tables)
        # Who was let in at this very instant comes to the callee a moment later.
        same = now == self.changed_at
        before = (self.permits, self.probes) if same else self._limits(self.tables)
        self.permits, self.probes = max(permits, before[0]), max(probes, before[1])
        self.tables, self.changed_at = tables, now

    def arrival(self) -> None:
        """Look at what is held when an attempt comes to its callee."""
        now = self.hop.clock.now()
        permits, probes = self._limits(self.tables)
        if now == self.changed_at:
            permits, probes = self.permits, self.probes
        group = self.hop.policies.bulkhead.snapshot().groups[Group.CORE]
        breaker = self.hop.policies.breakers.snapshot()[KEY]
        assert 0 < group.inflight <= permits
        assert sum(group.callees.values()) == sum(group.tenants.values()) == group.inflight
        assert 0 <= group.queued
        assert 0 <= breaker.probes <= MAX_PROBES
        if breaker.state is BreakerState.HALF_OPEN:
            assert breaker.probes <= probes

    @staticmethod
    def _limits(tables: Tables) -> tuple[int, int]:
        return tables["bulkhead"]["core"]["permits"], tables["breaker"]["max_probes"]


@settings(max_examples=40, deadline=None)
@given(
    configurations=st.lists(RETRYING, min_size=1, max_size=4),
    calls=st.integers(10, 40),
    gap_s=st.sampled_from([0.01, 0.05, 0.2]),
    sick_ratio=st.floats(0.0, 1.0),
    seed=st.integers(0, 10_000),
)
def test_permits_and_probes_stay_within_their_limits_though_these_change(
    configurations: Sequence[Tables], calls: int, gap_s: float, sick_ratio: float, seed: int
) -> None:
    async def play() -> None:
        clock, chance = LoopClock(), random.Random(seed)
        ends = [failed() if chance.random() < sick_ratio else None for _ in range(200)]
        callee = ScriptedCallee(clock, [(chance.uniform(0, 3), end) for end in ends])
        hop = Wired(clock, callee, configurations[0], seed=seed)
        crowd = Crowd(hop, configurations[0])
        broken: list[AssertionError] = []

        def watch() -> None:
            try:
                crowd.arrival()
            except AssertionError as error:
                broken.append(error)

        callee.watch = watch
        running: list[asyncio.Task[str]] = []
        for _ in range(calls):
            limited = replace(SQL, max_concurrency=chance.choice([None, None, 1, 2]))
            running.append(
                asyncio.create_task(
                    hop.ask(
                        remaining_s=chance.uniform(0.1, 10.0),
                        callee=limited,
                        tenant=chance.choice("abc"),
                    )
                )
            )
            await clock.sleep(chance.uniform(0, 2 * gap_s))
            if chance.random() < 0.2:
                chance.choice(running).cancel()
            if chance.random() < 0.2:
                crowd.change(chance.choice(configurations))
        await asyncio.gather(*running, return_exceptions=True)

        assert broken == []
        assert await hop.leftovers() == {}

    run_in_fake_time(play())
