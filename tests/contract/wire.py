"""Serves one scripted method behind the real door, and reads what comes out of it raw."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import grpc
from google.rpc import error_details_pb2, status_pb2

from services.runtime.client import Dependency, open_channel
from services.runtime.clock import MonotonicClock
from services.runtime.errors import (
    TABLE,
    DependencyError,
    InvalidArgumentError,
    NotFoundError,
    Origin,
    SixhopError,
)
from services.runtime.process import Hop, serving
from services.runtime.status import DETAILS_KEY
from sixhop.model.v1 import model_pb2
from sixhop.model.v1.model_pb2_grpc import (
    ModelServiceServicer,
    ModelServiceStub,
    add_ModelServiceServicer_to_server,
)
from sixhop.tool.v1 import tool_pb2
from sixhop.tool.v1.tool_pb2_grpc import (
    ToolServiceServicer,
    ToolServiceStub,
    add_ToolServiceServicer_to_server,
)
from tests.integration.runtime.suite import configured

CLOCK = MonotonicClock()
Raise = Callable[[], Awaitable[None]]


class FailingHop(ToolServiceServicer, ModelServiceServicer):
    """Answers every method by what the test raises, the stream after one event if so wished."""

    def __init__(self, fail: Raise, events: int) -> None:
        """Take what raises, and how many events come before."""
        self._fail = fail
        self._events = events

    async def ExecuteTool(
        self, request: tool_pb2.ExecuteToolRequest, context: Any
    ) -> tool_pb2.ExecuteToolResponse:
        await self._fail()
        return tool_pb2.ExecuteToolResponse()

    async def ListTools(
        self, request: tool_pb2.ListToolsRequest, context: Any
    ) -> tool_pb2.ListToolsResponse:
        await self._fail()
        return tool_pb2.ListToolsResponse()

    async def Generate(
        self, request: model_pb2.GenerateRequest, context: Any
    ) -> AsyncIterator[model_pb2.GenerateResponse]:
        for _ in range(self._events):
            yield model_pb2.GenerateResponse()
        await self._fail()

    async def CountTokens(
        self, request: model_pb2.CountTokensRequest, context: Any
    ) -> model_pb2.CountTokensResponse:
        await self._fail()
        return model_pb2.CountTokensResponse()

    async def DescribeModel(
        self, request: model_pb2.DescribeModelRequest, context: Any
    ) -> model_pb2.DescribeModelResponse:
        await self._fail()
        return model_pb2.DescribeModelResponse()


@dataclass(slots=True)
class Peer:
    """Is a hop that fails, with both ways to it."""

    channel: grpc.aio.Channel
    """Without any policy of ours."""
    dependency: Dependency
    """Through the choke point of a hop before it."""


class Stranger(ToolServiceServicer):
    """Is a server that knows nothing of this house, and is busy."""

    def __init__(self, *trailers: tuple[str, str]) -> None:
        """Take what comes after its refusals."""
        self._trailers = trailers

    async def ExecuteTool(
        self, request: tool_pb2.ExecuteToolRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> tool_pb2.ExecuteToolResponse:
        """Refuse."""
        await context.abort(grpc.StatusCode.UNAVAILABLE, "busy", trailing_metadata=self._trailers)

    async def ListTools(
        self, request: tool_pb2.ListToolsRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> tool_pb2.ListToolsResponse:
        """Have none."""
        return tool_pb2.ListToolsResponse()


@asynccontextmanager
async def caller(hop: Hop) -> AsyncIterator[None]:
    """Serve nothing: a hop that only calls."""
    yield


@asynccontextmanager
async def calling_stranger(*trailers: tuple[str, str]) -> AsyncIterator[Dependency]:
    """Run such a server, called by the domain hop."""
    stranger = Stranger(*trailers)
    async with _calling(
        lambda server: add_ToolServiceServicer_to_server(stranger, server)
    ) as dependency:
        yield dependency


@asynccontextmanager
async def _calling(add_to: Callable[[grpc.aio.Server], None]) -> AsyncIterator[Dependency]:
    config = configured()
    server = grpc.aio.server()
    add_to(server)
    server.add_insecure_port(config.address("tool"))
    await server.start()
    try:
        async with (
            serving("domain", caller, config, CLOCK) as domain,
            domain.dependency("tool") as dependency,
        ):
            yield dependency
            # However a request ends, nothing holds it any longer.
            assert not dependency.under_way
    finally:
        await server.stop(None)


class Babbler(grpc.GenericRpcHandler):
    """Answers every method with bytes that are no message."""

    def service(self, details: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[Any, Any]":
        """Return what answers."""

        async def babble(request: bytes, context: Any) -> bytes:
            return b"\xff" * 7

        return grpc.unary_unary_rpc_method_handler(babble)


@asynccontextmanager
async def calling_babbler() -> AsyncIterator[Dependency]:
    """Run a server that does not speak our language, called by the domain hop."""
    async with _calling(lambda server: server.add_generic_rpc_handlers([Babbler()])) as dependency:
        yield dependency


@asynccontextmanager
async def failing(fail: Raise, *, events: int = 0) -> AsyncIterator[Peer]:
    """Run a tool hop that fails, called by the domain hop."""

    @asynccontextmanager
    async def open_hop(hop: Hop) -> AsyncIterator[None]:
        servicer = FailingHop(fail, events)
        add_ToolServiceServicer_to_server(servicer, hop.server)
        add_ModelServiceServicer_to_server(servicer, hop.server)
        yield

    config = configured()
    async with (
        serving("tool", open_hop, config, CLOCK),
        serving("domain", caller, config, CLOCK) as domain,
        domain.dependency("tool") as dependency,
        open_channel(config.address("tool")) as channel,
    ):
        yield Peer(channel, dependency)
        # However a request ends, nothing holds it any longer.
        assert not dependency.under_way


async def call_unary(peer: Peer) -> None:
    """Call the unary method, raw."""
    await ToolServiceStub(peer.channel).ExecuteTool(tool_pb2.ExecuteToolRequest(), timeout=10.0)


async def call_stream(peer: Peer) -> None:
    """Call the streaming method, raw."""
    stub = ModelServiceStub(peer.channel)
    async for _ in stub.Generate(model_pb2.GenerateRequest(), timeout=10.0):
        pass


def sample(reason: str) -> SixhopError:
    """Return an error of a kind, as a service would raise it."""
    kind = TABLE[reason]
    if kind is InvalidArgumentError:
        return InvalidArgumentError("arguments.sql", "is empty; write SQL")
    if kind is NotFoundError:
        return NotFoundError("tool", "sqll", ["sql"])
    if issubclass(kind, DependencyError):
        origin = Origin("llm", "pod-3", "UNKNOWN", "HTTP_500")
        return kind("llm", "the provider failed", cause="http_500", origin=origin)
    return kind("it went wrong", cause="queue", retry_after_s=1.5)


def raising(error: BaseException) -> Raise:
    """Return what raises an error."""

    async def fail() -> None:
        raise error

    return fail


def rich_status(error: grpc.aio.AioRpcError) -> status_pb2.Status:
    """Return the status that an error carries."""
    metadata = error.trailing_metadata()
    details = metadata.get(DETAILS_KEY) if metadata else None
    assert isinstance(details, bytes), f"no typed error: {error}"
    return status_pb2.Status.FromString(details)


def infos(status: status_pb2.Status) -> list[error_details_pb2.ErrorInfo]:
    """Return every ErrorInfo of a status."""
    found = []
    for packed in status.details:
        info = error_details_pb2.ErrorInfo()
        if packed.Unpack(info):
            found.append(info)
    return found
