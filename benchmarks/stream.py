"""Compares a model's stream through the suite with a bare grpc.aio relay of the same length."""

import argparse
import asyncio
import importlib
import json
import os
import statistics
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import uvloop

from benchmarks.decoding import microseconds_per_event
from benchmarks.processes import ChainError, Processes, cpu_s, free_ports
from benchmarks.targets import Target
from benchmarks.ticking import INTERVAL_S
from services.runtime.launch import GRPC_EXPERIMENTS
from services.runtime.topology import DOMAIN, GATEWAY, MODEL, MODEL_BACKUP, ROUTING

HOPS = (GATEWAY, ROUTING, DOMAIN, MODEL)
"""The hops that a model's words pass on their way to the client; the fifth is the provider's."""
START_TIMEOUT_S = 30.0
DEADLINE_S = 60.0
SETTLE_S = 1.5
ALONE_S = 1.0
PROBE_TOKENS = 2
PROBE_PAUSE_S = 0.05

RATIO_TARGET = Target("CPU per chunk of all hops against bare", 1.3, at_least=False)
CORE_TARGET = Target("share of a core of the busiest hop", 35, at_least=False)
ALONE_TARGET = Target("added time to the first token, alone, p50", 15, at_least=False)
FIRST_TARGET = Target("added time to the first token, beside the streams, p50", 15, at_least=False)
JOIN_TARGET = Target("added time to any token, p50", 40, at_least=False)
DECODER_TARGET = Target("decoder, saturated, per event", 15, at_least=False)


@dataclass(slots=True, kw_only=True)
class Seen:
    """Collects what a client sees; lengths in seconds."""

    tokens: int = 0
    chunks: int = 0
    added_s: list[float] = field(default_factory=list)
    """From the instant at which the provider sent a token to that at which it was here."""
    gaps_s: list[float] = field(default_factory=list)
    """Between two chunks of one stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Holds what one variant showed."""

    cpu_us_per_token: Mapping[str, float]
    """By hop."""
    cpu_us_per_chunk: float
    """Of all hops together."""
    core_ratio: Mapping[str, float]
    """Which part of one core each hop used."""
    chunks_per_second: float
    alone_p50_ms: float
    """From the question to the first token while nothing else happens; the provider takes none."""
    first_p50_ms: float
    """The same beside the streams."""
    first_p90_ms: float
    added_p50_ms: float
    """From the provider's sending of a token to its arrival; the joining of tokens included."""
    added_p99_ms: float
    gap_p99_ms: float
    """The longest pauses between two chunks."""


class Path:
    """Is one way to the provider: four processes and a client of the first."""

    def __init__(self, pids: Mapping[str, int], port: int, agent: str) -> None:
        """Take the processes by hop, the first one's port, and whom to ask for."""
        # Imported late because grpc reads the environment when it is imported.
        self._grpc: Any = importlib.import_module("grpc")
        self._messages: Any = importlib.import_module("sixhop.gateway.v1.gateway_pb2")
        self._runs: Any = importlib.import_module("sixhop.type.v1.run_pb2")
        self._services: Any = importlib.import_module("sixhop.gateway.v1.gateway_pb2_grpc")
        self.pids = pids
        self._port = port
        self._agent = agent

    @asynccontextmanager
    async def connected(self, processes: Processes) -> AsyncIterator["Path"]:
        """Connect, and wait until a whole answer comes.

        Raises:
            ChainError: none does in time.
        """
        options = [("grpc.max_reconnect_backoff_ms", 100)]
        address = f"127.0.0.1:{self._port}"
        async with self._grpc.aio.insecure_channel(address, options=options) as channel:
            self._stub = self._services.GatewayServiceStub(channel)
            until = time.monotonic() + START_TIMEOUT_S
            while True:
                try:
                    async for _ in self.run(PROBE_TOKENS, DEADLINE_S):
                        pass
                    break
                except self._grpc.aio.AioRpcError as error:
                    complaints = processes.complaints()
                    if complaints or time.monotonic() > until:
                        raise ChainError(f"no answer: {error.details()}\n{complaints}") from None
                    await asyncio.sleep(PROBE_PAUSE_S)
            yield self

    def run(self, tokens: int, deadline_s: float) -> AsyncIterator[Any]:
        """Ask for an answer of so many tokens."""
        question = self._runs.Question(text=f"Tick and say how many: {tokens}")
        request = self._messages.RunRequest(question=question, agent=self._agent)
        call: AsyncIterator[Any] = self._stub.Run(request, timeout=deadline_s)
        return call

    async def read(self, tokens: int, seen: Seen) -> float:
        """Read one answer of so many tokens; return how long its first token took, seconds."""
        began, first_s, last_at, count = time.monotonic(), 0.0, 0.0, 0
        async for response in self.run(tokens, DEADLINE_S):
            text = response.event.text_delta.text
            if not text:
                continue
            now = time.monotonic()
            if last_at:
                seen.gaps_s.append(now - last_at)
            first_s, last_at = first_s or now - began, now
            sent = [float(word) for word in text.split()]
            seen.added_s += [now - each for each in sent]
            seen.chunks += 1
            count += len(sent)
            seen.tokens += len(sent)
        if count != tokens:
            raise ChainError(f"{count} of {tokens} tokens came")
        return first_s

    async def measure(self, streams: int, length_s: float) -> Figures:
        """Hold so many streams, and look at them for a while once all flow."""
        seen = Seen()
        tokens = round((length_s + 2 * SETTLE_S + 1.0) / INTERVAL_S)
        alone_s = await self._probe(time.monotonic() + ALONE_S)
        async with asyncio.TaskGroup() as group:
            for number in range(streams):
                group.create_task(self._later(number * INTERVAL_S / streams, tokens, seen))
            await asyncio.sleep(SETTLE_S)
            before, began = self._cpu_s(), time.monotonic()
            seen.tokens = seen.chunks = 0
            seen.added_s.clear()
            seen.gaps_s.clear()
            firsts_s = await self._probe(began + length_s)
            elapsed_s = time.monotonic() - began
            used_s = {hop: after - before[hop] for hop, after in self._cpu_s().items()}
            return _figures(seen, alone_s, firsts_s, used_s, elapsed_s)

    async def _later(self, after_s: float, tokens: int, seen: Seen) -> None:
        await asyncio.sleep(after_s)
        await self.read(tokens, seen)

    async def _probe(self, until: float) -> list[float]:
        firsts_s = []
        while time.monotonic() < until:
            firsts_s.append(await self.read(PROBE_TOKENS, Seen()))
            await asyncio.sleep(PROBE_PAUSE_S)
        return firsts_s

    def _cpu_s(self) -> dict[str, float]:
        return {hop: cpu_s([pid]) for hop, pid in self.pids.items()}


