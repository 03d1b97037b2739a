"""Measures what sidecars cost: six hops with an Envoy before and behind each, and without any.

`python -m benchmarks.mesh` starts both, one pod a hop, and asks them in turns. The sidecars are
those of tests/e2e/mesh: mutual TLS, and what the production overlay says.
"""

import argparse
import asyncio
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.processes import cpu_s
from services.runtime.topology import GATEWAY
from tests.e2e.mesh.calls import Clients, clients_of
from tests.e2e.mesh.house import EVERY, House, running_house
from tests.e2e.mesh.manifests import production
from tests.e2e.mesh.pods import HERE
from tests.e2e.suite import Suite, running_suite

EDGES = 5
"""How often a call goes from one pod to another: through a sidecar at each end."""
WIDTHS = (1, 32)
TOOL = "writer"
"""Asks the model, so that all six hops have work."""
DEADLINE_S = 20.0
WARM_UP_COUNT = 50
SETTINGS = {
    # More calls at once than places, and a busy machine, must not end what is measured.
    "SIXHOP_BREAKER__MODE": "observe",
    "SIXHOP_LOG__CALLS": "none",
}
PUBLISHED = (
    "Istio's own figures (1.12 to 1.15, 1000 requests a second, 16 connections): both sidecars of "
    "an edge add 1.7 ms at p90 and 2.7 ms at p99; one takes 0.35 vCPU and 40 MB."
)


@dataclass(slots=True)
class Found:
    """Holds what the windows of one variant showed, at one width."""

    taken_ms: list[float] = field(default_factory=list)
    """What each call took."""
    medians_ms: list[float] = field(default_factory=list)
    """The median of each window."""
    proxy_cpu_ms: list[float] = field(default_factory=list)
    """The CPU of all sidecars for a call, of each window."""

    @property
    def p99_ms(self) -> float:
        """Return what 99 of 100 calls did not exceed."""
        return statistics.quantiles(self.taken_ms, n=100)[98]

    @property
    def p50_ms(self) -> float:
        """Return the median of the windows' medians."""
        return statistics.median(self.medians_ms)


async def window(clients: Clients, width: int, length_s: float) -> list[float]:
    """Return what each call took, in milliseconds, with so many at a time for some time."""
    until = time.monotonic() + length_s
    told = await clients.ask_often(
        TOOL, sys.maxsize, DEADLINE_S, width=width, enough=lambda: time.monotonic() > until
    )
    failed = [each for each in told if not each.served]
    if failed:
        raise SystemExit(f"{len(failed)} of {len(told)} calls failed: {failed[0]}")
    return [1000 * each.elapsed_s for each in told]


async def compare(
    house: House, suite: Suite, rounds: int, length_s: float, seed: int
) -> dict[tuple[int, str], Found]:
    """Measure both in each round, in an order drawn anew; the plain one twice, for the noise."""
    rng, proxies = random.Random(seed), [proxy.pid for proxy in house.proxies]
    async with (
        clients_of(house.door) as meshed,
        clients_of(suite.address(GATEWAY)) as plain,
    ):
        variants = {"plain": plain, "plain again": plain, "sidecars": meshed}
        for clients in variants.values():
            await clients.ask_often(TOOL, WARM_UP_COUNT, DEADLINE_S)
        found = {(width, name): Found() for width in WIDTHS for name in variants}
        todo = list(found)
        for number in range(rounds):
            rng.shuffle(todo)
            for width, name in todo:
                before_s = cpu_s(proxies)
                taken = await window(variants[name], width, length_s)
                here = found[width, name]
                here.taken_ms += taken
                here.medians_ms.append(statistics.median(taken))
                here.proxy_cpu_ms.append(1000 * (cpu_s(proxies) - before_s) / len(taken))
            print(f"\rround {number + 1} of {rounds}", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
    return found


def print_table(found: Mapping[tuple[int, str], Found], proxy_count: int) -> None:
    """Print what was measured, and what of it one edge and one sidecar have."""
    for width in WIDTHS:
        plain, meshed = found[width, "plain"], found[width, "sidecars"]
        print(f"\n{width} at a time{'p50 ms':>20}{'p99 ms':>12}{'calls':>10}")
        for (at, name), each in found.items():
            if at == width:
                print(
                    f"  {name:<18}{each.p50_ms:>12.2f}{each.p99_ms:>12.2f}{len(each.taken_ms):>10}"
                )
        pairs = zip(meshed.medians_ms, plain.medians_ms, strict=True)
        added = sorted((one - other) / EDGES for one, other in pairs)
        low, high = added[len(added) // 4], added[-1 - len(added) // 4]
        print(
            f"  added for an edge: p50 {statistics.median(added):.2f} ms ({low:.2f}–{high:.2f}), "
            f"p99 {(meshed.p99_ms - plain.p99_ms) / EDGES:.2f} ms"
        )
        # A call goes through each sidecar twice but through the outermost and the innermost.
        cpu_ms = statistics.median(meshed.proxy_cpu_ms)
        print(
            f"  CPU of all {proxy_count} sidecars: {cpu_ms:.2f} ms a call; of one, at 1000 calls "
            f"a second: {cpu_ms / proxy_count:.2f} vCPU"
        )
    print(f"\n{PUBLISHED}")


async def measure(options: argparse.Namespace, folder: Path) -> None:
    """Start both, measure, print, and end them."""
    plain = {
        **SETTINGS,
        "SIXHOP_DOMAIN__AGENT_DIRS": json.dumps([str(HERE / "agents")]),
        "SIXHOP_TOOL__TOOL_DIRS": json.dumps([str(HERE / "tools")]),
    }
    (folder / "mesh").mkdir()
    (folder / "plain").mkdir()
    with (
        running_house(folder / "mesh", production(), {EVERY: SETTINGS}, {}) as house,
        running_suite(folder / "plain", **plain) as suite,
    ):
        for provider in (house.provider, suite.provider):
            provider.behave("at-once")
        found = await compare(house, suite, options.rounds, options.length_s, options.seed)
        print_table(found, len(house.proxies))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure as the command line says."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mesh", description=__doc__)
    parser.add_argument("--rounds", type=int, default=8, help="windows per width and variant")
    parser.add_argument("--length-s", type=float, default=2.0, help="of a window, in seconds")
    parser.add_argument("--seed", type=int, default=1, help="draws the order of the windows")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure(options, Path(folder)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
