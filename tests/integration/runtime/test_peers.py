"""Holds calls to peers that are no good peers: silent, not gRPC, or sending garbage."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest

from services.runtime.call import CallLimits
from services.runtime.client import Dependency, open_channel
from services.runtime.errors import Code, DependencyFailedError
from services.runtime.outgoing import Outgoing, own_work
from services.runtime.statistics import Activity
from sixhop.gateway.v1 import gateway_pb2
from sixhop.gateway.v1.gateway_pb2_grpc import GatewayServiceStub
from sixhop.model.v1 import model_pb2
from sixhop.model.v1.model_pb2_grpc import ModelServiceStub
from sixhop.tool.v1 import tool_pb2
from sixhop.tool.v1.tool_pb2_grpc import ToolServiceStub
from sixhop.type.v1.run_pb2 import Question
from tests.integration.runtime.suite import CLOCK, running
from tests.ports import free_port
from tests.requirements import requirement
from tests.stacks import single

LIMITS = CallLimits(step_timeout_s=0.3)


@asynccontextmanager
async def tcp_peer(greeting: bytes, *, hangs_up: bool = False) -> AsyncIterator[str]:
    """Listen, accept, and say only this."""
    connections: set[asyncio.Task[None]] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connections.add(task)
        try:
            writer.write(greeting)
            while not hangs_up and await reader.read(1000):
                pass
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in connections:
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)


async def unary(dependency: Dependency) -> None:
    """Call a unary method."""
    stub = ToolServiceStub(dependency.channel)
    await dependency.unary(stub.ExecuteTool, tool_pb2.ExecuteToolRequest())


async def stream(dependency: Dependency) -> None:
    """Call a streaming method."""
    stub = ModelServiceStub(dependency.channel)
    async with dependency.stream(stub.Generate, model_pb2.GenerateRequest()) as events:
        async for _ in events:
            pass


async def failure(address: str, *, streaming: bool) -> DependencyFailedError:
    """Return how a call to a peer fails, as the domain hop sees it."""
    activity = Activity()
    outgoing = Outgoing("domain", "tool", LIMITS, single(CLOCK, activity), CLOCK)
    async with open_channel(address) as channel:
        with own_work("domain", "Test", 5.0, CLOCK) as inbound:
            with pytest.raises(DependencyFailedError) as caught:
                await (stream if streaming else unary)(Dependency(outgoing, channel))
    assert activity.outgoing == 0
    assert inbound.waiting == []
    return caught.value


@requirement("errors:fault-attribution", "deadline:unary-share", "deadline:stream-limits")
@pytest.mark.parametrize("streaming", [False, True])
async def test_a_peer_that_accepts_and_says_nothing_meets_the_limit(streaming: bool) -> None:
    async with tcp_peer(b"") as address:
        error = await asyncio.wait_for(failure(address, streaming=streaming), 5)

    assert error.origin is not None
    assert (error.origin.hop, error.origin.reason) == ("tool", "NO_ANSWER")
    assert (error.code, error.cause) == (Code.ABORTED, "step_timeout")


@requirement("errors:fault-attribution")
@pytest.mark.parametrize("streaming", [False, True])
async def test_a_peer_that_speaks_something_else_cannot_be_reached(streaming: bool) -> None:
    async with tcp_peer(b"HTTP/1.1 400 Bad Request\r\n\r\n", hangs_up=True) as address:
        error = await asyncio.wait_for(failure(address, streaming=streaming), 5)

    assert error.origin is not None
    assert error.origin.reason in ("UNREACHABLE", "CONNECTION_LOST", "NO_ANSWER")


@requirement("errors:fault-attribution")
@pytest.mark.parametrize("streaming", [False, True])
async def test_where_nobody_listens_is_told_at_once(streaming: bool) -> None:
    address = f"127.0.0.1:{free_port()}"

    error = await asyncio.wait_for(failure(address, streaming=streaming), 5)

    assert error.origin is not None
    assert (error.origin.code, error.origin.reason) == ("UNAVAILABLE", "UNREACHABLE")
    assert error.cause == "unreachable"


@requirement("gateway:bad-input")
async def test_bytes_that_are_no_message_do_the_gateway_no_harm() -> None:
    async with running() as suite, open_channel(suite.config.address("gateway")) as channel:
        ask: Any = channel.unary_unary("/sixhop.gateway.v1.GatewayService/Ask")
        run: Any = channel.unary_stream("/sixhop.gateway.v1.GatewayService/Run")
        for call in (ask(b"\xff" * 9, timeout=5.0), run(b"\xff" * 9, timeout=5.0).read()):
            with pytest.raises(grpc.aio.AioRpcError):
                await call

        request = gateway_pb2.AskRequest(question=Question(text="hello"))
        answer = await GatewayServiceStub(channel).Ask(request, timeout=5.0)

        assert suite.idle()

    assert answer.text == "two words"


@requirement("errors:stray-cancel")
@pytest.mark.parametrize("streaming", [False, True])
async def test_a_channel_that_is_closed_under_a_call_is_the_dependencys_failure(
    streaming: bool,
) -> None:
    """The call ends in a cancel that nobody asked for: it must not pass for one of ours."""
    began = asyncio.Event()

    async def blocked() -> str:
        began.set()
        return str(await asyncio.Event().wait())

    async def silent() -> AsyncIterator[model_pb2.GenerateResponse]:
        await blocked()
        yield model_pb2.GenerateResponse()

    async with running() as suite:
        suite.tool.execution, suite.model.generation = blocked, silent
        name = "model" if streaming else "tool"
        async with suite.hops["domain"].dependency(name) as dependency:
            with own_work("domain", "Test", 30.0, CLOCK):
                calling = asyncio.create_task((stream if streaming else unary)(dependency))
                await asyncio.wait_for(began.wait(), 5)
        await asyncio.wait({calling}, timeout=5)

    error = calling.exception()
    assert isinstance(error, DependencyFailedError)
    assert error.cause == "cancelled"
