"""Sends load to the door of one hop, as the hop before it would, and tells what became of it."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import grpc
from google.protobuf import json_format
from google.protobuf.struct_pb2 import Struct

from services.runtime.call import AttemptReport, Criticality
from services.runtime.errors import Code
from services.runtime.identity import CRITICALITY_KEY, TENANT_KEY
from services.runtime.reports import REPORTS_KEY, decode_reports
from services.runtime.status import DETAILS_KEY, error_info, from_status
from sixhop.domain.v1 import domain_pb2
from sixhop.domain.v1.domain_pb2_grpc import DomainServiceStub
from sixhop.tool.v1 import tool_pb2
from sixhop.tool.v1.tool_pb2_grpc import ToolServiceStub
from sixhop.type.v1 import run_pb2

PLACES = "places"
"""The tool that has a number of places and a fixed time."""


@dataclass(frozen=True, slots=True)
class Sender:
    """Says for whom a call is made; inner hops believe it, the gateway does not."""

    tenant: str = ""
    level: Criticality = Criticality.CRITICAL

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        """Return what tells a hop."""
        return ((TENANT_KEY, self.tenant), (CRITICALITY_KEY, self.level.name))


@dataclass(frozen=True, slots=True)
class Sent:
    """Tells what became of one call; instants are of the monotonic clock."""

    sender: Sender
    began: float
    ended: float
    code: grpc.StatusCode
    reason: str = ""
    cause: str = ""
    retry_after_s: float | None = None
    """What RetryInfo says; None without one."""
    reports: Sequence[AttemptReport] = ()
    """What the hop says of the calls that it made for this one."""

    @property
    def elapsed_s(self) -> float:
        """Return how long its caller waited."""
        return self.ended - self.began

    @property
    def served(self) -> bool:
        """Return whether it was answered in time."""
        return self.code is grpc.StatusCode.OK


Send = Callable[[Sender], Awaitable[Sent]]


async def sent(sender: Sender, call: Awaitable[object]) -> Sent:
    """Wait for a call's end, whatever it is."""
    began = time.monotonic()
    try:
        await call
    except grpc.aio.AioRpcError as error:
        metadata = error.trailing_metadata()
        found = metadata.get(DETAILS_KEY) if metadata is not None else None
        reports = metadata.get(REPORTS_KEY) if metadata is not None else None
        details = found if isinstance(found, bytes) else None
        info = error_info(details)
        told = from_status("door", Code(error.code().value[0]), "", details, cause="")
        return Sent(
            sender,
            began,
            time.monotonic(),
            error.code(),
            reason=info.reason if info else "",
            cause=info.metadata["cause"] if info else "",
            retry_after_s=told.retry_after_s,
            reports=decode_reports(reports) if isinstance(reports, bytes) else (),
        )
    return Sent(sender, began, time.monotonic(), grpc.StatusCode.OK)


class ToolDoor:
    """Executes the tool with places at the tool hop."""

    def __init__(self, channel: grpc.aio.Channel, count: int, length_s: float) -> None:
        """Take the way to the hop, how many places there are, and how long a call needs one."""
        self._stub = ToolServiceStub(channel)
        self._request = _request(count=count, length_s=length_s)
        self._telling = _request(count=count, tells=True)

    def send(self, deadline_s: float) -> Send:
        """Return what sends one call with a deadline."""

        async def execute(sender: Sender) -> Sent:
            call = self._stub.ExecuteTool(
                self._request, timeout=deadline_s, metadata=sender.metadata
            )
            return await sent(sender, call)

        return execute

    async def seen(self) -> Mapping[str, float]:
        """Return what the places have seen: who is inside, the peak, who began and was done."""
        highest = Sender(level=Criticality.CRITICAL_PLUS)
        response = await self._stub.ExecuteTool(
            self._telling, timeout=10.0, metadata=highest.metadata
        )
        return json_format.MessageToDict(response.data)


class DomainDoor:
    """Has an agent at the domain hop execute a tool."""

    def __init__(self, channel: grpc.aio.Channel, tool: str, **arguments: Any) -> None:
        """Take the way to the hop, and what is to be executed."""
        self._stub = DomainServiceStub(channel)
        self._request = domain_pb2.RunAgentRequest(
            question=run_pb2.Question(text=f"{tool} {json.dumps(arguments)}"), agent="probe_tool"
        )

    def send(self, deadline_s: float) -> Send:
        """Return what sends one call with a deadline."""

        async def run(sender: Sender) -> Sent:
            call = self._stub.RunAgent(self._request, timeout=deadline_s, metadata=sender.metadata)
            return await sent(sender, read_all(call))

        return run


async def read_all(call: Any) -> None:
    """Read a stream to its end and keep nothing."""
    while await call.read() is not grpc.aio.EOF:
        pass


def _request(**arguments: Any) -> tool_pb2.ExecuteToolRequest:
    packed = Struct()
    packed.update(arguments)
    return tool_pb2.ExecuteToolRequest(name=PLACES, arguments=packed)


async def at_rate(send: Send, rates: Mapping[Sender, float], length_s: float) -> Sequence[Sent]:
    """Send so many calls a second for each sender, evenly, whatever becomes of them.

    When this machine stood still for a while, what was not sent then is not made up for: it would
    be a wave that nobody has asked for.
    """
    began = time.monotonic()
    instants = sorted(
        ((number + place / len(rates)) / rate, place, sender)
        for place, (sender, rate) in enumerate(rates.items())
        for number in range(int(rate * length_s))
    )
    async with asyncio.TaskGroup() as calls:
        tasks = []
        for instant, _, sender in instants:
            early_s = began + instant - time.monotonic()
            if early_s > 0:
                await asyncio.sleep(early_s)
            began = max(began, time.monotonic() - instant)
            tasks.append(calls.create_task(_awaited(send(sender))))
    return [task.result() for task in tasks]


async def at_once(
    send: Send, senders: Iterable[Sender], length_s: float, pause_s: float = 0.0
) -> Sequence[Sent]:
    """Keep one call of each sender in flight for some time; name one twice to have two."""
    until = time.monotonic() + length_s

    async def repeat(sender: Sender) -> list[Sent]:
        found = []
        while time.monotonic() < until:
            found.append(await send(sender))
            await asyncio.sleep(pause_s)
        return found

    found = await asyncio.gather(*map(repeat, senders))
    return [each for calls in found for each in calls]


async def _awaited(call: Awaitable[Sent]) -> Sent:
    return await call
