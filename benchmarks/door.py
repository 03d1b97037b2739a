"""Compares the HTTP door with the gRPC door, and with a bare proxy that makes one gRPC call."""

import argparse
import asyncio
import importlib
import json
import os
import random
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from typing import Any

import aiohttp
import uvloop

from benchmarks.processes import ChainError, Processes, cpu_s, free_ports, resident_mib
from benchmarks.targets import Target
from services.runtime.launch import GRPC_EXPERIMENTS

CHUNK_COUNT = 30
CONCURRENCY = 8
START_TIMEOUT_S = 30.0
TICKING = "ticking"
SETTLE_S = 8.0
LOOK_S = 20.0
LOOK_EVERY_S = 0.05
_QUESTION = "q" * 440

REQUEST_TARGET = Target("CPU per request of the HTTP door against the bare proxy", 1.5, False)
EVENT_TARGET = Target("CPU per streamed event of the HTTP door against the bare proxy", 1.5, False)
MEMORY_TARGET = Target("memory per open stream", 60, False)
LAG_TARGET = Target("event loop lag, p99", 50, False)

KINDS, DOORS = ("request", "stream"), ("http", "grpc", "bare")

Load = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Holds what many open streams showed."""

    stream_count: int
    kib_per_stream: float
    lag_p99_ms: float
    core_percent: float
    """Which part of a core the gateway used."""


class Doors:
    """Is the gateway with both doors, and the bare proxy, before one routing hop."""

    def __init__(self, processes: Processes) -> None:
        """Start them."""
        # Imported late because grpc reads the environment when it is imported.
        self._grpc: Any = importlib.import_module("grpc")
        self._messages: Any = importlib.import_module("sixhop.gateway.v1.gateway_pb2")
        self._runs: Any = importlib.import_module("sixhop.type.v1.run_pb2")
        self._services: Any = importlib.import_module("sixhop.gateway.v1.gateway_pb2_grpc")
        routing, gateway, http, proxy = free_ports(4)
        processes.start("routing", ["-m", "benchmarks.bare_door", "routing", str(routing)], {})
        environ = {
            "SIXHOP_GATEWAY__PORT": str(gateway),
            "SIXHOP_GATEWAY__HTTP_PORT": str(http),
            "SIXHOP_ROUTING__PORT": str(routing),
            # What is measured must not be refused.
            "SIXHOP_BULKHEAD__CORE": '{"permits": 4096, "max_queued": 4096}',
            "SIXHOP_LIMIT__MAX_INFLIGHT": "4096",
        }
        self.gateway = processes.start("gateway", ["-m", "gateway"], environ)
        arguments = ["-m", "benchmarks.bare_door", "proxy", str(proxy), str(routing)]
        self.proxy = processes.start("proxy", arguments, {})
        self.http, self._proxy = f"http://127.0.0.1:{http}", f"http://127.0.0.1:{proxy}"
        self._grpc_address = f"127.0.0.1:{gateway}"
        self._processes = processes

    @asynccontextmanager
    async def connected(self) -> AsyncIterator["Doors"]:
        """Connect to all of them, and wait until each answers.

        Raises:
            ChainError: one does not in time.
        """
        connector = aiohttp.TCPConnector(limit=0)
        async with (
            aiohttp.ClientSession(connector=connector) as self._session,
            self._grpc.aio.insecure_channel(self._grpc_address) as channel,
        ):
            self._stub = self._services.GatewayServiceStub(channel)
            for load, _ in self.loads().values():
                await self._answering(load)
            yield self

    def loads(self) -> Mapping[str, tuple[Load, int]]:
        """Return what can be asked, by name, each with the process that is looked at."""
        return {
            "http request": (lambda: self._complete(self.http, stream=False), self.gateway),
            "grpc request": (self._ask, self.gateway),
            "bare request": (lambda: self._complete(self._proxy, stream=False), self.proxy),
            "http stream": (lambda: self._complete(self.http, stream=True), self.gateway),
            "grpc stream": (self._run, self.gateway),
            "bare stream": (lambda: self._complete(self._proxy, stream=True), self.proxy),
        }

    async def lag_s(self) -> float:
        """Return how late the gateway's event loop was last, seconds."""
        async with self._session.get(f"{self.http}/metrics") as answer:
            text = await answer.text()
        (line,) = [each for each in text.splitlines() if each.startswith("sixhop_event_loop_lag")]
        return float(line.split()[-1])

    async def read_ticking(self, opened: asyncio.Semaphore) -> None:
        """Open a stream that says a word each second, and read all of it."""
        async with opened:
            answer = await self._session.post(
                f"{self.http}/v1/chat/completions", json=_body(TICKING, stream=True)
            )
        async with answer:
            if answer.status != 200:
                raise ChainError(await answer.text())
            async for _ in answer.content.iter_any():
                pass

    async def _answering(self, load: Load) -> None:
        until = time.monotonic() + START_TIMEOUT_S
        while True:
            try:
                return await load()
            except (ChainError, aiohttp.ClientError, self._grpc.aio.AioRpcError) as error:
                complaints = self._processes.complaints()
                if complaints or time.monotonic() > until:
                    raise ChainError(f"no answer: {error}\n{complaints}") from None
                await asyncio.sleep(0.05)

    async def _complete(self, url: str, *, stream: bool) -> None:
        body = _body("chat", stream=stream)
        async with self._session.post(f"{url}/v1/chat/completions", json=body) as answer:
            content = await answer.read()
            if answer.status != 200 or (stream and not content.endswith(b"data: [DONE]\n\n")):
                raise ChainError(content.decode())

    async def _ask(self) -> None:
        question = self._runs.Question(text=_QUESTION)
        await self._stub.Ask(self._messages.AskRequest(question=question, agent="chat"), timeout=30)

    async def _run(self) -> None:
        question = self._runs.Question(text=_QUESTION)
        request = self._messages.RunRequest(question=question, agent="chat")
        async for _ in self._stub.Run(request, timeout=30):
            pass


