"""Measures how soon a second model's text follows a first one that breaks off in the middle."""

import argparse
import importlib
import os
import statistics
import sys
import time
from typing import Any

import uvloop

from benchmarks.processes import ChainError, Processes, free_ports
from benchmarks.stream import DEADLINE_S, Path, start_ours
from benchmarks.targets import Target
from services.runtime.launch import GRPC_EXPERIMENTS

TOKENS = 5
"""How many tokens the first model writes before its connection closes."""
TARGET = Target("from the failing byte to the second model's first text, p50", 150, at_least=False)


async def gap_s(path: Path) -> float:
    """Return the time between the last byte of the first model and the second one's first text.

    The second provider writes its first token at once, so that none of it is the provider's.

    Raises:
        ChainError: the run did not begin anew.
    """
    failed_at = 0.0
    restarted = False
    async for response in path.run(TOKENS, DEADLINE_S):
        event = response.event
        restarted = restarted or event.HasField("restarted")
        text = event.text_delta.text
        if text and restarted:
            arrived_at = time.monotonic()
            if not failed_at:
                break
            return arrived_at - failed_at
        if text:
            failed_at = float(text.split()[-1])
    raise ChainError("the second model was not asked after the first had begun")


async def measure(count: int) -> list[float]:
    """Start two providers and the hops before them, and measure so many runs."""
    with Processes() as processes:
        broken, whole = free_ports(2)
        processes.start("first", ["-m", "benchmarks.ticking", str(broken), "broken"], {})
        processes.start("second", ["-m", "benchmarks.ticking", str(whole)], {})
        path = start_ours(processes, broken, whole)
        async with path.connected(processes):
            return [await gap_s(path) for _ in range(count)]


def main() -> int:
    """Measure as the command line says; return 1 when the promise is broken."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.failover", description=__doc__)
    parser.add_argument("--runs", type=int, default=30, help="how many answers break off")
    arguments = parser.parse_args()
    os.environ["GRPC_EXPERIMENTS"] = GRPC_EXPERIMENTS
    os.environ["GRPC_VERBOSITY"] = "ERROR"
    grpc: Any = importlib.import_module("grpc")
    try:
        gaps_ms = sorted(1000 * each for each in uvloop.run(measure(arguments.runs)))
    except (ChainError, grpc.aio.AioRpcError) as error:
        print(error, file=sys.stderr)
        return 1
    p50_ms = statistics.median(gaps_ms)
    print(f"p50 {p50_ms:.1f} ms, longest {gaps_ms[-1]:.1f} ms, {len(gaps_ms)} runs")
    kept, line = TARGET.judge(p50_ms, " ms")
    print(line)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
