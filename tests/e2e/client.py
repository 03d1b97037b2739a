"""Asks the suite as a client would, and looks into its hops."""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from services.runtime.call import AttemptReport
from services.runtime.client import CHANNEL_OPTIONS
from services.runtime.reports import REPORTS_KEY, decode_reports
from services.runtime.status import DETAILS_KEY, error_info, retry_after_s
from services.runtime.topology import DOMAIN, GATEWAY, HOPS
from sixhop.gateway.v1 import gateway_pb2
from sixhop.gateway.v1.gateway_pb2_grpc import GatewayServiceStub
from sixhop.runtime.v1 import runtime_pb2
from sixhop.runtime.v1.runtime_pb2_grpc import RuntimeServiceStub
from sixhop.type.v1 import artifact_pb2, chat_pb2, generation_pb2, run_pb2
from tests.e2e.suite import WAIT_S, Suite, TimeLimitError, eventually

POLL_S = 0.01
WARM_TIMEOUT_S = 30.0
SNAPSHOT_TIMEOUT_S = 5.0
IDLE_WITHIN_S = 0.25
"""What the project promises: so long after a caller's end, nothing of it is left."""


@dataclass(slots=True)
class Ended:
    """Tells how a run ended, as its client saw it; instants are of the monotonic clock."""

    run_id: str
    began: float
    ended: float = 0.0
    code: grpc.StatusCode = grpc.StatusCode.OK
    message: str = ""
    reason: str = ""
    """The reason of the one ErrorInfo; empty without one."""
    details: dict[str, str] = field(default_factory=dict)
    """The metadata of the ErrorInfo."""
    retry_after_s: float | None = None
    """When to come back, as RetryInfo says; None without one."""
    reports: list[AttemptReport] = field(default_factory=list)
    events: list[run_pb2.RunEvent] = field(default_factory=list)
    """What a stream gave; empty for a unary answer."""
    answer: gateway_pb2.AskResponse | None = None
    """What a unary call gave; None for a stream."""

    @property
    def elapsed_s(self) -> float:
        """Return how long the client waited."""
        return self.ended - self.began

    @property
    def kinds(self) -> list[str]:
        """Return the kinds of the events, in order."""
        return [str(event.WhichOneof("event")) for event in self.events]

    @property
    def text(self) -> str:
        """Return the answer's text."""
        if self.answer is not None:
            return self.answer.text
        kept = self.events
        for number, kind in enumerate(self.kinds):
            if kind == "restarted":
                kept = self.events[number:]
        return "".join(event.text_delta.text for event in kept)

    @property
    def tool_calls(self) -> list[chat_pb2.ToolCall]:
        """Return the tools that the model asks for, in order."""
        if self.answer is not None:
            return list(self.answer.tool_calls)
        return [event.tool_call for event in self.events if event.HasField("tool_call")]

    @property
    def finished(self) -> run_pb2.RunFinished | gateway_pb2.AskResponse:
        """Return what tells the end of a run that ended well; the whole answer has it too."""
        return self.answer if self.answer is not None else self.events[-1].finished

    @property
    def degradations(self) -> list[run_pb2.Degraded]:
        """Return the fallbacks that the client was told of, in order."""
        if self.answer is not None:
            return list(self.answer.degradations)
        return [event.degraded for event in self.events if event.HasField("degraded")]


