"""Measures what one run of each shipped agent costs: CPU by hop, calls, events, Redis commands.

`python -m benchmarks.run_cost` starts a suite with a simulated provider and a Redis, and takes
two minutes. `sixhop plan` has its defaults from it: what costs more or less there than here is
told to it by its options.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import grpc
from redis import Redis

from benchmarks.outage import Simulator
from benchmarks.processes import ChainError, Processes, cpu_s, free_ports, resident_mib
from services.runtime.topology import GATEWAY, HOPS
from sixhop.gateway.v1 import gateway_pb2
from sixhop.gateway.v1.gateway_pb2_grpc import GatewayServiceStub
from sixhop.type.v1 import run_pb2
from tests.redis_server import running_redis

QUESTIONS = {
    "chat": "Why is the sky blue?",
    "research": "What is your return policy?",
    "orders": "Where is order SO-10020?",
    "reports": "Which category grew most last quarter?",
}
"""A question for each shipped agent; routing finds the agent by it, as it does for users."""
START_TIMEOUT_S = 60.0
DEADLINE_S = 30.0
QUIET_S = 5.0
POLL_S = 0.2
_COUNTED = "cmdstat_"
_OWN = frozenset({"info", "config|resetstat", "client|setinfo", "hello", "select", "ping"})
"""What connecting and looking cost; runs do not."""


@dataclass(slots=True)
class Cost:
    """Sums up what the runs of one agent have cost."""

    run_count: int = 0
    length_s: float = 0.0
    cpu_s: dict[str, float] = field(default_factory=dict)
    events: Counter[str] = field(default_factory=Counter)
    commands: Counter[str] = field(default_factory=Counter)
    model_count: int = 0

    def print_lines(self, agent: str) -> None:
        """Print all of it, by run."""
        count = self.run_count
        cpu = ", ".join(f"{hop} {1e3 * used / count:.1f}" for hop, used in self.cpu_s.items())
        print(f"{agent}: {count} runs, mean {self.length_s / count:.2f} s")
        print(f"  CPU ms: {cpu}; together {1e3 * sum(self.cpu_s.values()) / count:.1f}")
        print(f"  calls: tool {self.events['step_finished'] / count:.2f} steps", end=", ")
        print(f"model {self.model_count / count:.2f}")
        print(f"  events: {sum(self.events.values()) / count:.1f} {dict(self.events)}")
        told = {name: round(calls / count, 2) for name, calls in self.commands.items()}
        print(f"  Redis: {sum(self.commands.values()) / count:.2f} commands {told}")


def start(processes: Processes, redis_url: str) -> tuple[str, Simulator, Mapping[str, int]]:
    """Start the provider and every hop; return where the gateway is, the provider, and the pids."""
    port, control = free_ports(2)
    sim = {"PORT": port, "CONTROL_PORT": control, "SEED": 7, "TTFT_MEDIAN_S": 0.1}
    environ = {f"SIXHOP_SIM__{key}": str(value) for key, value in sim.items()}
    processes.start("sim", ["-m", "services.model.sim"], environ)
    ports = dict(zip(HOPS, free_ports(len(HOPS)), strict=True))
    environ = {f"SIXHOP_{name.upper()}__PORT": str(port) for name, port in ports.items()} | {
        "SIXHOP_MODEL__BASE_URL": f"http://127.0.0.1:{port}/v1",
        "SIXHOP_MODEL__MODEL": "sim-large",
        "SIXHOP_MODEL__API_KEY": "none",
        "SIXHOP_GATEWAY__OPEN": "true",
        "SIXHOP_GATEWAY__RUNS__REDIS_URL": redis_url,
        "SIXHOP_GATEWAY__QUOTA_REDIS_URL": redis_url,
        "SIXHOP_TENANTS__DEFAULT__REQUESTS_PER_MINUTE": "1000000",
        "SIXHOP_TENANTS__DEFAULT__TOKENS_PER_MINUTE": "1000000000",
    }
    pids = {
        name: processes.start(
            name, ["-m", name if name == GATEWAY else f"services.{name}"], environ
        )
        for name in reversed(HOPS)
    }
    return f"127.0.0.1:{ports[GATEWAY]}", Simulator(control), {name: pids[name] for name in HOPS}


@dataclass(frozen=True, slots=True)
class Suite:
    """Is all that runs."""

    gateway: GatewayServiceStub
    provider: Simulator
    pids: Mapping[str, int]
    redis: Redis

    async def cost(self, question: str, count: int, concurrency: int) -> Cost:
        """Ask a question so many times, so many at a time."""
        for _ in range(3):
            await self._ask(question, Cost())
        await asyncio.sleep(QUIET_S / 10)
        cost = Cost()
        self.redis.config_resetstat()
        asked = len(self.provider.log())
        before = {hop: cpu_s([pid]) for hop, pid in self.pids.items()}
        gate = asyncio.Semaphore(concurrency)

        async def one() -> None:
            async with gate:
                await self._ask(question, cost)

        await asyncio.gather(*(one() for _ in range(count)))
        cost.cpu_s = {hop: cpu_s([pid]) - before[hop] for hop, pid in self.pids.items()}
        await asyncio.sleep(QUIET_S / 10)
        cost.commands = self._commands()
        cost.model_count = len(self.provider.log()) - asked
        return cost

    async def idle(self) -> dict[str, float]:
        """Return what each hop uses of a core, percent, while nobody asks."""
        before = {hop: cpu_s([pid]) for hop, pid in self.pids.items()}
        await asyncio.sleep(QUIET_S)
        return {hop: 100 * (cpu_s([pid]) - before[hop]) / QUIET_S for hop, pid in self.pids.items()}

    async def _ask(self, question: str, cost: Cost) -> None:
        request = gateway_pb2.RunRequest(question=run_pb2.Question(text=question, language="en"))
        began = time.monotonic()
        async for response in self.gateway.Run(request, timeout=DEADLINE_S):
            cost.events[str(response.event.WhichOneof("event"))] += 1
        cost.length_s += time.monotonic() - began
        cost.run_count += 1

    def kept(self) -> dict[str, float]:
        """Return the KiB that Redis keeps of one run, by kind of key, all agents together."""
        kib: defaultdict[str, float] = defaultdict(float)
        names = [os.fsdecode(key) for key in self.redis.scan_iter(match="sixhop:runs:*")]
        for name in names:
            kib[name.split(":")[3]] += (self.redis.memory_usage(name) or 0) / 1024
        runs = sum(":run:" in name for name in names)
        return {kind: round(size / runs, 1) for kind, size in sorted(kib.items())}

    def _commands(self) -> Counter[str]:
        stats: Mapping[str, Mapping[str, int]] = self.redis.info("commandstats")
        told = {name.removeprefix(_COUNTED): each["calls"] for name, each in stats.items()}
        return Counter({name: calls for name, calls in told.items() if name not in _OWN})


async def measure(count: int, concurrency: int) -> None:
    """Measure every agent, and what the hops hold and use by themselves."""
    with (
        tempfile.TemporaryDirectory() as folder,
        running_redis(Path(folder)) as server,
        Processes() as processes,
    ):
        address, provider, pids = start(processes, server.url)
        async with grpc.aio.insecure_channel(address) as channel:
            await _until_all_serve(processes)
            with Redis.from_url(server.url) as redis:
                suite = Suite(GatewayServiceStub(channel), provider, pids, redis)
                idle = await suite.idle()
                for agent, question in QUESTIONS.items():
                    (await suite.cost(question, count, concurrency)).print_lines(agent)
                held = {hop: resident_mib(pid) for hop, pid in pids.items()}
                kept = suite.kept()
        print("idle, % of a core:", {hop: round(used, 1) for hop, used in idle.items()})
        print("Redis keeps of a run, KiB:", kept)
        print("resident MiB:", {hop: round(size) for hop, size in held.items()})


async def _until_all_serve(processes: Processes) -> None:
    until = time.monotonic() + START_TIMEOUT_S
    for name in HOPS:
        while not all(word in processes.output(name) for word in ("hop_ready", "hop_serving")):
            if time.monotonic() > until:
                raise ChainError(f"{name} does not serve: {processes.complaints()}")
            await asyncio.sleep(POLL_S)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run_cost", description=__doc__)
    parser.add_argument("--runs", type=int, default=60, help="runs of each agent")
    parser.add_argument("--concurrency", type=int, default=4, help="runs at a time")
    options = parser.parse_args()
    asyncio.run(measure(options.runs, options.concurrency))
    return 0


if __name__ == "__main__":
    sys.exit(main())
