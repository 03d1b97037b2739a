"""Holds the wrapping of handlers: once for each method, around what a service holds."""

import inspect
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import grpc
import pytest

from services.runtime.call import Inbound
from services.runtime.door import Door
from services.runtime.guarding import Guard
from services.runtime.server import PolicyHandlers
from sixhop.model.v1 import model_pb2
from sixhop.tool.v1 import tool_pb2
from tests.requirements import requirement
from tests.unit.runtime.fake_time import LoopClock

CLOCK = LoopClock()
ANSWER = tool_pb2.ExecuteToolResponse()
EVENT = model_pb2.GenerateResponse(sequence=1)


@dataclass(frozen=True, slots=True)
class Details:
    """Names a method, as gRPC does for who looks for its handler."""

    method: str
    invocation_metadata: tuple[()] = ()


class QuietContext:
    """Is the context of a call that nobody waits for, with ten seconds."""

    def time_remaining(self) -> float:
        """Return ten seconds."""
        return 10.0

    def invocation_metadata(self) -> tuple[()]:
        """Return nothing."""
        return ()


def door() -> PolicyHandlers:
    """Return a door without policies."""
    return PolicyHandlers(Door("tool", "tool-7", [], CLOCK))


@requirement("stream:cancelled-when-left")
async def test_what_a_service_holds_is_free_before_its_call_counts_as_ended() -> None:
    """Left to the collector it would be free at some time, and a drain might not wait for it."""
    log: list[str] = []

    async def handler(request: Any, context: Any) -> AsyncIterator[Any]:
        try:
            yield EVENT
        finally:
            await CLOCK.sleep(0.1)
            log.append("free")

    class Ending(Guard[Inbound]):
        def after(self, inbound: Inbound, error: BaseException | None) -> None:
            log.append("ended")

    def found(details: Any) -> Any:
        return grpc.unary_stream_rpc_method_handler(handler)

    policies = PolicyHandlers(Door("tool", "tool-7", [Ending()], CLOCK))
    details: Any = Details("/sixhop.tool.v1.ToolService/Test")
    wrapped: Any = policies.handler(details, found)
    stream = wrapped.unary_stream(None, QuietContext())
    await anext(stream)

    await stream.aclose()

    assert log == ["free", "ended"]


def test_a_wrapped_method_is_asynchronous_by_grpcs_first_look() -> None:
    def found(details: Any) -> Any:
        return grpc.unary_unary_rpc_method_handler(lambda *_: ANSWER)

    details: Any = Details("/sixhop.tool.v1.ToolService/ExecuteTool")

    wrapped: Any = door().handler(details, found)

    # gRPC runs whatever is not in a thread.
    assert inspect.isawaitable(wrapped.unary_unary)


async def test_a_method_is_wrapped_once() -> None:
    policies, asked = door(), []

    def found(details: Any) -> Any:
        asked.append(details.method)
        return grpc.unary_unary_rpc_method_handler(lambda *_: ANSWER)

    details: Any = Details("/sixhop.tool.v1.ToolService/ExecuteTool")
    first = policies.handler(details, found)
    second = policies.handler(details, found)

    assert first is second
    assert len(asked) == 1


@pytest.mark.parametrize(
    "method",
    [
        "/grpc.health.v1.Health/Check",
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
        "/sixhop.runtime.v1.RuntimeService/GetSnapshot",
    ],
)
async def test_what_must_answer_when_nothing_else_does_is_not_wrapped(method: str) -> None:
    handler: Any = grpc.unary_unary_rpc_method_handler(lambda *_: ANSWER)

    def found(details: Any) -> Any:
        return handler

    details: Any = Details(method)
    assert door().handler(details, found) is handler


async def test_a_client_stream_is_refused_at_the_first_call() -> None:
    def found(details: Any) -> Any:
        return grpc.stream_unary_rpc_method_handler(lambda *_: ANSWER)

    details: Any = Details("/sixhop.tool.v1.ToolService/Upload")
    with pytest.raises(TypeError, match="no client streams"):
        door().handler(details, found)
