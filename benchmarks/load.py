"""Puts load on a chain of hops and measures what the client sees and what the hops use."""

import asyncio
import os
import signal
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Self

import grpc

from benchmarks.processes import ChainError, Processes, cpu_s, free_ports
from benchmarks.relay import CHUNK_COUNT, ENDLESS
from services.runtime.topology import HOPS
from sixhop.gateway.v1 import gateway_pb2
from sixhop.gateway.v1.gateway_pb2_grpc import GatewayServiceStub
from sixhop.runtime.v1 import runtime_pb2
from sixhop.runtime.v1.runtime_pb2_grpc import RuntimeServiceStub
from sixhop.type.v1 import run_pb2

START_TIMEOUT_S = 30.0
CALL_TIMEOUT_S = 10.0
QUIET_TIMEOUT_S = 110.0
SETTLE_S = 1.0
OPENED_AT_ONCE = 50
WARM_UP_S = 0.1
_QUESTION = run_pb2.Question(text="q" * 440)
_ASK = gateway_pb2.AskRequest(question=_QUESTION)
_RUN = gateway_pb2.RunRequest(question=_QUESTION)
_RUN_ENDLESSLY = gateway_pb2.RunRequest(question=_QUESTION, agent=ENDLESS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Holds what one window of load showed."""

    p50_ms: float
    """The median latency that the client saw."""
    p99_ms: float
    rps: float
    """Calls per second."""
    cpu_ms: float
    """CPU time of all hops per call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """Holds what happened with calls whose last hop stood still; lengths in milliseconds."""

    answered_p50_ms: float
    """The median time until the client had its answer, an error."""
    answered_max_ms: float
    overshoot_ms: float
    """How far the latest answer lay behind the client's deadline; 0 when none did."""
    free_ms: float
    """How long after the latest answer the last of the other hops was free of these calls."""


class Chain:
    """Is five hops and a client of the first."""

    def __init__(
        self, name: str, processes: Processes, pids: Sequence[int], ports: Sequence[int]
    ) -> None:
        """Take the processes, from the client inwards."""
        self.name = name
        self._processes = processes
        self.pids = pids
        """The processes, from the client inwards."""
        self._ports = ports
        self._exits = AsyncExitStack()
        self._channels: list[grpc.aio.Channel] = []

    @classmethod
    def start_ours(
        cls, processes: Processes, *, engine: bool, settings: Mapping[str, str] | None = None
    ) -> Self:
        """Start the chain that runs on our runtime, with the policy engine or without it.

        Args:
            processes: owns what is started.
            engine: whether the policies are on.
            settings: over those of the benchmarks.
        """
        ports = free_ports(len(HOPS))
        environ = {
            **{
                f"SIXHOP_{hop.upper()}__PORT": str(port)
                for hop, port in zip(HOPS, ports, strict=True)
            },
            # The policies run, but must not end what the benchmark wants to see: more calls at once
            # than a tool's group takes, and a callee that is stopped on purpose.
            "SIXHOP_ENGINE__ENABLED": str(engine).lower(),
            "SIXHOP_BULKHEAD__DATA": '{"permits": 256, "max_queued": 256}',
            "SIXHOP_BULKHEAD__CORE": '{"permits": 256, "max_queued": 256}',
            "SIXHOP_BREAKER__MODE": "observe",
            **(settings or {}),
        }
        pids = []
        for hop in HOPS:
            code = (
                f"from services.runtime.launch import launch; launch({hop!r}, "
                "'benchmarks.relay:open_hop', 'services.runtime.config:HopSettings')"
            )
            pids.append(processes.start(f"ours-{hop}", ["-c", code], environ))
        return cls("ours", processes, pids, ports)

    @classmethod
    def start_bare(cls, processes: Processes) -> Self:
        """Start the chain that is plain grpc.aio, on the same loop and engine."""
        ports = free_ports(len(HOPS))
        pids = [
            processes.start(
                f"bare-{place}", ["-m", "benchmarks.relay", str(port), str(following)], {}
            )
            for place, (port, following) in enumerate(zip(ports, [*ports[1:], 0], strict=True))
        ]
        return cls("bare", processes, pids, ports)

    async def __aenter__(self) -> Self:
        """Connect to every hop, and wait until the whole chain answers.

        Raises:
            ChainError: it does not.
        """
        for port in self._ports:
            channel = grpc.aio.insecure_channel(
                f"127.0.0.1:{port}", options=[("grpc.max_reconnect_backoff_ms", 100)]
            )
            self._channels.append(await self._exits.enter_async_context(channel))
        for channel in reversed(self._channels):
            await self._wait_until_answered(channel)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Disconnect."""
        await self._exits.aclose()

    async def _wait_until_answered(self, channel: grpc.aio.Channel) -> None:
        until = time.perf_counter() + START_TIMEOUT_S
        while True:
            try:
                await GatewayServiceStub(channel).Ask(_ASK, timeout=1.0, wait_for_ready=True)
            except grpc.aio.AioRpcError as error:
                complaints = self._processes.complaints()
                if complaints or time.perf_counter() > until:
                    await self._exits.aclose()
                    raise ChainError(
                        f"{self.name} does not answer: {error.details()}\n{complaints}"
                    ) from None
            else:
                return

    async def unary(self, concurrency: int, length_s: float) -> Window:
        """Measure unary calls, this many at a time."""
        stub = GatewayServiceStub(self._channels[0])

        async def call() -> None:
            await stub.Ask(_ASK, timeout=CALL_TIMEOUT_S)

        return await self._window(call, concurrency, length_s)

    async def stream(self, concurrency: int, length_s: float) -> Window:
        """Measure whole streams, this many at a time."""
        stub = GatewayServiceStub(self._channels[0])

        async def call() -> None:
            count = 0
            async for _ in stub.Run(_RUN, timeout=CALL_TIMEOUT_S):
                count += 1
            if count != CHUNK_COUNT:
                raise ChainError(f"{self.name} lost chunks: {count} of {CHUNK_COUNT} came")

        return await self._window(call, concurrency, length_s)

    @asynccontextmanager
    async def quiet_streams(self, count: int) -> AsyncIterator[None]:
        """Hold so many streams that have said all their chunks, while the block runs."""
        stub = GatewayServiceStub(self._channels[0])
        calls: list[Any] = []
        try:
            while len(calls) < count:
                few = [
                    stub.Run(_RUN_ENDLESSLY, timeout=QUIET_TIMEOUT_S)
                    for _ in range(min(OPENED_AT_ONCE, count - len(calls)))
                ]
                calls += few
                await asyncio.gather(*map(_read_chunks, few))
            yield
        finally:
            for call in calls:
                call.cancel()
            # The plain chain cannot be asked whether it is free.
            await asyncio.sleep(SETTLE_S)

    async def _window(
        self, call: Callable[[], Awaitable[None]], concurrency: int, length_s: float
    ) -> Window:
        await _repeat(call, concurrency, WARM_UP_S)
        cpu_before_s, began = cpu_s(self.pids), time.perf_counter()
        latencies_s = await _repeat(call, concurrency, length_s)
        elapsed_s = time.perf_counter() - began
        used_s = cpu_s(self.pids) - cpu_before_s
        latencies_s.sort()
        return Window(
            p50_ms=1000 * statistics.median(latencies_s),
            p99_ms=1000 * latencies_s[round(0.99 * (len(latencies_s) - 1))],
            rps=len(latencies_s) / elapsed_s,
            cpu_ms=1000 * used_s / len(latencies_s),
        )

    async def unary_with_last_hop_stopped(self, concurrency: int, deadline_s: float) -> Stopped:
        """Stop the last hop, then make unary calls."""
        stub = GatewayServiceStub(self._channels[0])

        async def call() -> None:
            await stub.Ask(_ASK, timeout=deadline_s)

        self._signal_last(signal.SIGSTOP)
        return await self._until_free([call] * concurrency, deadline_s)

    async def stream_with_last_hop_stopped(self, concurrency: int, deadline_s: float) -> Stopped:
        """Start streams, stop the last hop when all of them flow, then read on."""
        stub = GatewayServiceStub(self._channels[0])
        began = time.perf_counter()
        calls: list[Any] = [
            stub.Run(_RUN_ENDLESSLY, timeout=deadline_s) for _ in range(concurrency)
        ]
        await asyncio.gather(*(call.read() for call in calls))
        self._signal_last(signal.SIGSTOP)

        def rest(call: Any) -> Callable[[], Awaitable[None]]:
            async def read() -> None:
                while await call.read() is not grpc.aio.EOF:
                    pass

            return read

        return await self._until_free([rest(call) for call in calls], deadline_s, began)

    async def _until_free(
        self,
        calls: Sequence[Callable[[], Awaitable[None]]],
        deadline_s: float,
        began: float | None = None,
    ) -> Stopped:
        began = time.perf_counter() if began is None else began

        async def answered(call: Callable[[], Awaitable[None]]) -> float:
            try:
                await call()
            except grpc.aio.AioRpcError:
                return time.perf_counter()
            raise ChainError("a call was answered though the last hop stood still")

        try:
            answers = sorted(await asyncio.gather(*(answered(call) for call in calls)))
            free_at = await self._wait_until_free(self._channels[:-1])
        finally:
            self._signal_last(signal.SIGCONT)
        await self._wait_until_free(self._channels)
        return Stopped(
            answered_p50_ms=1000 * (statistics.median(answers) - began),
            answered_max_ms=1000 * (answers[-1] - began),
            overshoot_ms=1000 * max(0.0, answers[-1] - began - deadline_s),
            free_ms=1000 * (free_at - answers[-1]),
        )

    async def _wait_until_free(self, channels: Sequence[grpc.aio.Channel]) -> float:
        request = runtime_pb2.GetSnapshotRequest()
        async with asyncio.timeout(CALL_TIMEOUT_S):
            for channel in channels:
                stub = RuntimeServiceStub(channel)
                busy = 1
                while busy:
                    state = await stub.GetSnapshot(request, timeout=CALL_TIMEOUT_S)
                    busy = state.inflight_count + state.outgoing_count + state.task_count
        return time.perf_counter()

    def _signal_last(self, number: signal.Signals) -> None:
        os.kill(self.pids[-1], number)


async def _read_chunks(call: Any) -> None:
    for _ in range(CHUNK_COUNT):
        if await call.read() is grpc.aio.EOF:
            raise ChainError("a stream ended before all streams were there")


async def _repeat(
    call: Callable[[], Awaitable[None]], concurrency: int, length_s: float
) -> list[float]:
    until = time.perf_counter() + length_s
    latencies_s: list[float] = []

    async def work() -> None:
        while (began := time.perf_counter()) < until:
            await call()
            latencies_s.append(time.perf_counter() - began)

    async with asyncio.TaskGroup() as group:
        for _ in range(concurrency):
            group.create_task(work())
    return latencies_s
