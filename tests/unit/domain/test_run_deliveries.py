"""Holds a run's text to reaching its reader as the reader asked for, whichever model wrote it."""

from collections.abc import Sequence

import pytest

from services.domain.agent import Agent, Answer
from services.domain.delivery import Delivery
from services.domain.events import Degraded, Event, Restarted, TextDelta
from services.domain.execution import Silence, executing
from services.domain.run import Advice, Ports, Run
from services.runtime.conversation import ToolCall
from services.runtime.errors import DependencyFailedError, SixhopError
from services.runtime.generation import Usage
from services.runtime.heartbeat import HeartbeatSettings
from tests.requirements import requirement
from tests.unit.domain.database import Database
from tests.unit.domain.running import Tools
from tests.unit.runtime.test_failover import PREFILLING
from tests.unit.runtime.two_models import QUESTION, Pair, Piece, failed, having, pair

GREETING = "Dear reader: "
CUT_OFF = ("half an ", failed("CONNECTION_LOST", hop="llm"))


async def talk(run: Run) -> Answer:
    """Greet, then say what a model says."""
    run.say(GREETING)
    async with run.generate(QUESTION) as generation:
        async for text in generation:
            run.say(text)
        result = generation.result
    return Answer(model=result.model, usage=result.usage)


TALKER = Agent(name="talker", description="Talks.", examples=("a", "b"), run=talk)


async def told(
    both: Pair,
    database: Database,
    delivery: Delivery,
    *,
    agent: Agent = TALKER,
    language: str = "en",
    advice: Advice | None = None,
) -> tuple[list[Event], Answer | SixhopError]:
    """Return what a reader is told, and how the run ends."""
    tools = Tools(database, "none")
    events: list[Event] = []
    with having(both.clock, 20.0) as inbound:
        run = Run(
            question="Why?",
            language=language,
            sources=(),
            session_id="",
            inbound=inbound,
            ports=Ports(tools, both.failover, both.clock, tools),
            delivery=delivery,
            advice=advice or Advice(),
        )
        try:
            async with executing(agent, run, HeartbeatSettings()) as execution:
                async for event in execution.events():
                    events += [event] if not isinstance(event, Silence) else []
                return events, execution.answer()
        except SixhopError as error:
            return events, error


def kinds(events: Sequence[Event]) -> list[str]:
    """Return what a reader is told, in short: texts as they are."""
    return [
        event.text if isinstance(event, TextDelta) else type(event).__name__ for event in events
    ]


@requirement("failover:restarted")
async def test_restartable_text_begins_anew_and_keeps_what_was_said_before(
    database: Database,
) -> None:
    events, answer = await told(pair(CUT_OFF), database, Delivery.RESTARTABLE)

    said = kinds(events)
    assert said == [
        GREETING + "half an ",
        "Restarted",
        GREETING,
        "Degraded",
        "a small answer",
    ]
    assert isinstance(answer, Answer)
    assert (answer.model, answer.usage) == ("small", Usage(10, 14))


@requirement("failover:buffered")
@pytest.mark.parametrize("first", [CUT_OFF, (failed(),)])
async def test_buffered_text_comes_whole_and_at_the_end(
    database: Database, first: Sequence[Piece]
) -> None:
    events, answer = await told(pair(first), database, Delivery.BUFFERED)

    assert kinds(events) == ["Degraded", GREETING + "a small answer"]
    assert isinstance(answer, Answer)


@requirement("failover:buffered")
async def test_of_a_buffered_run_that_fails_nothing_is_told(database: Database) -> None:
    both = pair(CUT_OFF, ["a sm", failed("CONNECTION_LOST")])

    events, error = await told(both, database, Delivery.BUFFERED)

    assert kinds(events) == ["Degraded"]
    assert isinstance(error, DependencyFailedError)
    assert error.origin is not None
    assert error.origin.hop == "llm"


@requirement("failover:live")
async def test_live_text_goes_on_where_the_second_model_can(database: Database) -> None:
    both = pair(CUT_OFF, ["answer"])
    both.backup.card = PREFILLING

    events, answer = await told(both, database, Delivery.LIVE)

    assert kinds(events) == [GREETING + "half an ", "Degraded", "answer"]
    assert isinstance(answer, Answer)
    (degraded,) = [event for event in events if isinstance(event, Degraded)]
    assert degraded.reason.endswith("it goes on from what was there")


@requirement("failover:live")
async def test_live_text_that_is_cut_ends_in_an_error_that_says_so(database: Database) -> None:
    events, error = await told(pair(CUT_OFF), database, Delivery.LIVE)

    assert kinds(events) == [GREETING + "half an "]
    assert isinstance(error, DependencyFailedError)
    assert error.cause == "cut"