class Running:
    """Is a run in flight, over the stream or the unary call."""

    def __init__(self, call: Any, run_id: str, *, streaming: bool) -> None:
        """Take the call."""
        self.call = call
        self.seen = Ended(run_id, time.monotonic())
        self._streaming = streaming

    async def until(self, condition: Callable[[run_pb2.RunEvent], bool]) -> None:
        """Read the stream up to the first event for which the condition holds.

        Raises:
            TimeLimitError: the stream ended without one.
        """
        while True:
            response = await self.call.read()
            if response is grpc.aio.EOF:
                raise TimeLimitError(f"the run ended before: {self.seen}")
            self.seen.events.append(response.event)
            if condition(response.event):
                return

    async def end(self) -> Ended:
        """Wait for the end and tell it; an error is a part of what is told."""
        seen = self.seen
        try:
            if self._streaming:
                while (response := await self.call.read()) is not grpc.aio.EOF:
                    seen.events.append(response.event)
            else:
                seen.answer = await self.call
            seen.ended = time.monotonic()
            self._take_reports(await self.call.trailing_metadata())
        except grpc.aio.AioRpcError as error:
            seen.ended = time.monotonic()
            seen.code, seen.message = error.code(), error.details() or ""
            self._take_reports(error.trailing_metadata())
            self._take_info(error.trailing_metadata())
        return seen

    def _take_reports(self, metadata: "grpc.aio.Metadata | None") -> None:
        value = metadata.get(REPORTS_KEY) if metadata is not None else None
        if isinstance(value, bytes):
            self.seen.reports = decode_reports(value)

    def _take_info(self, metadata: "grpc.aio.Metadata | None") -> None:
        value = metadata.get(DETAILS_KEY) if metadata is not None else None
        status = value if isinstance(value, bytes) else None
        info = error_info(status)
        self.seen.retry_after_s = retry_after_s(status)
        if info is not None:
            self.seen.reason = info.reason
            self.seen.details = dict(info.metadata)


