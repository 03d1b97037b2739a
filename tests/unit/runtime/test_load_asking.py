"""Holds callers to asking for load reports as often as there may be new ones, and no oftener."""

from types import SimpleNamespace
from typing import Any

import grpc
import pytest

from services.runtime.client import Dependency
from services.runtime.clock import ManualClock
from services.runtime.load_report import (
    LOAD_REPORT_KEY,
    LOAD_WANTED,
    LoadReader,
    LoadReport,
    encode_load_report,
)
from services.runtime.outgoing import Outgoing
from services.runtime.statistics import Activity
from sixhop.tool.v1 import tool_pb2
from tests.requirements import requirement
from tests.stacks import single
from tests.unit.runtime.policies.samples import limits
from tests.unit.runtime.scripted import serving

REQUEST = tool_pb2.ExecuteToolRequest()
REPORT = encode_load_report(
    LoadReport(cpu_utilization=0.5, application_utilization=0.5, rps=1.0, eps=0.0)
)


class Answering:
    """Is a method of a stub whose callee answers with nothing, at once, and tells its load."""

    _method = b"/ExecuteTool"
    _registered_call_handle = None
    _response_deserializer = staticmethod(tool_pb2.ExecuteToolResponse.FromString)

    def __init__(self, *, tells: bool) -> None:
        """Take whether who asks is told."""
        self._tells = tells
        self._channel = SimpleNamespace(call=lambda *_: self)
        self.asked: list[bool] = []
        """Of each request: whether a report was asked for."""

    async def unary_unary(self, request: bytes, metadata: Any, credentials: None) -> bytes:
        """Answer."""
        self.asked.append(LOAD_WANTED in metadata)
        return b""

    async def initiate_unary_stream(self, request: bytes, metadata: Any, credentials: None) -> None:
        """Begin a stream."""
        self.asked.append(LOAD_WANTED in metadata)

    async def receive_serialized_message(self) -> object:
        """End the stream."""
        return grpc.aio.EOF

    async def status(self) -> Any:
        """Return how the request has ended."""
        told = ((LOAD_REPORT_KEY, REPORT),) if self._tells and self.asked[-1] else ()
        return SimpleNamespace(code=lambda: 0, trailing_metadata=lambda: told)

    def is_ok(self) -> bool:
        """Say that it was answered."""
        return True

    def is_locally_cancelled(self) -> bool:
        """Say that nobody has cancelled it."""
        return False

    def done(self) -> bool:
        """Say that it has ended."""
        return True


def calling(clock: ManualClock) -> Dependency:
    """Return the way to a tool; nobody wants its load yet."""
    outgoing = Outgoing("domain", "tool", limits(), single(clock, Activity()), clock)
    # Methods bring their own.
    channel: Any = None
    return Dependency(outgoing, channel)


async def ask(to: Dependency, rpc: Any, clock: ManualClock, count: int) -> None:
    """Make so many calls, a thousand in a second."""
    for _ in range(count):
        with serving(clock):
            await to.unary(rpc, REQUEST)
        clock.advance(0.001)


@requirement("load:cheap")
@pytest.mark.parametrize(("tells", "asked_count"), [(True, 5), (False, 20)])
async def test_a_caller_asks_five_times_a_second_and_oftener_only_while_none_comes(
    tells: bool, asked_count: int
) -> None:
    clock, rpc = ManualClock(), Answering(tells=tells)
    to, reader = calling(clock), LoadReader(clock)
    to.note_load, to.loads = reader.note, reader

    await ask(to, rpc, clock, 1000)

    assert sum(rpc.asked) == asked_count
    assert (reader.report is not None) is tells


@requirement("load:cheap")
async def test_every_stream_asks_and_puts_off_no_other_call() -> None:
    clock = ManualClock()
    rpc: Any = Answering(tells=False)
    to, reader = calling(clock), LoadReader(clock)
    to.note_load, to.loads = reader.note, reader

    for _ in range(3):
        with serving(clock):
            async with to.stream(rpc, REQUEST) as events:
                assert [event async for event in events] == []
    await ask(to, rpc, clock, 2)

    assert rpc.asked == [True, True, True, True, False]


async def test_without_a_reader_each_call_asks_and_where_nobody_wants_to_know_none() -> None:
    clock, rpc = ManualClock(), Answering(tells=True)
    to = calling(clock)
    told: list[bytes] = []

    await ask(to, rpc, clock, 2)
    to.note_load = told.append
    await ask(to, rpc, clock, 2)

    assert rpc.asked == [False, False, True, True]
    assert told == [REPORT, REPORT]
