"""Measures what both stacks of a hop cost a relayed call, and a refusal, without any transport."""

import asyncio
import itertools
import random
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import grpc

from benchmarks.targets import Target
from services.runtime.call import CallLimits
from services.runtime.client import Dependency
from services.runtime.clock import Clock
from services.runtime.config import load_config
from services.runtime.door import Door
from services.runtime.estimate import PathEstimator
from services.runtime.loads import Loads
from services.runtime.outgoing import Outgoing
from services.runtime.server import PolicyHandlers
from services.runtime.stack import (
    EdgeRules,
    client_policies,
    client_stack,
    server_policies,
    server_stack,
)
from services.runtime.statistics import Activity
from services.runtime.telemetry import configure_logging
from sixhop.gateway.v1 import gateway_pb2

ROUNDS = 9
MESSAGES = 200
"""How many messages a measured stream has."""
POLICIES_TARGET = Target("all policies of both stacks above the skeleton", 60, at_least=False)
MESSAGE_TARGET = Target("one streamed message, every policy on", 5, at_least=False)
REFUSAL_TARGET = Target("a call that is refused, with its status and its line", 100, at_least=False)

_LIMITS = CallLimits(step_timeout_s=5.0)
_QUESTION = gateway_pb2.AskRequest()
_ANSWER = gateway_pb2.AskResponse(text="a" * 440)
_ANSWER_BYTES = _ANSWER.SerializeToString()
_METADATA = (
    ("x-sixhop-run-id", "0123456789abcdef"),
    ("traceparent", f"00-{'a' * 32}-{'b' * 16}-00"),
    ("user-agent", "grpc"),
)
Serve = Callable[[Any, Any], Awaitable[Any]]
Stream = Callable[[Any, Any], AsyncIterator[Any]]


class _Refused(Exception):
    """Ends a call as gRPC does when its status is told."""


class _Context:
    """Is the context of a call that has ten seconds."""

    def time_remaining(self) -> float:
        return 10.0

    def set_trailing_metadata(self, metadata: object) -> None:
        pass

    async def abort(self, *_: object, **__: object) -> None:
        raise _Refused


class _Details:
    """Names a method and what came with it."""

    def __init__(self, method: str) -> None:
        self.method = method
        self.invocation_metadata = _METADATA


class _Method:
    """Is a method whose calls are answered already, by the names that our requests use."""

    def __init__(self, count: int = 1) -> None:
        self._channel = self
        self._method = b"/sixhop.gateway.v1.GatewayService/Ask"
        self._registered_call_handle = None
        self._response_deserializer = gateway_pb2.AskResponse.FromString
        self._count = count

    def call(self, *_: object) -> "_Answered":
        return _Answered(self._count)


class _Answered:
    """Is a call with so many messages that are all there."""

    def __init__(self, count: int) -> None:
        self._left = count

    async def unary_unary(self, request: bytes, metadata: object, context: object) -> bytes:
        return _ANSWER_BYTES

    async def initiate_unary_stream(
        self, request: bytes, metadata: object, context: object
    ) -> None:
        pass

    async def receive_serialized_message(self) -> object:
        self._left -= 1
        return _ANSWER_BYTES if self._left >= 0 else grpc.aio.EOF

    async def status(self) -> "_Answered":
        return self

    def code(self) -> int:
        return 0

    def is_ok(self) -> bool:
        return True

    def is_locally_cancelled(self) -> bool:
        return False

    def done(self) -> bool:
        return True


def relay(clock: Clock, *, engine: bool) -> tuple[PolicyHandlers, Dependency]:
    """Return both doors of the routing hop, with the policies or without them."""
    config = load_config(Path("/dev/null"), {"SIXHOP_ENGINE__ENABLED": str(engine).lower()})
    activity = Activity()
    guards = policies = estimator = None
    if engine:
        estimator = PathEstimator(clock, Loads(clock))
        guards = server_policies(
            config, clock, lambda serving, why: None, lambda change: None, estimator.estimate_s
        )
        policies = client_policies(config, clock, random.Random(1), lambda change: None)
    stack = server_stack(clock, activity, EdgeRules(), guards, estimator, log_calls=False)
    handlers = PolicyHandlers(Door("routing", "routing-1", stack, clock))
    outgoing = Outgoing(
        "routing", "domain", _LIMITS, client_stack(clock, activity, policies, estimator), clock
    )
    channel: Any = None
    return handlers, Dependency(outgoing, channel)


