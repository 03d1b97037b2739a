"""Holds admission to whom it lets wait for a place, for how long, and to losing no place."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.runtime.call import Criticality, Identity, Inbound, Mode
from services.runtime.clock import Clock
from services.runtime.errors import LoadShedError
from services.runtime.policies.admission import Admission, AdmissionConfig
from services.runtime.policies.limit import Fixed, Limit, LimitConfig
from tests.unit.runtime.fake_time import LoopClock, run_in_fake_time
from tests.unit.runtime.policies.samples import inbound

CONFIG = AdmissionConfig()
HIGH, LOW = Criticality.CRITICAL_PLUS, Criticality.SHEDDABLE


class Recording(Fixed):
    """Is a limit that remembers the latencies that it was told."""

    learns = True

    def __init__(self, value: int) -> None:
        super().__init__(value)
        self.told: list[float] = []

    def record(self, now: float, latency_s: float, inflight: int) -> None:
        self.told.append(round(latency_s, 6))


def served(
    clock: Clock, tenant: str = "hot", level: Criticality = HIGH, remaining_s: float = 30.0
) -> Inbound:
    """Return a call that arrives now."""
    call = inbound(remaining_s, arrived_at=clock.now())
    call.identity = Identity(tenant=tenant, criticality=level)
    return call


def gate(clock: Clock, limit: int | Limit = 4, config: AdmissionConfig = CONFIG) -> Admission:
    """Return a gate."""
    return Admission(config, Fixed(limit) if isinstance(limit, int) else limit, clock)


async def settle() -> None:
    """Let every task do what it can do now."""
    for _ in range(5):
        await asyncio.sleep(0)


async def refused_after_s(admission: Admission, call: Inbound, clock: Clock) -> float:
    """Return how long a call waited before it was refused."""
    began = clock.now()
    with pytest.raises(LoadShedError) as caught:
        await admission(call).__aenter__()
    assert caught.value.cause == "limit"
    assert caught.value.retry_after_s is not None
    return clock.now() - began


async def full(
    admission: Admission, clock: Clock, *, count: int = 4, level: Criticality = HIGH
) -> AsyncExitStack:
    """Let one tenant take all places; they come free when the stack is closed."""
    stack = AsyncExitStack()
    for _ in range(count):
        await stack.enter_async_context(admission(served(clock, level=level)))
    return stack


async def test_a_tenant_within_its_share_gets_the_next_place_of_one_that_has_more(
    clock: Clock,
) -> None:
    admission = gate(clock, Recording(4))
    flood = await full(admission, clock)
    call = served(clock, "cold")
    entry = admission(call)

    waiting = asyncio.create_task(entry.__aenter__())
    await clock.sleep(0.2)
    hot_after_s = await refused_after_s(admission, served(clock), clock)
    await flood.aclose()
    await waiting

    assert hot_after_s == 0.0
    assert call.wait_s == pytest.approx(0.2)
    assert admission.snapshot().peak_inflight == 4
    assert admission.snapshot().inflight == 1
    assert admission.snapshot().refused == {"limit/CRITICAL_PLUS": 1}
    assert admission.snapshot().waited_count == 1
    await entry.__aexit__(None, None, None)


async def test_a_tenant_waits_for_its_share_and_for_no_more(clock: Clock) -> None:
    admission = gate(clock)

    async with await full(admission, clock), asyncio.TaskGroup() as calls:
        waits = [
            calls.create_task(refused_after_s(admission, served(clock, "cold"), clock))
            for _ in range(3)
        ]

    assert [task.result() for task in waits] == pytest.approx([0.3, 0.3, 0.0])
    assert admission.snapshot().waiting == 0


async def test_no_more_calls_wait_than_the_limit_is_however_many_tenants_come(
    clock: Clock,
) -> None:
    admission = gate(clock)

    async with await full(admission, clock), asyncio.TaskGroup() as calls:
        waits = [
            calls.create_task(refused_after_s(admission, served(clock, f"new {number}"), clock))
            for number in range(10)
        ]

    assert [task.result() for task in waits] == pytest.approx([0.3] * 4 + [0.0] * 6)


@pytest.mark.parametrize(
    ("config", "remaining_s", "waits_s"),
    [
        (CONFIG, 30.0, 0.3),
        (replace(CONFIG, max_wait_s=0.1), 30.0, 0.1),
        (replace(CONFIG, max_wait_s=0.0), 30.0, 0.0),
        (CONFIG, 0.25, 0.2),
        (CONFIG, 0.05, 0.0),
        (replace(CONFIG, fair_share=Mode.OBSERVE), 30.0, 0.0),
    ],
    ids=["default", "shorter", "none", "own deadline", "no time left", "shares are watched only"],
)
async def test_nobody_waits_longer_than_it_may(
    clock: Clock, config: AdmissionConfig, remaining_s: float, waits_s: float
) -> None:
    admission = gate(clock, config=config)

    async with await full(admission, clock):
        call = served(clock, "cold", remaining_s=remaining_s)
        waited_s = await refused_after_s(admission, call, clock)

    assert waited_s == pytest.approx(waits_s)


async def test_one_tenant_alone_does_not_wait_for_itself(clock: Clock) -> None:
    admission = gate(clock)

    async with await full(admission, clock):
        assert await refused_after_s(admission, served(clock), clock) == 0.0


async def test_a_call_waits_for_the_place_of_a_lower_level_and_no_other_does(
    clock: Clock,
) -> None:
    levels = replace(CONFIG.levels, sheddable_ratio=0.75, sheddable_plus_ratio=0.75)
    admission = gate(clock, config=replace(CONFIG, levels=levels))
    first = admission(served(clock, level=LOW))
    await first.__aenter__()
    rest = await full(admission, clock, count=3)

    waiting = [asyncio.create_task(admission(served(clock)).__aenter__()) for _ in range(2)]
    low_after_s = await refused_after_s(admission, served(clock, level=LOW), clock)
    await settle()
    waited = [not task.done() for task in waiting]
    with pytest.raises(LoadShedError):
        await waiting[1]
    await first.__aexit__(None, None, None)
    await waiting[0]

    assert low_after_s == 0.0
    # One place is held by somebody lower: one may wait for it, and the second has no reason.
    assert waited == [True, False]
    await rest.aclose()


async def test_the_higher_level_gets_the_place_though_it_came_later(clock: Clock) -> None:
    admission = gate(clock, 10, replace(CONFIG, levels=replace(CONFIG.levels, critical_ratio=1.0)))
    flood = AsyncExitStack()
    for level in (*[LOW] * 5, *[Criticality.CRITICAL] * 5):
        await flood.enter_async_context(admission(served(clock, "hot", level)))
    log: list[str] = []

    async def enter(name: str, level: Criticality) -> None:
        await admission(served(clock, name, level)).__aenter__()
        log.append(name)

    async with asyncio.TaskGroup() as calls:
        calls.create_task(enter("earlier", Criticality.CRITICAL))
        await settle()
        calls.create_task(enter("later", HIGH))
        await settle()
        await flood.aclose()

    assert log == ["later", "earlier"]


async def test_a_limit_that_only_observes_has_nobody_wait(clock: Clock) -> None:
    admission = gate(clock, config=replace(CONFIG, limit=Mode.OBSERVE))

    async with await full(admission, clock), admission(served(clock, "cold")):
        assert admission.snapshot().inflight == 5

    assert admission.snapshot().would_refuse == {"limit/CRITICAL_PLUS": 1}


async def test_the_limit_learns_nothing_from_the_wait_for_a_place(clock: Clock) -> None:
    limit = Recording(4)
    admission = gate(clock, limit)
    flood = await full(admission, clock)
    entry = admission(served(clock, "cold"))

    waiting = asyncio.create_task(entry.__aenter__())
    await clock.sleep(0.2)
    await flood.aclose()
    await waiting
    await clock.sleep(0.5)
    await entry.__aexit__(None, None, None)

    assert limit.told == [0.2] * 4 + [0.5]


async def test_a_higher_limit_lets_those_in_who_wait(clock: Clock) -> None:
    admission = gate(clock)

    async with await full(admission, clock):
        waiting = asyncio.create_task(admission(served(clock, "cold")).__aenter__())
        await settle()
        admission.reconfigure_limit(LimitConfig(max_inflight=5))
        await asyncio.wait_for(waiting, 0.01)

    assert admission.snapshot().peak_inflight == 5


async def test_new_places_go_to_the_highest_level_that_waits(clock: Clock) -> None:
    even = replace(CONFIG.levels, sheddable_ratio=1.0, sheddable_plus_ratio=1.0, critical_ratio=1.0)
    admission = gate(clock, 10, replace(CONFIG, levels=even))

    async with await full(admission, clock, count=10, level=LOW):
        low, *high = (
            asyncio.create_task(admission(served(clock, "cold", level)).__aenter__())
            for level in (LOW, HIGH, HIGH, HIGH)
        )
        await settle()
        admission.reconfigure_limit(LimitConfig(max_inflight=13))
        await asyncio.wait([low, *high])

    assert [task.exception() for task in high] == [None] * 3
    assert isinstance(low.exception(), LoadShedError)


async def test_a_cancelled_waiter_leaves_nothing_behind(clock: Clock) -> None:
    admission = gate(clock)

    async with await full(admission, clock):
        waiting = asyncio.create_task(admission(served(clock, "cold")).__aenter__())
        await settle()
        waiting.cancel()
        await asyncio.wait([waiting])

    assert (admission.snapshot().inflight, admission.snapshot().waiting) == (0, 0)


async def test_a_waiter_cancelled_in_the_turn_it_is_let_in_gives_its_place_on(
    clock: Clock,
) -> None:
    admission = gate(clock)
    flood = await full(admission, clock, count=3)
    last = admission(served(clock))
    await last.__aenter__()
    unlucky, lucky = (
        asyncio.create_task(admission(served(clock, tenant)).__aenter__()) for tenant in "ab"
    )
    await settle()

    await last.__aexit__(None, None, None)
    unlucky.cancel()
    await asyncio.wait([unlucky, lucky])

    assert unlucky.cancelled()
    assert lucky.exception() is None
    assert admission.snapshot().inflight == 4
    await flood.aclose()


Action = tuple[str, int]
ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["arrive", "arrive", "arrive", "end", "cancel", "both", "pass", "turn"]),
        st.integers(0, 11),
    ),
    max_size=60,
)


@dataclass(slots=True)
class Play:
    """Holds the calls of one play of a script."""

    admission: Admission
    clock: LoopClock
    running: list[tuple["asyncio.Task[None]", asyncio.Event]] = field(default_factory=list)
    served_at_once: int = 0
    peak: int = 0

    async def do(self, action: str, number: int) -> None:
        """Do one step of the script."""
        if action == "arrive":
            ended = asyncio.Event()
            self.running.append((asyncio.create_task(self._call(number, ended)), ended))
        elif action == "pass":
            await self.clock.sleep(0.05 * number)
        elif action == "turn":
            await asyncio.sleep(0)
        elif self.running:
            task, ended = self.running[number % len(self.running)]
            if action in {"end", "both"}:
                ended.set()
            if action in {"cancel", "both"}:
                task.cancel()

    async def _call(self, number: int, ended: asyncio.Event) -> None:
        call = served(self.clock, "abc"[number % 3], Criticality(1 + number // 3))
        try:
            async with self.admission(call):
                self.served_at_once += 1
                self.peak = max(self.peak, self.served_at_once)
                try:
                    await ended.wait()
                finally:
                    self.served_at_once -= 1
        except LoadShedError:
            return


async def play(script: Sequence[Action]) -> None:
    """Play a script, and end what it has begun."""
    clock = LoopClock()
    stage = Play(Admission(CONFIG, Fixed(3), clock), clock)
    for action, number in script:
        await stage.do(action, number)
        seen = stage.admission.snapshot()
        assert 0 <= seen.inflight <= 3
        assert 0 <= seen.waiting <= 3 + 3
    for _, ended in stage.running:
        ended.set()
    await asyncio.gather(*(task for task, _ in stage.running), return_exceptions=True)
    seen = stage.admission.snapshot()
    assert (seen.inflight, seen.waiting) == (0, 0)
    assert seen.peak_inflight <= 3
    assert stage.peak <= 3


@given(ACTIONS)
@settings(deadline=None, max_examples=60)
def test_whatever_happens_places_stay_within_the_limit_and_all_come_back(
    script: Sequence[Action],
) -> None:
    run_in_fake_time(play(script))