def _body(agent: str, *, stream: bool) -> dict[str, Any]:
    return {
        "model": agent,
        "stream": stream,
        "messages": [{"role": "user", "content": _QUESTION}],
    }


async def cpu_ms(load: Load, pid: int, length_s: float) -> float:
    """Return the CPU time of a process for each load, milliseconds."""
    until, count = time.monotonic() + length_s, 0

    async def ask() -> None:
        nonlocal count
        while time.monotonic() < until:
            await load()
            count += 1

    before = cpu_s([pid])
    await asyncio.gather(*(ask() for _ in range(CONCURRENCY)))
    return 1000 * (cpu_s([pid]) - before) / count


async def hold(doors: Doors, stream_count: int) -> Held:
    """Open so many streams that each say a word a second, and look at the gateway meanwhile."""
    idle_mib, opened = resident_mib(doors.gateway), asyncio.Semaphore(50)
    streams = [asyncio.create_task(doors.read_ticking(opened)) for _ in range(stream_count)]
    await asyncio.sleep(SETTLE_S)
    used_s, began, lags = cpu_s([doors.gateway]), time.monotonic(), []
    while time.monotonic() - began < LOOK_S:
        lags.append(await doors.lag_s())
        await asyncio.sleep(LOOK_EVERY_S)
    length_s = time.monotonic() - began
    found = Held(
        stream_count=stream_count,
        kib_per_stream=1024 * (resident_mib(doors.gateway) - idle_mib) / stream_count,
        lag_p99_ms=1000 * sorted(lags)[round(0.99 * (len(lags) - 1))],
        core_percent=100 * (cpu_s([doors.gateway]) - used_s) / length_s,
    )
    for ended in [each for each in streams if each.done()]:
        ended.result()
    for each in streams:
        each.cancel()
    await asyncio.wait(streams)
    return found


async def measure(
    starts: int, rounds: int, length_s: float, stream_count: int
) -> tuple[dict[str, list[float]], Held]:
    """Measure every door in turn, with processes that are started anew; hold streams at the end.

    Where the memory of a process comes to lie moves its ratio by some hundredths, for as long as it
    runs: no number of rounds shows that.
    """
    found: dict[str, list[float]] = {}
    rng = random.Random(1)
    for left in reversed(range(starts)):
        with Processes() as processes:
            async with Doors(processes).connected() as doors:
                for _ in range(rounds):
                    # What is compared follows each other at once, in short windows: a machine that
                    # shares its caches is half as fast again from one moment to another.
                    for kind in KINDS:
                        for door in rng.sample(DOORS, len(DOORS)):
                            name = f"{door} {kind}"
                            load, pid = doors.loads()[name]
                            found.setdefault(name, []).append(await cpu_ms(load, pid, length_s))
                    print(".", end="", file=sys.stderr, flush=True)
                if not left:
                    print(file=sys.stderr)
                    return found, await hold(doors, stream_count)
    raise ValueError("nothing was to be started")


def report(found: Mapping[str, Sequence[float]], held: Held) -> bool:
    """Print a table and the verdicts; return whether every target was met."""
    for name, values in found.items():
        print(f"{name:<14} {statistics.median(values):7.3f} ms of CPU")
    kept = []
    for target, kind in ((REQUEST_TARGET, "request"), (EVENT_TARGET, "stream")):
        pairs = zip(found[f"http {kind}"], found[f"bare {kind}"], strict=True)
        kept.append(target.judge(statistics.median(ours / bare for ours, bare in pairs), "×"))
    per_event = 1000 * statistics.median(found["http stream"]) / (CHUNK_COUNT + 2)
    print(f"one streamed event over HTTP: {per_event:.0f} µs of CPU")
    print(f"{held.stream_count} streams of a word a second: {held.core_percent:.0f} % of a core")
    kept.append(MEMORY_TARGET.judge(held.kib_per_stream, " KiB"))
    kept.append(LAG_TARGET.judge(held.lag_p99_ms, " ms"))
    for _, line in kept:
        print(line)
    return all(good for good, _ in kept)


def main() -> int:
    """Measure and judge."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.door", description=__doc__)
    parser.add_argument("--starts", type=int, default=4, help="how often all is started")
    parser.add_argument("--rounds", type=int, default=5, help="windows per load and start")
    parser.add_argument("--seconds", type=float, default=0.7, help="of one window")
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    os.environ["GRPC_EXPERIMENTS"] = GRPC_EXPERIMENTS
    found, held = uvloop.run(
        measure(arguments.starts, arguments.rounds, arguments.seconds, arguments.streams)
    )
    if arguments.json:
        print(json.dumps({"cpu_ms": found, "held": asdict(held)}))
        return 0
    return 0 if report(found, held) else 1


if __name__ == "__main__":
    sys.exit(main())