def _handlers(clock: Clock, *, engine: bool) -> tuple[Serve, Callable[[int], Stream]]:
    """Return what relays a call, and what makes a relay of streams of so many messages."""
    handlers, following = relay(clock, engine=engine)
    answer: Any = _Method()

    async def ask(request: Any, context: Any) -> Any:
        return await following.unary(answer, request)

    def run(count: int) -> Stream:
        messages: Any = _Method(count)

        async def relayed(request: Any, context: Any) -> AsyncIterator[Any]:
            async with following.stream(messages, request) as events:
                async for event in events:
                    yield event

        return relayed

    numbers = itertools.count()

    def wrapped(handler: Any) -> Any:
        details: Any = _Details(f"/sixhop.gateway.v1.GatewayService/{next(numbers)}")
        return handlers.handler(details, lambda _: handler)

    unary = wrapped(grpc.unary_unary_rpc_method_handler(ask))
    streams = {
        count: wrapped(grpc.unary_stream_rpc_method_handler(run(count))).unary_stream
        for count in (1, 1 + MESSAGES)
    }
    return unary.unary_unary, streams.__getitem__


async def _unary_us(serve: Serve, count: int) -> float:
    context = _Context()
    began = time.process_time()
    for _ in range(count):
        await serve(_QUESTION, context)
    return (time.process_time() - began) / count * 1e6


async def _message_us(stream: Callable[[int], Stream], count: int) -> float:
    context, lengths = _Context(), []
    for messages in (1, 1 + MESSAGES):
        began = time.process_time()
        for _ in range(count // MESSAGES):
            async for _event in stream(messages)(_QUESTION, context):
                pass
        lengths.append(time.process_time() - began)
    return (lengths[1] - lengths[0]) / (count // MESSAGES * MESSAGES) * 1e6


@asynccontextmanager
async def _full(clock: Clock) -> AsyncIterator[Serve]:
    """Serve one call, and refuse every other one while the block runs."""
    left = asyncio.Event()

    async def stay(request: Any, context: Any) -> Any:
        await left.wait()
        return _ANSWER

    settings = {"SIXHOP_LIMIT__MAX_INFLIGHT": "1", "SIXHOP_ADMISSION__MAX_WAIT_S": "0"}
    config = load_config(Path("/dev/null"), settings)
    guards = server_policies(config, clock, lambda serving, why: None, lambda change: None)
    stack = server_stack(clock, Activity(), EdgeRules(), guards, log_calls=False)
    handlers = PolicyHandlers(Door("routing", "routing-1", stack, clock))
    details: Any = _Details("/sixhop.gateway.v1.GatewayService/Ask")
    handler = handlers.handler(details, lambda _: grpc.unary_unary_rpc_method_handler(stay))
    held = asyncio.create_task(handler.unary_unary(_QUESTION, _Context()))
    await asyncio.sleep(0)
    try:
        yield handler.unary_unary
    finally:
        left.set()
        await held


async def _refusal_us(serve: Serve, count: int) -> float:
    began = time.process_time()
    for _ in range(count):
        try:
            await serve(_QUESTION, _Context())
        except _Refused:
            continue
        raise AssertionError("a call was let in that there was no room for")
    return (time.process_time() - began) / count * 1e6


async def measure(clock: Clock, count: int) -> list[tuple[bool, str]]:
    """Print what a relayed call, a relayed message and a refusal cost; return the verdicts."""
    skeleton, skeleton_stream = _handlers(clock, engine=False)
    whole, whole_stream = _handlers(clock, engine=True)
    configure_logging("routing", "routing-1", "info", clock, BytesIO())
    async with _full(clock) as full:
        refusals = [await _refusal_us(full, count) for _ in range(ROUNDS)]
    figures: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        for name, value in (
            ("both stacks, deadlines only", await _unary_us(skeleton, count)),
            ("both stacks, every policy", await _unary_us(whole, count)),
            ("a streamed message, deadlines only", await _message_us(skeleton_stream, count)),
            ("a streamed message, every policy", await _message_us(whole_stream, count)),
        ):
            figures.setdefault(name, []).append(value)
    figures["a refusal, as its hop answers it"] = refusals
    for name, found in figures.items():
        print(f"{name:<36} {statistics.median(found):6.2f}  {min(found):6.2f}")
    medians = {name: statistics.median(found) for name, found in figures.items()}
    added = medians["both stacks, every policy"] - medians["both stacks, deadlines only"]
    return [
        POLICIES_TARGET.judge(added, " µs"),
        MESSAGE_TARGET.judge(medians["a streamed message, every policy"], " µs"),
        REFUSAL_TARGET.judge(medians["a refusal, as its hop answers it"], " µs"),
    ]
