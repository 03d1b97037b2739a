"""Holds an agent at work to being heard, to a heartbeat, and to ending with its reader."""

import asyncio
import gc
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from services.domain.agent import Agent, Answer
from services.domain.events import Event, Restarted, TextDelta
from services.domain.execution import STOP_TIMEOUT_S, Silence, executing
from services.domain.run import Ports, Run
from services.runtime.call import CURRENT, Inbound
from services.runtime.errors import NotFoundError
from services.runtime.heartbeat import HeartbeatSettings
from tests.requirements import requirement
from tests.unit.runtime.fake_time import START, LoopClock, in_no_time

CLOCK = LoopClock()
HEARTBEAT = HeartbeatSettings()


def new_run(time_s: float = 30.0) -> Run:
    """Return a run that uses no tool and no model."""
    nobody: Any = None
    inbound = Inbound("domain", "RunAgent", True, START, START + time_s, margin_s=0.0)
    return Run(
        question="hello",
        language="en",
        sources=(),
        session_id="",
        inbound=inbound,
        ports=Ports(nobody, nobody, CLOCK, nobody),
    )


def new_agent(work: Callable[[Run], Awaitable[Answer]]) -> Agent:
    """Return an agent that does the work."""
    return Agent(name="chat", description="Talks.", examples=("a", "b"), run=work)


async def heard(
    work: Callable[[Run], Awaitable[Answer]], *, time_s: float = 30.0
) -> tuple[list[Event | Silence], Answer]:
    """Return what an agent says and returns."""
    async with executing(new_agent(work), new_run(time_s), HEARTBEAT) as execution:
        events = [event async for event in execution.events()]
        return events, execution.answer()


def test_everything_is_heard_also_what_was_said_last() -> None:
    async def work(run: Run) -> Answer:
        run.say("one")
        await CLOCK.sleep(0.5)
        run.restart("why not")
        run.say("last")
        return Answer(model="m")

    events, answer = in_no_time(heard(work))

    assert events == [TextDelta("one"), Restarted("why not"), TextDelta("last")]
    assert answer.model == "m"


def test_an_agent_that_says_nothing_is_over_at_once() -> None:
    async def work(run: Run) -> Answer:
        return Answer()

    async def scenario() -> float:
        await heard(work)
        return CLOCK.now() - START

    assert in_no_time(scenario()) == 0


@requirement("run:heartbeat")
def test_silence_becomes_a_heartbeat_that_tells_how_long_it_lasts() -> None:
    async def work(run: Run) -> Answer:
        await CLOCK.sleep(2.5 * HEARTBEAT.interval_s)
        run.say("now")
        await CLOCK.sleep(1.5 * HEARTBEAT.interval_s)
        return Answer()

    events, _ = in_no_time(heard(work))

    assert events == [
        Silence(HEARTBEAT.interval_s),
        Silence(2 * HEARTBEAT.interval_s),
        TextDelta("now"),
        Silence(HEARTBEAT.interval_s),
    ]


@requirement("run:heartbeat")
def test_near_the_deadline_heartbeats_come_faster_than_the_caller_gives_up() -> None:
    async def work(run: Run) -> Answer:
        await CLOCK.sleep(0.6)
        return Answer()

    events, _ = in_no_time(heard(work, time_s=1.0))

    first = events[0]
    assert isinstance(first, Silence)
    assert first.silence_s <= 0.25
    assert len(events) >= 3


def test_an_error_of_the_agent_comes_after_what_it_said() -> None:
    said: list[Event | Silence] = []

    async def work(run: Run) -> Answer:
        run.say("half")
        raise NotFoundError("table", "orders")

    async def scenario() -> None:
        async with executing(new_agent(work), new_run(), HEARTBEAT) as execution:
            said.extend([event async for event in execution.events()])
            execution.answer()

    with pytest.raises(NotFoundError):
        in_no_time(scenario())
    assert said == [TextDelta("half")]


@requirement("stream:cancelled-when-left")
def test_an_agent_ends_with_its_reader_and_may_clean_up() -> None:
    log: list[str] = []

    async def work(run: Run) -> Answer:
        run.say("one")
        try:
            await asyncio.Event().wait()
        finally:
            await CLOCK.sleep(0.5)
            log.append("clean")
        return Answer()

    async def scenario() -> None:
        async with executing(new_agent(work), new_run(), HEARTBEAT) as execution:
            async for _ in execution.events():
                break
            log.append("left")

    in_no_time(scenario())

    assert log == ["left", "clean"]


def test_an_agent_that_does_not_end_holds_its_reader_for_a_bounded_time() -> None:
    async def work(run: Run) -> Answer:
        run.say("one")
        for _ in range(3):
            try:
                await CLOCK.sleep(60)
            except asyncio.CancelledError:
                continue
        return Answer()

    async def scenario() -> float:
        async with executing(new_agent(work), new_run(), HEARTBEAT) as execution:
            async for _ in execution.events():
                break
        return CLOCK.now() - START

    assert in_no_time(scenario()) == pytest.approx(STOP_TIMEOUT_S)


def test_an_error_that_nobody_asks_for_any_more_is_no_noise() -> None:
    """The reader has left; asyncio would tell of an exception that nobody retrieved."""
    noise: list[dict[str, Any]] = []

    async def work(run: Run) -> Answer:
        run.say("one")
        try:
            await asyncio.Event().wait()
        finally:
            raise NotFoundError("table", "orders")
        return Answer()

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: noise.append(context))
        async with executing(new_agent(work), new_run(), HEARTBEAT) as execution:
            async for _ in execution.events():
                break
        gc.collect()

    in_no_time(scenario())
    gc.collect()

    assert noise == []


def test_an_agent_works_inside_of_the_call_that_it_serves() -> None:
    async def work(run: Run) -> Answer:
        return Answer(model=CURRENT.get().hop)

    async def scenario() -> Answer:
        CURRENT.set(Inbound("domain", "RunAgent", True, START, START + 1.0))
        return (await heard(work))[1]

    assert in_no_time(scenario()).model == "domain"