@requirement("failover:before-content")
@pytest.mark.parametrize("delivery", [Delivery.RESTARTABLE, Delivery.LIVE])
async def test_a_model_that_says_nothing_is_replaced_unseen(
    database: Database, delivery: Delivery
) -> None:
    events, _ = await told(pair([failed()]), database, delivery)

    assert kinds(events) == [GREETING, "Degraded", "a small answer"]
    (degraded,) = [event for event in events if isinstance(event, Degraded)]
    assert (degraded.mechanism, degraded.part) == ("backup", "answer")
    assert degraded.error_reason == "DEPENDENCY_FAILED"
    assert degraded.reason == "small answers: it failed: NO_ANSWER"


async def test_the_reason_is_told_in_the_language_of_the_run(database: Database) -> None:
    events, _ = await told(pair([failed()]), database, Delivery.LIVE, language="zh")

    (degraded,) = [event for event in events if isinstance(event, Degraded)]
    problem = "首选模型没有及时作答（原文：it failed: NO_ANSWER）"
    assert degraded.reason == f"由small代为回答：{problem}"


@requirement("failover:advice")
async def test_what_routing_advises_is_followed(database: Database) -> None:
    both = pair(["a big answer"])

    events, _ = await told(
        both, database, Delivery.RESTARTABLE, advice=Advice(backup=True, compressed=True)
    )

    assert kinds(events) == [GREETING, "Degraded", "a small answer"]
    assert both.first.asked == []


async def test_an_agent_that_takes_back_live_text_ends_the_run(database: Database) -> None:
    async def regret(run: Run) -> Answer:
        run.say("four")
        run.restart("it is five")
        run.say("five")
        return Answer()

    agent = Agent(name="regret", description="Regrets.", examples=("a", "b"), run=regret)
    live, error = await told(pair([]), database, Delivery.LIVE, agent=agent)
    buffered, _ = await told(pair([]), database, Delivery.BUFFERED, agent=agent)
    restarted, _ = await told(pair([]), database, Delivery.RESTARTABLE, agent=agent)

    assert kinds(live) == ["four"]
    assert isinstance(error, DependencyFailedError)
    assert error.cause == "cut"
    assert kinds(buffered) == ["five"]
    assert kinds(restarted) == ["four", "Restarted", "five"]
    assert Restarted("it is five") in restarted


async def test_text_that_an_agent_holds_may_begin_anew_however_it_is_read(
    database: Database,
) -> None:
    async def hold(run: Run) -> Answer:
        run.say(GREETING)
        async with run.generate(QUESTION, held=True) as generation:
            async for _ in generation:
                pass
            run.say(generation.result.text)
        return Answer()

    agent = Agent(name="holder", description="Holds.", examples=("a", "b"), run=hold)
    events, _ = await told(pair(CUT_OFF), database, Delivery.LIVE, agent=agent)

    assert kinds(events) == [GREETING, "Degraded", "a small answer"]


CALL = ToolCall("a", "look_up", "{}")


async def ask_twice(run: Run) -> Answer:
    """Say something and ask for a tool, and begin anew."""
    run.say("wrong")
    run.ask_for([CALL])
    run.restart("it was wrong")
    run.say("right")
    run.ask_for([CALL, CALL])
    run.degraded(mechanism="partial", part="answer", reason="for the order")
    return Answer()


@requirement("conversing:deliveries")
@pytest.mark.parametrize(
    ("delivery", "expected"),
    [
        (
            Delivery.RESTARTABLE,
            ["wrong", "ToolCall", "Restarted", "right", "ToolCall", "ToolCall", "Degraded"],
        ),
        (Delivery.BUFFERED, ["Degraded", "right", "ToolCall", "ToolCall"]),
    ],
)
async def test_tool_calls_are_void_with_the_text_and_buffered_with_it(
    database: Database, delivery: Delivery, expected: list[str]
) -> None:
    agent = Agent(name="asker", description="Asks.", examples=("a", "b"), run=ask_twice)

    events, answer = await told(pair(()), database, delivery, agent=agent)

    assert kinds(events) == expected
    assert isinstance(answer, Answer)


@requirement("conversing:deliveries")
async def test_a_tool_call_that_was_given_for_good_is_not_taken_back(database: Database) -> None:
    async def ask(run: Run) -> Answer:
        run.ask_for([CALL])
        run.restart("it was wrong")
        return Answer()

    agent = Agent(name="asker", description="Asks.", examples=("a", "b"), run=ask)
    events, error = await told(pair(()), database, Delivery.LIVE, agent=agent)

    assert kinds(events) == ["ToolCall"]
    assert isinstance(error, DependencyFailedError)
    assert error.cause == "cut"
