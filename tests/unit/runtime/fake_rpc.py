"""Serves asynchronous handlers to grpcio-testing, whose time only tests move.

grpcio-testing knows synchronous servicers only. It would take the coroutine that an asynchronous
one returns for its answer, with status OK: a test would pass and test nothing. So what is no
message is an error here.
"""

import asyncio
import inspect
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NoReturn

import grpc
import grpc_testing
from google.protobuf.message import Message

from services.runtime.server import PolicyHandlers
from sixhop.model.v1 import model_pb2
from sixhop.tool.v1 import tool_pb2
from tests.unit.runtime.fake_time import START, FakeTimeLoop

UNARY = tool_pb2.DESCRIPTOR.services_by_name["ToolService"].methods_by_name["ExecuteTool"]
STREAM = model_pb2.DESCRIPTOR.services_by_name["ModelService"].methods_by_name["Generate"]

Metadata = Sequence[tuple[str, str | bytes]]


class NotAwaitedError(TypeError):
    """Says that something which is no message was to be an answer."""


class AsyncContext:
    """Looks to a handler as grpc.aio's context does; time comes from grpcio-testing."""

    def __init__(self, context: Any) -> None:
        """Take grpcio-testing's context."""
        self._context = context
        self.trailing: Metadata = ()
        """What was sent last."""

    def time_remaining(self) -> float | None:
        """Return what grpcio-testing says."""
        remaining_s: float | None = self._context.time_remaining()
        return remaining_s

    def invocation_metadata(self) -> Metadata:
        """Return what the caller sent."""
        sent: Metadata = self._context.invocation_metadata()
        return sent

    def set_trailing_metadata(self, metadata: Metadata) -> None:
        """Keep what shall be sent last."""
        self.trailing = metadata

    async def abort(
        self, code: grpc.StatusCode, details: str = "", trailing_metadata: Metadata = ()
    ) -> NoReturn:
        """End the call, as grpc.aio does."""
        self.trailing = trailing_metadata
        self._context.abort(code, details)
        raise AssertionError("abort returns never")


@dataclass(slots=True)
class Answered:
    """Is what the caller has in the end."""

    code: grpc.StatusCode
    text: str
    at_s: float
    """When the handler had ended, counted from the beginning of the call."""
    messages: list[Any]
    trailing: dict[str, str | bytes]


class SyncServicer:
    """Is a servicer as grpcio-testing wants it, around an asynchronous handler."""

    def __init__(
        self,
        line: Any,
        behaviour: Callable[[Any, Any], Any],
        policies: PolicyHandlers | None,
    ) -> None:
        """Take the time line, the handler, and what wraps it."""
        self._line = line
        self._behaviour = behaviour
        self._policies = policies
        self._context: AsyncContext | None = None
        self.ended = threading.Event()
        """Set when the handler is through, which may be after its caller has gone."""
        self.ended_at = 0.0

    @property
    def trailing(self) -> Metadata:
        """Return the trailing metadata."""
        return () if self._context is None else self._context.trailing

    def unary(self, request: Any, context: Any) -> Message:
        """Answer a call."""
        with self._running(context) as runner:
            handler = runner.run(self._wrapped(grpc.unary_unary_rpc_method_handler))
            return _message(runner.run(_awaited(handler.unary_unary(request, self._context))))

    def stream(self, request: Any, context: Any) -> Iterator[Message]:
        """Answer a call with a stream."""
        with self._running(context) as runner:
            handler = runner.run(self._wrapped(grpc.unary_stream_rpc_method_handler))
            events = handler.unary_stream(request, self._context)
            while (event := runner.run(_next(events))) is not None:
                yield _message(event)

    @contextmanager
    def _running(self, context: Any) -> Iterator[asyncio.Runner]:
        self._context = AsyncContext(context)
        try:
            with asyncio.Runner(loop_factory=lambda: FakeTimeLoop(self._line)) as runner:
                yield runner
        finally:
            self.ended_at = self._line.time()
            self.ended.set()

    async def _wrapped(self, make: Callable[[Any], Any]) -> Any:
        handler = make(self._behaviour)
        if self._policies is None:
            return handler

        def found(details: Any) -> Any:
            return handler

        sent = () if self._context is None else self._context.invocation_metadata()
        details: Any = SimpleNamespace(
            method="/sixhop.test.v1.TestService/Test", invocation_metadata=tuple(sent)
        )
        return self._policies.handler(details, found)


def call_unary(
    behaviour: Callable[[Any, Any], Any],
    *,
    timeout_s: float | None,
    policies: PolicyHandlers | None = None,
    metadata: Metadata = (),
) -> Answered:
    """Call a unary handler, wrapped by the policies if there are any.

    Args:
        behaviour: the handler.
        timeout_s: what the caller gives; None is no deadline.
        policies: what wraps it.
        metadata: what the caller sends.
    """
    line = grpc_testing.strict_fake_time(START)
    servicer = SyncServicer(line, behaviour, policies)
    server = grpc_testing.server_from_dictionary(
        {UNARY.containing_service: SimpleNamespace(ExecuteTool=servicer.unary)}, line
    )
    running = server.invoke_unary_unary(UNARY, metadata, tool_pb2.ExecuteToolRequest(), timeout_s)
    message, _, code, text = running.termination()
    return _answered(servicer, code, text, [] if message is None else [message])


def call_stream(
    behaviour: Callable[[Any, Any], Any],
    *,
    timeout_s: float | None,
    policies: PolicyHandlers | None = None,
) -> Answered:
    """Call a streaming handler; arguments as for `call_unary`."""
    line = grpc_testing.strict_fake_time(START)
    servicer = SyncServicer(line, behaviour, policies)
    sent: list[Message] = []

    def remembered(request: Any, context: Any) -> Iterator[Message]:
        for message in servicer.stream(request, context):
            sent.append(message)
            yield message

    server = grpc_testing.server_from_dictionary(
        {STREAM.containing_service: SimpleNamespace(Generate=remembered)}, line
    )
    running = server.invoke_unary_stream(STREAM, (), model_pb2.GenerateRequest(), timeout_s)
    _, code, text = running.termination()
    return _answered(servicer, code, text, sent)


def _answered(
    servicer: SyncServicer, code: grpc.StatusCode, text: str, messages: list[Any]
) -> Answered:
    if not servicer.ended.wait(5):
        raise TimeoutError("the handler goes on and on")
    at_s = servicer.ended_at - START
    return Answered(code, text, at_s, messages, dict(servicer.trailing))


def _message(answer: object) -> Message:
    if not isinstance(answer, Message):
        if inspect.iscoroutine(answer):
            answer.close()
        raise NotAwaitedError(f"{answer!r} is no message; was it awaited?")
    return answer


async def _awaited(answer: Any) -> Any:
    if not inspect.isawaitable(answer):
        raise NotAwaitedError(f"{answer!r} is no coroutine; the handler is not asynchronous")
    return await answer


async def _next(events: Any) -> Any:
    try:
        return await anext(events)
    except StopAsyncIteration:
        return None
