"""Holds what a client hears when a hop is slow, silent, wrong or gone: typed, in time, by name."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2

from services.domain.agent import Answer
from services.domain.run import Run
from services.runtime.client import open_channel
from services.runtime.errors import SelfUnavailableError
from services.runtime.status import DETAILS_KEY, error_info
from sixhop.gateway.v1 import gateway_pb2
from sixhop.gateway.v1.gateway_pb2_grpc import GatewayServiceStub
from sixhop.model.v1 import model_pb2
from sixhop.model.v1.model_pb2_grpc import ModelServiceStub
from sixhop.tool.v1 import tool_pb2
from sixhop.tool.v1.tool_pb2_grpc import ToolServiceStub
from sixhop.type.v1.run_pb2 import Question
from tests.integration.runtime.suite import (
    CLOCK,
    Suite,
    finished,
    heartbeat,
    run_model,
    running,
    text,
)
from tests.requirements import requirement

EXECUTE = tool_pb2.ExecuteToolRequest()
GENERATE = model_pb2.GenerateRequest()
Events = AsyncIterator[model_pb2.GenerateResponse]


async def silence() -> Events:
    """Never write anything."""
    await asyncio.Event().wait()
    yield finished()


async def one_word_then_silence() -> Events:
    """Begin well."""
    yield text("one")
    await asyncio.Event().wait()


async def heartbeats_only() -> Events:
    """Be alive and say nothing."""
    while True:
        yield heartbeat()
        await CLOCK.sleep(0.05)


async def cut_short() -> Events:
    """End without saying so."""
    yield text("half an ans")


async def broken() -> Events:
    """Have a defect."""
    yield text("one")
    raise KeyError("password=hunter2")


async def gone() -> Events:
    """Have lost the engine."""
    raise SelfUnavailableError("the engine is gone", cause="engine")
    yield finished()


async def failure(
    suite: Suite, deadline_s: float
) -> tuple[grpc.aio.AioRpcError, error_details_pb2.ErrorInfo]:
    """Return the error that the client of a run has, and what it tells."""
    request = gateway_pb2.RunRequest(question=Question(text="hello"))
    async with open_channel(suite.config.address("gateway")) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            async for _ in GatewayServiceStub(channel).Run(request, timeout=deadline_s):
                pass
    return caught.value, told(caught.value)


def told(error: grpc.aio.AioRpcError) -> error_details_pb2.ErrorInfo:
    """Return the ErrorInfo of an error."""
    metadata = error.trailing_metadata()
    details = metadata.get(DETAILS_KEY) if metadata else None
    assert isinstance(details, bytes), f"no typed error: {error}"
    info = error_info(details)
    assert info is not None
    return info


async def drained(events: AsyncIterable[Any]) -> None:
    """Read a stream to its end."""
    async for _ in events:
        pass


@requirement("errors:fault-attribution", "deadline:self-deadline", "deadline:stream-limits")
@pytest.mark.parametrize(
    ("generation", "settings", "cause", "origin"),
    [
        (silence, {"CALLS__MODEL__STEP_TIMEOUT_S": "0.3"}, "step_timeout", "NO_ANSWER"),
        (silence, {}, "deadline_share", "NO_ANSWER"),
        (
            heartbeats_only,
            {"CALLS__MODEL__FIRST_CONTENT_TIMEOUT_S": "0.3"},
            "first_content_timeout",
            "NO_ANSWER",
        ),
        (
            one_word_then_silence,
            {"CALLS__MODEL__READ_TIMEOUT_S": "0.3"},
            "read_timeout",
            "NO_ANSWER",
        ),
        (cut_short, {}, "truncated", "TRUNCATED"),
        (broken, {}, "defect", "SELF_BUG"),
        (gone, {}, "engine", "SELF_UNAVAILABLE"),
    ],
)
async def test_a_failing_model_is_named_by_every_hop_before_the_deadline(
    generation: Callable[[], Events], settings: dict[str, str], cause: str, origin: str
) -> None:
    async with running({}, **settings) as suite:
        suite.agent = run_model
        suite.model.generation = generation

        error, info = await failure(suite, 4.0)

    assert error.code() is grpc.StatusCode.ABORTED
    assert (info.reason, info.domain) == ("DEPENDENCY_FAILED", "gateway.sixhop")
    assert (info.metadata["originHop"], info.metadata["originReason"]) == ("model", origin)
    assert info.metadata["cause"] == cause
    assert 0 < int(info.metadata["remainingMs"]) < 4000
    assert "hunter2" not in str(error)


@requirement("errors:fault-attribution", "deadline:self-deadline")
async def test_a_tool_that_is_too_slow_blames_itself_and_everybody_else_the_tool() -> None:
    async with running() as suite:

        async def slow() -> str:
            await CLOCK.sleep(60)
            return "late"

        suite.tool.execution = slow

        error, info = await failure(suite, 3.0)

    assert error.code() is grpc.StatusCode.ABORTED
    assert (info.metadata["originHop"], info.metadata["originReason"]) == ("tool", "SELF_TIMEOUT")
    assert info.metadata["originCode"] == "DEADLINE_EXCEEDED"
    assert int(info.metadata["remainingMs"]) > 0


@requirement("errors:fault-attribution", "deadline:self-deadline")
@pytest.mark.parametrize("hop", ["tool", "model"])
async def test_a_hop_that_is_too_slow_says_so_itself_before_grpc_would(hop: str) -> None:
    """A deadline that gRPC enforces carries no ErrorInfo: this one comes from the hop."""

    async def slow() -> str:
        await CLOCK.sleep(60)
        return "late"

    calls: dict[str, Callable[[grpc.aio.Channel], Awaitable[Any]]] = {
        "tool": lambda channel: ToolServiceStub(channel).ExecuteTool(EXECUTE, timeout=1.5),
        "model": lambda channel: drained(ModelServiceStub(channel).Generate(GENERATE, timeout=1.5)),
    }
    async with running() as suite, open_channel(suite.config.address(hop)) as channel:
        suite.tool.execution = slow
        suite.model.generation = one_word_then_silence
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await calls[hop](channel)

    info = told(caught.value)
    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    assert (info.reason, info.domain) == ("SELF_TIMEOUT", f"{hop}.sixhop")
    assert 0 < int(info.metadata["remainingMs"]) <= 190


@requirement("errors:fault-attribution")
async def test_an_agent_that_is_too_slow_is_the_domain_hops_own_timeout() -> None:
    async with running() as suite:

        async def slow(run: Run) -> Answer:
            run.say("once upon")
            await CLOCK.sleep(60)
            return Answer()

        suite.agent = slow

        error, info = await failure(suite, 3.0)

    assert error.code() is grpc.StatusCode.ABORTED
    assert (info.metadata["originHop"], info.metadata["originReason"]) in {
        ("domain", "SELF_TIMEOUT"),
        ("domain", "NO_ANSWER"),
    }


@requirement("errors:bug-withheld")
async def test_a_defect_of_an_agent_reaches_the_client_without_its_text() -> None:
    async with running() as suite:

        async def wrong(run: Run) -> Answer:
            raise KeyError("password=hunter2")

        suite.agent = wrong

        error, info = await failure(suite, 5.0)

    assert "hunter2" not in str(error)
    assert (info.metadata["originHop"], info.metadata["originReason"]) == ("domain", "SELF_BUG")
    assert info.metadata["originCode"] == "INTERNAL"


@requirement("errors:stray-cancel")
@pytest.mark.parametrize("where", ["unary", "stream"])
async def test_a_hop_that_awaits_what_was_cancelled_answers_at_once(where: str) -> None:
    """Without the guard gRPC sends no status at all, and the caller waits for its deadline."""

    async def await_a_loser() -> str:
        loser = asyncio.create_task(asyncio.Event().wait())
        loser.cancel()
        return str(await loser)

    async def generation() -> Events:
        yield text("one")
        await await_a_loser()

    async with running() as suite:
        if where == "unary":
            suite.tool.execution = await_a_loser
        else:
            suite.agent = run_model
            suite.model.generation = generation

        error, info = await asyncio.wait_for(failure(suite, 30.0), 5)

    assert error.code() is grpc.StatusCode.ABORTED
    assert (info.metadata["originReason"], info.metadata["cause"]) == ("SELF_BUG", "stray_cancel")
    assert info.metadata["originHop"] == ("tool" if where == "unary" else "model")


@requirement("errors:stray-cancel")
async def test_an_agent_that_awaits_what_was_cancelled_is_a_defect_of_the_domain_hop() -> None:
    async def wrong(run: Run) -> Answer:
        loser = asyncio.create_task(asyncio.Event().wait())
        loser.cancel()
        await loser
        return Answer()

    async with running() as suite:
        suite.agent = wrong

        _, info = await asyncio.wait_for(failure(suite, 30.0), 5)

    assert (info.metadata["originHop"], info.metadata["cause"]) == ("domain", "stray_cancel")


@requirement("errors:fault-attribution")
@pytest.mark.parametrize("hop", ["routing", "domain", "tool", "model"])
async def test_a_hop_that_cannot_be_reached_is_named(hop: str) -> None:
    async with running() as suite:
        await suite.hops[hop].server.stop(None)

        error, info = await failure(suite, 5.0)

    assert error.code() is grpc.StatusCode.ABORTED
    assert (info.metadata["originHop"], info.metadata["originReason"]) == (hop, "UNREACHABLE")
    assert info.metadata["originCode"] == "UNAVAILABLE"


@requirement("deadline:not-worth-sending")
async def test_what_a_dependency_could_not_use_is_not_sent() -> None:
    async with running(CALLS__TOOL__MIN_USEFUL_S="3") as suite:
        error, info = await failure(suite, 3.0)

        assert [inbound.hop for inbound in suite.seen] == ["gateway", "routing", "domain"]

    assert error.code() is grpc.StatusCode.FAILED_PRECONDITION
    assert (info.reason, info.metadata["originHop"]) == ("BUDGET_TOO_SMALL", "domain")
