"""Tests, over real hops, that a run keeps its reserve and gives what its tools declare."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import grpc
import pytest

from services.domain.agent import Answer
from services.domain.directory import DeclaredTool
from services.domain.run import Run
from services.runtime.call import Callee, Fallback
from services.runtime.client import open_channel
from services.runtime.conversation import Message
from services.runtime.errors import SelfUnavailableError, SixhopError
from services.runtime.status import DETAILS_KEY, error_info
from sixhop.gateway.v1 import gateway_pb2
from sixhop.gateway.v1.gateway_pb2_grpc import GatewayServiceStub
from sixhop.model.v1 import model_pb2
from sixhop.type.v1.run_pb2 import Question
from tests.integration.runtime.suite import Suite, running, text
from tests.requirements import requirement
from tests.waiting import until

ON = {"ENGINE__ENABLED": "true", "RETRY__MAX_ATTEMPTS": "1"}
OFF = {"ENGINE__ENABLED": "false"}


async def asked(suite: Suite, deadline_s: float = 10.0) -> gateway_pb2.AskResponse:
    """Ask the suite's gateway."""
    request = gateway_pb2.AskRequest(question=Question(text="hello"))
    async with open_channel(suite.config.address("gateway")) as channel:
        return await GatewayServiceStub(channel).Ask(request, timeout=deadline_s)


def lesser(answer: gateway_pb2.AskResponse) -> list[tuple[str, str, str]]:
    """Return what an answer says of its lesser parts."""
    return [(each.mechanism, each.part, each.error_reason) for each in answer.degradations]


def reasons(error: grpc.aio.AioRpcError) -> tuple[str, str, str]:
    """Return why a run failed: the gateway's reason, and where it began and why."""
    details = error.trailing_metadata().get(DETAILS_KEY)
    info = error_info(details if isinstance(details, bytes) else None)
    assert info is not None
    return info.reason, info.metadata["originHop"], info.metadata["originReason"]


def declaring(*fallbacks: Fallback) -> Callable[[str], DeclaredTool]:
    """Return what every tool declares."""
    default = {"text": "the default"} if Fallback.DEFAULT in fallbacks else None
    return lambda name: DeclaredTool(
        callee=Callee(key=f"tool/{name}", idempotent=True),
        fallbacks=fallbacks,
        cache_age_s=60.0,
        default=default,
    )


async def broken() -> str:
    """Fail as a tool does whose engine is gone."""
    raise SelfUnavailableError("the engine is gone")


@requirement("plan:reserve-is-kept")
@pytest.mark.parametrize("settings", [ON, OFF], ids=["engine on", "engine off"])
async def test_an_optional_step_that_hangs_leaves_the_mandatory_ones_their_time(
    settings: dict[str, str],
) -> None:
    left_s: list[float] = []
    executions: list[Callable[[], Awaitable[str]]] = []

    async def hang() -> str:
        await asyncio.Event().wait()
        return "never"

    async def answer() -> str:
        return "the numbers"

    async def agent(run: Run) -> Answer:
        chart = await run.optional("chart", {}, title="draws", expected_s=0.1, reserve_s=5.0)
        left_s.append(run.time_remaining_s())
        numbers = await run.tool("sql", {}, title="asks")
        run.say(f"{chart}: {numbers.data['text']}")
        return Answer()

    async def next_execution() -> str:
        return await executions.pop(0)()

    async with running(None, **settings) as suite:
        suite.agent, suite.declared = agent, declaring(Fallback.SKIP)
        suite.tool.execution, executions[:] = next_execution, [hang, answer]
        said = await asked(suite)
        await until(suite.idle)

    # Of the ten seconds seven are the agent's; a call alone may wait for more than half of them.
    assert left_s[0] > 4.0
    assert said.text == "None: the numbers"
    assert list(said.missing_parts) == ["chart"]
    assert lesser(said) == [("skip", "chart", "BUDGET_TOO_SMALL")]