class Client:
    """Talks with a suite on the loop of one test."""

    def __init__(self, suite: Suite, channels: dict[str, grpc.aio.Channel]) -> None:
        """Take the suite and a channel for each hop."""
        self.suite = suite
        self.channels = channels
        self._gateway = GatewayServiceStub(channels[GATEWAY])
        self._runtimes = {hop: RuntimeServiceStub(channel) for hop, channel in channels.items()}

    def run(
        self,
        question: str,
        *,
        agent: str = "",
        deadline_s: float | None = 10.0,
        sources: Sequence[artifact_pb2.DataSource] = (),
        unary: bool = False,
        delivery: "run_pb2.Delivery.ValueType" = run_pb2.DELIVERY_UNSPECIFIED,
        history: Sequence[chat_pb2.ChatMessage] = (),
        tools: Sequence[chat_pb2.ToolOffer] = (),
        tool_choice: str = "",
        generation: generation_pb2.GenerationOptions | None = None,
    ) -> Running:
        """Start a run; `unary` takes the call that gives the whole answer at once."""
        run_id = secrets.token_hex(8)
        asked = run_pb2.Question(
            text=question,
            sources=sources,
            history=history,
            tools=tools,
            tool_choice=tool_choice,
            generation=generation,
        )
        metadata = (("x-sixhop-run-id", run_id), ("x-sixhop-reports", "1"))
        call: Any
        if unary:
            ask = gateway_pb2.AskRequest(question=asked, agent=agent)
            call = self._gateway.Ask(ask, timeout=deadline_s, metadata=metadata)
        else:
            run = gateway_pb2.RunRequest(question=asked, agent=agent, delivery=delivery)
            call = self._gateway.Run(run, timeout=deadline_s, metadata=metadata)
        return Running(call, run_id, streaming=not unary)

    async def snapshot(self, hop: str) -> runtime_pb2.GetSnapshotResponse:
        """Return the state of a hop."""
        request = runtime_pb2.GetSnapshotRequest()
        return await self._runtimes[hop].GetSnapshot(request, timeout=SNAPSHOT_TIMEOUT_S)

    async def dependency(self, hop: str, key: str) -> runtime_pb2.DependencySnapshot:
        """Return how a hop sees a callee; empty but for the key while it has not called it."""
        found = {each.key: each for each in (await self.snapshot(hop)).dependencies}
        return found.get(key, runtime_pb2.DependencySnapshot(key=key))

    async def tools_known(self) -> None:
        """Wait until the domain hop knows what the tools declare.

        Raises:
            TimeLimitError: it does not in time.
        """
        events = self.suite.child(DOMAIN).events
        await eventually(
            lambda: [line for line in events() if line["event"] == "tools_learned"],
            WAIT_S,
            "the domain hop learns the tools",
        )

    async def idle_after(
        self, since: float, hops: Iterable[str] = HOPS, give_up_s: float = 3.0
    ) -> dict[str, float]:
        """Return how long after an instant each hop had nothing left of any call.

        A hop is asked every 10 ms. The length counts to the moment at which the first question
        was sent that it answered with no call, no outgoing call and no task: that it was idle
        then is sure but for the way of the question.

        Raises:
            TimeLimitError: a hop still had something when the time to give up came.
        """

        async def watch(hop: str) -> float:
            while True:
                asked_s = time.monotonic() - since
                state = await self.snapshot(hop)
                left = (state.inflight_count, state.outgoing_count, state.task_count)
                if not any(left):
                    return asked_s
                if asked_s > give_up_s:
                    raise TimeLimitError(f"{hop} has calls, outgoing calls, tasks: {left}")
                await asyncio.sleep(POLL_S)

        hops = list(hops)
        lengths = await asyncio.gather(*(watch(hop) for hop in hops))
        return dict(zip(hops, lengths, strict=True))

    async def permits(self) -> dict[str, int]:
        """Return how many permits for calls are held in each hop."""
        states = await asyncio.gather(*(self.snapshot(hop) for hop in self.channels))
        held = (sum(each.inflight_count for each in state.bulkheads) for state in states)
        return dict(zip(self.channels, held, strict=True))

    async def serving(self, hop: str, name: str = "readiness") -> bool:
        """Return what a hop's `grpc.health.v1` says of itself."""
        stub: Any = health_pb2_grpc.HealthStub(self.channels[hop])  # its types know no method
        request = health_pb2.HealthCheckRequest(service=name)
        answer = await stub.Check(request, timeout=SNAPSHOT_TIMEOUT_S, wait_for_ready=True)
        return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)

    async def busy(self, hop: str, call_count: int = 1) -> None:
        """Wait until a hop serves so many calls.

        Raises:
            TimeLimitError: it does not in time.
        """
        until = time.monotonic() + WAIT_S
        while (await self.snapshot(hop)).inflight_count < call_count:
            if time.monotonic() > until:
                raise TimeLimitError(f"{hop} does not serve {call_count} calls")
            await asyncio.sleep(POLL_S)

    async def warm(self) -> None:
        """Use every connection of the suite once, so that no later measurement pays for it.

        Raises:
            TimeLimitError: a hop is not ready, or a run over all hops fails.
        """
        hops = list(self.channels)
        states = await asyncio.gather(*(self.serving(hop) for hop in hops))
        if not all(states):
            raise TimeLimitError(f"not ready: {dict(zip(hops, states, strict=True))}")
        for agent in ("probe_stream", "probe_six"):
            await self.answered(agent, WARM_TIMEOUT_S)

    async def answered(self, agent: str, within_s: float) -> Ended:
        """Return the first run of an agent that ends well.

        Raises:
            TimeLimitError: none did in time; tells the last one.
        """
        until = time.monotonic() + within_s
        while (run := await self.run("Go.", agent=agent).end()).code is not grpc.StatusCode.OK:
            if time.monotonic() > until:
                raise TimeLimitError(f"the suite does not answer: {run}")
            await asyncio.sleep(POLL_S)
        return run


@asynccontextmanager
async def open_client(suite: Suite) -> AsyncIterator[Client]:
    """Open the channels to a suite, and close them when the block is left."""
    hops = dict.fromkeys((*HOPS, *suite.hops))
    channels = {
        hop: grpc.aio.insecure_channel(suite.address(hop), options=CHANNEL_OPTIONS) for hop in hops
    }
    try:
        yield Client(suite, channels)
    finally:
        for channel in channels.values():
            await channel.close()
