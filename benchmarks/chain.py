"""Compares a chain of five hops on our runtime with a bare grpc.aio chain of the same length."""

import argparse
import importlib
import json
import os
import random
import statistics
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import uvloop

from benchmarks.processes import ChainError, Processes
from benchmarks.targets import Target
from services.runtime.launch import GRPC_EXPERIMENTS

if TYPE_CHECKING:
    from benchmarks.load import Chain, Stopped, Window

STOPPED_DEADLINE_S = 2.0
STOPPED_CONCURRENCY = 50
FIELDS = ("p50_ms", "p99_ms", "rps", "cpu_ms")


@dataclass(frozen=True, slots=True)
class Shape:
    """Describes one kind of load."""

    name: str
    streaming: bool
    concurrency: int
    length_s: float
    """How long one window lasts."""


SHAPES = (
    Shape("unary, 1 at a time", False, 1, 0.35),
    Shape("unary, 32 at a time", False, 32, 0.5),
    Shape("stream, 8 at a time", True, 8, 0.5),
)


RATIO_TARGETS = (
    (Target("p50 against bare at concurrency 1", 1.25, at_least=False), SHAPES[0], "p50_ms"),
    (Target("rps against bare at concurrency 32", 0.80, at_least=True), SHAPES[1], "rps"),
    (
        Target("CPU of all hops against bare at concurrency 32", 1.25, at_least=False),
        SHAPES[1],
        "cpu_ms",
    ),
)
OVERSHOOT_TARGET = Target(
    "client overshoot past its deadline, last hop stopped", 50, at_least=False
)
FREE_TARGET = Target("every hop free after the client's answer", 150, at_least=False)

VARIANTS = ("ours", "bare", "bare again")
"""The bare chain is measured twice, so that the table can show what noise makes of a ratio."""

Rounds = dict[str, dict[str, list["Window"]]]
"""Windows by shape and variant, in the order of the rounds."""


async def compare(
    windows: Rounds, ours: "Chain", bare: "Chain", rounds: int, rng: random.Random
) -> None:
    """Measure every shape on both chains in each round, in an order drawn anew.

    What is compared follows each other at once, in short windows: a machine that shares its caches
    is half as fast again from one moment to another.
    """
    for _ in range(rounds):
        for shape in rng.sample(SHAPES, len(SHAPES)):
            for variant in rng.sample(VARIANTS, len(VARIANTS)):
                chain = ours if variant == "ours" else bare
                measure = chain.stream if shape.streaming else chain.unary
                window = await measure(shape.concurrency, shape.length_s)
                windows[shape.name][variant].append(window)
        print(".", end="", file=sys.stderr, flush=True)


def ratio(windows: Rounds, shape: Shape, variant: str, field: str) -> tuple[float, float, float]:
    """Return the lower quartile, median and upper quartile of the ratios to bare by round."""
    pairs = zip(windows[shape.name][variant], windows[shape.name]["bare"], strict=True)
    ratios = [getattr(window, field) / getattr(base, field) for window, base in pairs]
    if len(ratios) == 1:
        return ratios[0], ratios[0], ratios[0]
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return low, middle, high


def print_table(windows: Rounds) -> None:
    """Print the medians, and the ratios with their quartiles."""
    titles = {"p50_ms": "p50 ms", "p99_ms": "p99 ms", "rps": "calls/s", "cpu_ms": "CPU ms/call"}
    heads = "".join(f"{titles[field]:>20}" for field in FIELDS)
    for shape in SHAPES:
        print(f"\n{shape.name:<20}{heads}")
        for variant, found in windows[shape.name].items():
            medians = [statistics.median(getattr(w, field) for w in found) for field in FIELDS]
            print(f"  {variant:<18}" + "".join(f"{value:>20.2f}" for value in medians))
        for variant in ("ours", "bare again"):
            cells = []
            for field in FIELDS:
                low, middle, high = ratio(windows, shape, variant, field)
                cells.append(f"{middle:.2f} ({low:.2f}–{high:.2f})")
            print(f"  {variant + ' / bare':<18}" + "".join(f"{cell:>20}" for cell in cells))