def _figures(
    seen: Seen,
    alone_s: Sequence[float],
    firsts_s: Sequence[float],
    used_s: Mapping[str, float],
    elapsed_s: float,
) -> Figures:
    # Copied: the streams go on.
    added, gaps, firsts = sorted(seen.added_s), sorted(seen.gaps_s), sorted(firsts_s)
    return Figures(
        cpu_us_per_token={hop: 1e6 * used / seen.tokens for hop, used in used_s.items()},
        cpu_us_per_chunk=1e6 * sum(used_s.values()) / seen.chunks,
        core_ratio={hop: used / elapsed_s for hop, used in used_s.items()},
        chunks_per_second=seen.chunks / elapsed_s,
        alone_p50_ms=1000 * _at(sorted(alone_s), 0.5),
        first_p50_ms=1000 * _at(firsts, 0.5),
        first_p90_ms=1000 * _at(firsts, 0.9),
        added_p50_ms=1000 * _at(added, 0.5),
        added_p99_ms=1000 * _at(added, 0.99),
        gap_p99_ms=1000 * _at(gaps, 0.99),
    )


def _at(lengths: Sequence[float], ratio: float) -> float:
    return lengths[round(ratio * (len(lengths) - 1))]


def start_ours(processes: Processes, provider_port: int, second_port: int = 0) -> Path:
    """Start the suite's hops, with every policy on; with a second provider two model hops."""
    hops = (*HOPS, MODEL_BACKUP) if second_port else HOPS
    ports = dict(zip(hops, free_ports(len(hops)), strict=True))
    environ = {
        **{f"SIXHOP_{hop.upper()}__PORT": str(port) for hop, port in ports.items()},
        "SIXHOP_MODEL__BASE_URL": f"http://127.0.0.1:{provider_port}/v1",
        "SIXHOP_MODEL__MODEL": "ticking",
        "SIXHOP_MODEL__API_KEY": "none",
        **(_second(second_port) if second_port else {}),
        # The policies run, but must not refuse what is to be seen.
        "SIXHOP_BULKHEAD__CORE": '{"permits": 256, "max_queued": 256}',
        "SIXHOP_BREAKER__MODE": "observe",
    }
    commands = {hop: ["-m", GATEWAY if hop == GATEWAY else f"services.{hop}"] for hop in HOPS}
    commands[MODEL_BACKUP] = ["-m", f"services.{MODEL}", f"--as={MODEL_BACKUP}"]
    pids = {hop: processes.start(f"ours-{hop}", commands[hop], environ) for hop in reversed(hops)}
    return Path(pids, ports[GATEWAY], "chat")


def _second(port: int) -> Mapping[str, str]:
    return {
        "SIXHOP_MODEL_BACKUP__BASE_URL": f"http://127.0.0.1:{port}/v1",
        "SIXHOP_MODEL_BACKUP__MODEL": "ticking-too",
        "SIXHOP_MODEL_BACKUP__API_KEY": "none",
    }