@requirement("plan:reserve-is-kept")
async def test_a_generation_that_never_ends_leaves_time_to_say_something_else() -> None:
    left_s: list[float] = []

    async def endless() -> AsyncIterator[model_pb2.GenerateResponse]:
        while True:
            yield text("word ")
            await asyncio.sleep(0.02)

    async def agent(run: Run) -> Answer:
        try:
            async with run.generate([Message("user", "write")], reserve_s=3.0) as generation:
                async for words in generation:
                    run.say(words)
        except SixhopError as error:
            left_s.append(run.time_remaining_s())
            run.restart(error.message)
            run.degraded(mechanism="extract", part="answer", reason=error.message)
            run.say("the passage")
        return Answer()

    async with running() as suite:
        suite.agent, suite.model.generation = agent, endless
        said = await asked(suite, 6.0)
        await until(suite.idle)

    # Of the six seconds four are the agent's.
    assert left_s[0] > 2.0
    assert said.text == "the passage"
    assert [each.mechanism for each in said.degradations] == ["extract"]


@requirement("fallback:default", "fallback:without-the-engine")
async def test_a_default_is_given_by_the_engine_and_by_nobody_without_it() -> None:
    async def agent(run: Run) -> Answer:
        run.say(str((await run.tool("rate", {}, title="asks")).data["text"]))
        return Answer()

    async with running(None, **ON) as suite:
        suite.agent, suite.declared = agent, declaring(Fallback.DEFAULT)
        suite.tool.execution = broken
        given = await asked(suite)
    async with running(None, **OFF) as suite:
        suite.agent, suite.declared = agent, declaring(Fallback.DEFAULT)
        suite.tool.execution = broken
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await asked(suite)

    assert given.text == "the default"
    assert lesser(given) == [("default", "rate", "DEPENDENCY_FAILED")]
    assert reasons(caught.value) == ("DEPENDENCY_FAILED", "tool", "SELF_UNAVAILABLE")


@requirement("fallback:left-out", "fallback:without-the-engine")
@pytest.mark.parametrize("settings", [ON, OFF], ids=["engine on", "engine off"])
async def test_an_optional_step_is_left_out_with_the_engine_and_without_it(
    settings: dict[str, str],
) -> None:
    async def agent(run: Run) -> Answer:
        chart = await run.optional("chart", {}, title="draws", expected_s=0.1, reserve_s=0.1)
        run.say(f"chart: {chart}")
        return Answer()

    async with running(None, **settings) as suite:
        suite.agent, suite.declared = agent, declaring(Fallback.CACHE, Fallback.SKIP)
        suite.tool.execution = broken
        said = await asked(suite)

    assert said.text == "chart: None"
    assert list(said.missing_parts) == ["chart"]
    assert lesser(said) == [("skip", "chart", "DEPENDENCY_FAILED")]


@requirement("fallback:earlier-answer", "fallback:bounded")
async def test_earlier_answers_take_no_more_room_than_they_may() -> None:
    async def agent(run: Run) -> Answer:
        for number in range(8):
            await run.tool("sql", {"number": number}, title="asks")
        return Answer()

    async with running(None, FALLBACK__MAX_CACHED_COUNT="3", **ON) as suite:
        suite.agent, suite.declared = agent, declaring(Fallback.CACHE)
        await asked(suite)
        policies = suite.hops["domain"].policies
        assert policies is not None
        kept = len(policies.fallback.answers)

    assert kept == 3


@requirement("loop:ends-the-run")
async def test_an_agent_that_goes_round_in_circles_ends_its_run_at_the_second_round() -> None:
    executions: list[str] = []

    async def answer() -> str:
        executions.append("done")
        return "the numbers"

    async def agent(run: Run) -> Answer:
        while True:
            await run.tool("sql", {"query": "select 1"}, title="asks")

    async with running() as suite:
        suite.agent, suite.tool.execution = agent, answer
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await asked(suite)
        await until(suite.idle)

    assert reasons(caught.value) == ("DEPENDENCY_FAILED", "domain", "LOOP_DETECTED")
    assert caught.value.code() is grpc.StatusCode.ABORTED
    assert executions == ["done"]


@requirement("loop:ends-the-run")
async def test_a_second_attempt_of_the_runtime_is_no_second_action() -> None:
    attempts: list[str] = []

    async def frail() -> str:
        attempts.append("tried")
        if len(attempts) == 1:
            raise SelfUnavailableError("the engine is gone")
        return "the numbers"

    async def agent(run: Run) -> Answer:
        run.say(str((await run.tool("sql", {}, title="asks")).data["text"]))
        return Answer()

    # Nothing is repeated that may take as long as its step, unless that fits.
    async with running(None, ENGINE__ENABLED="true", CALLS__TOOL__STEP_TIMEOUT_S="2") as suite:
        suite.agent, suite.tool.execution = agent, frail
        said = await asked(suite)

    assert (said.text, len(attempts)) == ("the numbers", 2)
