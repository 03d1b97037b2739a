"""Holds the watch over a process to telling one that stood still from one whose loop lags."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest

from services.runtime.background import background
from services.runtime.call import Inbound
from services.runtime.clock import ManualClock
from services.runtime.config import load_config
from services.runtime.errors import SelfUnavailableError
from services.runtime.fitness import INTERVAL_S, Standstill, watch_fitness
from services.runtime.health import Health
from services.runtime.loop_alarm import Holder
from services.runtime.policies.self_ejection import Held, LagConfig, LagReadiness
from services.runtime.policies.shed import ShedChange
from services.runtime.stack import server_policies
from tests.logged import logged
from tests.unit.runtime.policies.samples import inbound

LAGS = "its event loop lags"
HOLDER = Holder(method="ExecuteTool", note="slow", run_id="run-1", where="slow.py:9 in run")


class Told:
    """Takes what the health service would be told."""

    def __init__(self) -> None:
        """Start with nothing."""
        self.unfit: list[str] = []

    async def set_fit(self, unfit: str) -> None:
        """Note it."""
        self.unfit.append(unfit)


class Alarm:
    """Has looked as long, and seen whom, as the test says."""

    def __init__(self) -> None:
        """Start with nothing."""
        self.length_s = 0.0
        self.seen: Holder | None = None
        self.armed: list[float] = []

    def looked_s(self) -> float:
        """Return for how long it has looked."""
        return self.length_s

    def arm(self, length_s: float) -> None:
        """Note it."""
        self.armed.append(length_s)

    def disarm(self) -> None:
        """Do nothing."""

    def holder(self) -> Holder | None:
        """Return whom it has seen."""
        return self.seen


class Watched:
    """Is a process whose timers come as late, and that is as busy, as the test says."""

    def __init__(self) -> None:
        """Start on time and idle."""
        self.clock = ManualClock()
        self.told = Told()
        self.busy_s = 0.0
        self.lag = LagReadiness(LagConfig())
        self.alarm = Alarm()
        self.shed_changes: list[ShedChange] = []
        self.policies = server_policies(
            load_config(Path("/dev/null"), {}),
            self.clock,
            lambda serving, why: None,
            self.shed_changes.append,
        )

    async def sample(
        self, late_s: float, busy_s: float, length_s: float = 0.0, holder: Holder | None = None
    ) -> None:
        """Let one timer come, so much late, after so much work; for so long somebody was seen."""
        self.busy_s += busy_s
        self.alarm.length_s, self.alarm.seen = length_s, holder
        self.clock.advance(INTERVAL_S + late_s)
        for _ in range(3):
            await asyncio.sleep(0)


def streamed() -> Inbound:
    """Return a stream that is served."""
    call = inbound(10.0)
    call.streaming = True
    return call


@asynccontextmanager
async def watched() -> AsyncIterator[Watched]:
    """Watch a process while the block runs."""
    process = Watched()
    work = watch_fitness(
        cast(Health, process.told),
        process.policies,
        process.lag,
        process.clock,
        process.alarm,
        lambda: process.busy_s,
    )
    async with background(work):
        await asyncio.sleep(0)
        yield process


@pytest.mark.parametrize(
    ("samples", "stood"),
    [
        ([(2.0, 0.01)], [True]),
        ([(2.0, 0.01), (0.0, 0.01), (2.0, 0.01)], [True, False, True]),
        # What blocks the loop again and again, or throttles the process, makes it unfit.
        ([(0.4, 0.0), (0.4, 0.0), (0.4, 0.0)], [True, False, False]),
        # It computed, or others did and it had to wait for a CPU.
        ([(2.0, 2.3)], [False]),
        ([(0.3, 0.2)], [False]),
        # Too short to matter.
        ([(0.2, 0.0)], [False]),
    ],
)
def test_a_pause_without_work_is_a_standstill_unless_it_comes_again_at_once(
    samples: Sequence[tuple[float, float]], stood: list[bool]
) -> None:
    standstill = Standstill(0.25)

    assert [standstill.sample(*sample) for sample in samples] == stood


async def test_a_process_that_stood_still_is_fit_and_says_how_long_it_stood() -> None:
    with logged() as log:
        async with watched() as process:
            for late_s, busy_s in [(0.3, 0.4), (0.3, 0.4), (4.0, 0.1), (0.0, 0.1)] * 3:
                await process.sample(late_s, busy_s)

    assert process.told.unfit == []
    lines = [line for line in log.lines() if line["event"] == "hop_thawed"]
    assert [line["stood_s"] for line in lines] == [4.0] * 3


@pytest.mark.parametrize("busy_s", [0.8, 0.0])
async def test_a_process_whose_loop_lags_is_unfit_until_it_is_calm(busy_s: float) -> None:
    async with watched() as process:
        for _ in range(4):
            await process.sample(0.4, busy_s)
        before = list(process.told.unfit)
        for _ in range(5):
            await process.sample(0.0, 0.1)

    assert before == [LAGS]
    assert process.told.unfit == [LAGS, ""]


async def test_a_process_that_has_taken_itself_out_of_service_is_unfit_until_it_is_back() -> None:
    async with watched() as process:
        began_at = process.clock.now()
        for _ in range(3):
            process.policies.ejection.after(streamed(), SelfUnavailableError("the engine is gone"))
        for _ in range(60):
            await process.sample(0.0, 0.1)
            if len(process.told.unfit) == 1:
                away_s = process.clock.now() - began_at

    assert process.told.unfit == ["failed by its own fault several times in a row", ""]
    assert away_s == pytest.approx(29.5)


@pytest.mark.parametrize(
    ("busy_s", "looked_s"), [(3.2, 0.0), (0.0, 2.6)], ids=["computes", "sleeps"]
)
async def test_what_holds_the_loop_up_is_told_with_the_call_that_was_at_work(
    busy_s: float, looked_s: float
) -> None:
    with logged() as log:
        async with watched() as process:
            await process.sample(0.0, 0.1)
            await process.sample(3.0, busy_s, looked_s, HOLDER)
            await process.sample(0.0, 0.1)

    (line,) = [line for line in log.lines() if line["event"] in ("loop_held", "hop_thawed")]
    told = {key: line[key] for key in ("event", "held_s", "method", "note", "run_id", "where")}
    assert told == {
        "event": "loop_held",
        "held_s": 3.0,
        "method": "ExecuteTool",
        "note": "slow",
        "run_id": "run-1",
        "where": "slow.py:9 in run",
    }
    assert process.alarm.armed[0] == pytest.approx(INTERVAL_S + 0.25)
    assert process.lag.held_count == 1
    assert process.lag.last_held == Held(
        3.0, process.clock.now() - INTERVAL_S, "ExecuteTool slow at slow.py:9 in run"
    )


async def test_a_loop_that_was_held_up_by_nobody_knows_whom_is_told_without() -> None:
    with logged() as log:
        async with watched() as process:
            await process.sample(0.6, 0.6)

    (line,) = [line for line in log.lines() if line["event"] == "loop_held"]
    assert (line["held_s"], "method" in line) == (0.6, False)
    assert process.lag.last_held is not None
    assert process.lag.last_held.by == ""


async def test_a_process_that_was_stopped_in_a_call_blames_no_call() -> None:
    with logged() as log:
        async with watched() as process:
            await process.sample(4.0, 0.1, 0.3, HOLDER)

    assert [line["event"] for line in log.lines()] == ["hop_thawed"]
    assert process.lag.held_count == 0


async def test_the_end_of_an_order_is_told_when_it_comes() -> None:
    async with watched() as process:
        process.policies.shed.order("short", 0.4)
        await process.sample(0.0, 0.0)

    assert [change.reason for change in process.shed_changes] == ["short", "over"]


async def test_the_last_and_the_worst_lag_can_be_asked() -> None:
    async with watched() as process:
        await process.sample(0.2, 0.2)
        await process.sample(0.1, 0.1)

    assert process.lag.last_s == pytest.approx(0.1)
    assert process.lag.worst_s == pytest.approx(0.2)