async def stop_last_hop(ours: "Chain") -> dict[str, "Stopped"]:
    """Measure what a last hop that stands still does to calls that are under way."""
    return {
        "unary": await ours.unary_with_last_hop_stopped(STOPPED_CONCURRENCY, STOPPED_DEADLINE_S),
        "stream": await ours.stream_with_last_hop_stopped(STOPPED_CONCURRENCY, STOPPED_DEADLINE_S),
    }


def print_stopped(stopped: dict[str, "Stopped"]) -> None:
    """Print the answers to calls whose last hop stood still."""
    print(f"\nlast hop stopped, {STOPPED_CONCURRENCY} calls with {STOPPED_DEADLINE_S:g} s")
    for name, found in stopped.items():
        print(
            f"  {name:<18}answered after {found.answered_p50_ms:.0f} ms (p50), "
            f"{found.answered_max_ms:.0f} ms (latest); overshoot {found.overshoot_ms:.0f} ms; "
            f"hops free {found.free_ms:.0f} ms later"
        )


def verdicts(windows: Rounds, stopped: dict[str, "Stopped"]) -> list[tuple[bool, str]]:
    """Return each promise with whether it is kept."""
    lines = [
        target.judge(ratio(windows, shape, "ours", field)[1], "×")
        for target, shape, field in RATIO_TARGETS
    ]
    worst_overshoot_ms = max(found.overshoot_ms for found in stopped.values())
    worst_free_ms = max(found.free_ms for found in stopped.values())
    return [
        *lines,
        OVERSHOOT_TARGET.judge(worst_overshoot_ms, " ms"),
        FREE_TARGET.judge(worst_free_ms, " ms"),
    ]


async def measure(
    starts: int, rounds: int, seed: int, *, engine: bool
) -> tuple[Rounds, dict[str, "Stopped"]]:
    """Start both chains so many times, measure some rounds each time, and end them.

    Where the memory of a process comes to lie moves its ratio by some hundredths, for as long as it
    runs: no number of rounds shows that.
    """
    # Imported here because grpc reads the environment when it is imported.
    chain: Any = importlib.import_module("benchmarks.load").Chain
    windows: Rounds = {shape.name: {name: [] for name in VARIANTS} for shape in SHAPES}
    rng = random.Random(seed)
    for left in reversed(range(starts)):
        with Processes() as processes:
            async with (
                chain.start_ours(processes, engine=engine) as ours,
                chain.start_bare(processes) as bare,
            ):
                await compare(windows, ours, bare, rounds, rng)
                if not left:
                    print(file=sys.stderr)
                    return windows, await stop_last_hop(ours)
    raise ValueError("nothing was to be started")


def main() -> int:
    """Measure as the command line says; return 1 when a promise is broken."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chain", description=__doc__)
    parser.add_argument("--starts", type=int, default=4, help="how often the chains are started")
    parser.add_argument("--rounds", type=int, default=6, help="windows per shape, chain and start")
    parser.add_argument("--seed", type=int, default=1, help="draws the order of the windows")
    parser.add_argument("--without-engine", action="store_true", help="leave the policies out")
    parser.add_argument("--json", action="store_true", help="print everything as JSON instead")
    arguments = parser.parse_args()
    os.environ["GRPC_EXPERIMENTS"] = GRPC_EXPERIMENTS
    os.environ["GRPC_VERBOSITY"] = "ERROR"
    try:
        windows, stopped = uvloop.run(
            measure(
                arguments.starts,
                arguments.rounds,
                arguments.seed,
                engine=not arguments.without_engine,
            )
        )
    except ChainError as error:
        print(error, file=sys.stderr)
        return 1
    judged = verdicts(windows, stopped)
    if arguments.json:
        print(json.dumps(_as_data(windows, stopped, judged), ensure_ascii=False, indent=1))
    else:
        print_table(windows)
        print_stopped(stopped)
        print("\n" + "\n".join(line for _, line in judged))
    return 0 if all(kept for kept, _ in judged) else 1


def _as_data(
    windows: Rounds, stopped: dict[str, "Stopped"], judged: Sequence[tuple[bool, str]]
) -> dict[str, Any]:
    return {
        "windows": {
            shape: {variant: [asdict(window) for window in found] for variant, found in by.items()}
            for shape, by in windows.items()
        },
        "last_hop_stopped": {name: asdict(found) for name, found in stopped.items()},
        "verdicts": [line for _, line in judged],
    }


if __name__ == "__main__":
    sys.exit(main())