def start_bare(processes: Processes, provider_port: int) -> Path:
    """Start as many processes that only pass on what comes."""
    ports = free_ports(len(HOPS))
    pids = {}
    for place, hop in enumerate(HOPS):
        last = place == len(HOPS) - 1
        module = "benchmarks.bare_stream" if last else "benchmarks.relay"
        following = provider_port if last else ports[place + 1]
        arguments = ["-m", module, str(ports[place]), str(following)]
        pids[hop] = processes.start(f"bare-{hop}", arguments, {})
    return Path(pids, ports[0], "")


async def measure(rounds: int, streams: int, length_s: float) -> dict[str, list[Figures]]:
    """Measure both ways in turn."""
    found: dict[str, list[Figures]] = {"ours": [], "bare": []}
    with Processes() as processes:
        (provider_port,) = free_ports(1)
        processes.start("provider", ["-m", "benchmarks.ticking", str(provider_port)], {})
        ours, bare = start_ours(processes, provider_port), start_bare(processes, provider_port)
        async with ours.connected(processes), bare.connected(processes):
            for number in range(rounds):
                for name, path in (("ours", ours), ("bare", bare)):
                    found[name].append(await path.measure(streams, length_s))
                print(f"\rround {number + 1} of {rounds}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return found


def middle(figures: Sequence[Figures], name: str, hop: str = "") -> float:
    """Return the median of one figure over the rounds."""
    values = [getattr(each, name) for each in figures]
    return float(statistics.median(value[hop] if hop else value for value in values))


def print_table(found: Mapping[str, Sequence[Figures]]) -> None:
    """Print the medians."""
    names = (
        "alone_p50_ms",
        "first_p50_ms",
        "first_p90_ms",
        "added_p50_ms",
        "added_p99_ms",
        "gap_p99_ms",
    )
    print(f"{'':<6}" + "".join(f"{name:>16}" for name in (*names, "chunks/s", "µs/chunk")))
    for variant, figures in found.items():
        cells = [
            middle(figures, name) for name in (*names, "chunks_per_second", "cpu_us_per_chunk")
        ]
        print(f"{variant:<6}" + "".join(f"{cell:>16.1f}" for cell in cells))
    print(f"\n{'µs of CPU per token':<22}" + "".join(f"{hop:>10}" for hop in HOPS))
    for variant, figures in found.items():
        cells = [middle(figures, "cpu_us_per_token", hop) for hop in HOPS]
        print(f"{variant:<22}" + "".join(f"{cell:>10.0f}" for cell in cells))
    print(f"\n{'% of one core':<22}" + "".join(f"{hop:>10}" for hop in HOPS))
    for variant, figures in found.items():
        cells = [100 * middle(figures, "core_ratio", hop) for hop in HOPS]
        print(f"{variant:<22}" + "".join(f"{cell:>10.1f}" for cell in cells))


def verdicts(found: Mapping[str, Sequence[Figures]], decoder_us: float) -> list[tuple[bool, str]]:
    """Return each promise with whether it is kept."""
    ours, bare = found["ours"], found["bare"]
    ratios = [
        mine.cpu_us_per_chunk / other.cpu_us_per_chunk
        for mine, other in zip(ours, bare, strict=True)
    ]
    busiest = max(middle(ours, "core_ratio", hop) for hop in HOPS)
    return [
        RATIO_TARGET.judge(statistics.median(ratios), "×"),
        CORE_TARGET.judge(100 * busiest, " %"),
        ALONE_TARGET.judge(middle(ours, "alone_p50_ms"), " ms"),
        FIRST_TARGET.judge(middle(ours, "first_p50_ms"), " ms"),
        JOIN_TARGET.judge(middle(ours, "added_p50_ms"), " ms"),
        DECODER_TARGET.judge(decoder_us, " µs"),
    ]


def main() -> int:
    """Measure as the command line says; return 1 when a promise is broken."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stream", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="windows per way")
    parser.add_argument("--streams", type=int, default=50, help="streams at a time")
    parser.add_argument("--length-s", type=float, default=3.0, help="how long a window lasts")
    parser.add_argument("--json", action="store_true", help="print everything as JSON instead")
    arguments = parser.parse_args()
    os.environ["GRPC_EXPERIMENTS"] = GRPC_EXPERIMENTS
    os.environ["GRPC_VERBOSITY"] = "ERROR"
    try:
        found = uvloop.run(measure(arguments.rounds, arguments.streams, arguments.length_s))
    except (ChainError, ExceptionGroup) as error:
        print(error, file=sys.stderr)
        return 1
    judged = verdicts(found, uvloop.run(microseconds_per_event()))
    if arguments.json:
        data = {name: [asdict(each) for each in figures] for name, figures in found.items()}
        lines = [line for _, line in judged]
        print(json.dumps(data | {"verdicts": lines}, ensure_ascii=False, indent=1))
    else:
        print_table(found)
        print("\n" + "\n".join(line for _, line in judged))
    return 0 if all(kept for kept, _ in judged) else 1


if __name__ == "__main__":
    sys.exit(main())
