"""Measures the memory of streams in flight, by hop, and of what policies keep by dependency."""

import argparse
import asyncio
import gc
import importlib
import json
import os
import random
import sys
import tracemalloc
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvloop

from benchmarks.processes import ChainError, Processes, resident_mib
from benchmarks.targets import Target
from services.runtime.call import Call, Callee, CallLimits
from services.runtime.clock import MonotonicClock
from services.runtime.config import load_config
from services.runtime.errors import DependencyFailedError, Origin, SixhopError
from services.runtime.launch import GRPC_EXPERIMENTS
from services.runtime.outgoing import Outgoing, own_work
from services.runtime.stack import client_policies, client_stack
from services.runtime.statistics import Activity
from services.runtime.telemetry import configure_logging
from services.runtime.topology import DOMAIN, HOPS, TOOL

DEPENDENCIES = 100
CALLS = 300
"""So many calls of each fill every window and every list of lengths."""
FAILED_EVERY = 20
SETTINGS = {
    "SIXHOP_LIMIT__MAX_INFLIGHT": "4096",
    "SIXHOP_BULKHEAD__CORE": '{"permits": 4096, "max_queued": 4096}',
    "SIXHOP_BULKHEAD__DATA": '{"permits": 4096, "max_queued": 4096}',
    **{f"SIXHOP_CALLS__{hop.upper()}__READ_TIMEOUT_S": "60" for hop in HOPS[1:]},
}
"""A thousand streams are let in, and may be quiet until all of them are there."""
DEPENDENCY_TARGET = Target("policies, of one dependency", 20, at_least=False)
STREAM_TARGET = Target("a stream in flight, of the hop that holds most", 60, at_least=False)


@dataclass(frozen=True, slots=True)
class Held:
    """Tells what streams in flight hold."""

    bare_kib: list[float]
    """KiB of one stream in each hop of the plain chain, from the client inwards."""
    ours_kib: list[float]
    """The same of ours, with the policy engine on."""


def dependency_kib() -> float:
    """Return the KiB that the policies of a client keep for one dependency, once all is full."""
    config = load_config(
        Path(os.devnull),
        {"SIXHOP_ENGINE__ENABLED": "true", "SIXHOP_RETRY__INITIAL_BACKOFF_S": "0"},
    )
    clock = MonotonicClock()
    configure_logging(DOMAIN, "benchmark", "error", clock)
    policies = client_policies(config, clock, random.Random(1), lambda change: None)
    stack = client_stack(clock, Activity(), policies)
    outgoing = Outgoing(DOMAIN, TOOL, CallLimits(step_timeout_s=5.0), stack, clock)

    async def call_all(prefix: str, count: int) -> None:
        callees = [Callee(key=f"{prefix}/{number}", idempotent=True) for number in range(count)]
        for number in range(CALLS):
            for callee in callees:
                await _call(outgoing, callee, clock, fails=number % FAILED_EVERY == 0)

    async def measured() -> float:
        await call_all("warm", 1)
        gc.collect()
        tracemalloc.start()
        before, _ = tracemalloc.get_traced_memory()
        await call_all("tool", DEPENDENCIES)
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return (after - before) / DEPENDENCIES / 1024

    return asyncio.run(measured())


async def _call(outgoing: Outgoing, callee: Callee, clock: MonotonicClock, *, fails: bool) -> None:
    async def send(call: Call) -> None:
        if fails:
            origin = Origin(TOOL, code="UNAVAILABLE", reason="SELF_UNAVAILABLE")
            raise DependencyFailedError(TOOL, "as it is told", cause="told", origin=origin)

    with own_work(DOMAIN, "Measure", 10.0, clock):
        try:
            await outgoing.unary("ExecuteTool", send, callee=callee)
        except SixhopError:
            # A failure, or the refusal of a breaker that has opened.
            return


async def streams_kib(count: int) -> Held:
    """Return what so many quiet streams hold in each hop of both chains."""
    # Imported here because grpc reads the environment when it is imported.
    chain: Any = importlib.import_module("benchmarks.load").Chain
    with Processes() as processes:
        async with chain.start_bare(processes) as bare:
            bare_kib = await _hold(bare, count)
        async with chain.start_ours(processes, engine=True, settings=SETTINGS) as ours:
            ours_kib = await _hold(ours, count)
    return Held(bare_kib, ours_kib)


async def _hold(chain: Any, count: int) -> list[float]:
    async with chain.quiet_streams(count // 20):
        pass
    before = [resident_mib(pid) for pid in chain.pids]
    async with chain.quiet_streams(count):
        after = [resident_mib(pid) for pid in chain.pids]
    return [1024 * (now - then) / count for now, then in zip(after, before, strict=True)]


def verdicts(dependency: float, held: Held) -> Sequence[tuple[bool, str]]:
    """Return each promise with whether it is kept."""
    return [
        DEPENDENCY_TARGET.judge(dependency, " KiB"),
        STREAM_TARGET.judge(max(held.ours_kib), " KiB"),
    ]


def main() -> int:
    """Measure as the command line says; return 1 when a promise is broken."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.footprint", description=__doc__)
    parser.add_argument("--streams", type=int, default=1000, help="streams in flight at once")
    parser.add_argument("--json", action="store_true", help="print JSON instead")
    arguments = parser.parse_args()
    os.environ["GRPC_EXPERIMENTS"] = GRPC_EXPERIMENTS
    os.environ["GRPC_VERBOSITY"] = "ERROR"
    try:
        dependency, held = dependency_kib(), uvloop.run(streams_kib(arguments.streams))
    except ChainError as error:
        print(error, file=sys.stderr)
        return 1
    judged = verdicts(dependency, held)
    if arguments.json:
        told = {"dependency_kib": dependency, "bare_kib": held.bare_kib, "ours_kib": held.ours_kib}
        print(json.dumps({**told, "verdicts": [line for _, line in judged]}, ensure_ascii=False))
    else:
        print(f"KiB of one of {arguments.streams} streams" + "".join(f"{hop:>10}" for hop in HOPS))
        for name, kib in (("plain gRPC", held.bare_kib), ("with every policy", held.ours_kib)):
            print(f"  {name:<28}" + "".join(f"{value:>10.1f}" for value in kib))
        print("\n" + "\n".join(line for _, line in judged))
    return 0 if all(kept for kept, _ in judged) else 1


if __name__ == "__main__":
    sys.exit(main())
