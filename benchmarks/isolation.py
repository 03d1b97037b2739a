"""Measures what a sick tool, and a tenant at ten times its share, cost everybody else."""

import argparse
import asyncio
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks.targets import Target
from services.runtime.topology import DOMAIN, TOOL
from tests.e2e.client import Client, open_client
from tests.e2e.doors import PLACES, DomainDoor, Send, Sender, Sent, ToolDoor, at_once, at_rate
from tests.e2e.suite import running_suite

ENGINE = {"SIXHOP_ENGINE__ENABLED": "true", "SIXHOP_LOG__CALLS": "none"}
QUICK_RECOVERY = {"SIXHOP_BREAKER__OPEN_DURATION_S": "2"}
"""So that a round does not take a minute."""
WELL_S, SICK_S = 0.06, 2.4
"""Forty times as slow; the tool calls slow what takes more than two seconds."""
TRIP_S = 12.0
"""Longer than a breaker may take, so that one that is late is seen to be."""
DEADLINE_S = 10.0
PAUSE_S = 0.02
GIVE_UP_S = 60.0
PLACE_COUNT, PLACE_S, LIMIT = 16, 0.2, 24
QUIET = tuple(Sender(f"quiet-{number}") for number in range(4))
HOT = Sender("hot")
FAIR_RATE = PLACE_COUNT / PLACE_S / (len(QUIET) + 1)
USED = 0.5
"""The part of their share that the quiet tenants use."""

OPEN_TARGET = Target("breaker open after the first slow call", 10, at_least=False)
CLOSED_TARGET = Target("breaker closed after recovery", 35, at_least=False)
REFUSAL_TARGET = Target("a call to the sick tool refused, as its hop tells", 5, at_least=False)

Window = Callable[[], Awaitable[Sequence[Sent]]]


@dataclass(slots=True)
class Found:
    """Collects what the windows of one question showed of those who must not be disturbed."""

    who: str
    p99_ms: dict[str, list[float]] = field(default_factory=dict)
    """By kind of window, in the order of the rounds."""
    call_count: int = 0
    refused_count: int = 0

    def add(self, kind: str, calls: Sequence[Sent]) -> None:
        """Take the calls of a window."""
        lengths = sorted(call.elapsed_s for call in calls if call.served)
        self.p99_ms.setdefault(kind, []).append(1000 * lengths[round(0.99 * (len(lengths) - 1))])
        self.call_count += len(calls)
        self.refused_count += sum(not call.served for call in calls)

    def ratio(self, kind: str) -> tuple[float, float, float]:
        """Return the lower quartile, median and upper quartile of the ratios to calm by round."""
        pairs = zip(self.p99_ms[kind], self.p99_ms["calm"], strict=True)
        ratios = [value / calm for value, calm in pairs]
        if len(ratios) == 1:
            return ratios[0], ratios[0], ratios[0]
        low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
        return low, middle, high

    def verdicts(self) -> list[tuple[bool, str]]:
        """Return each promise with whether it is kept."""
        ratio = Target(f"p99 of {self.who}, against calm", 1.5, at_least=False)
        refused = Target(f"calls of {self.who} refused, of {self.call_count}", 0, at_least=False)
        return [ratio.judge(self.ratio("disturbed")[1], "×"), refused.judge(self.refused_count, "")]

    def print_table(self) -> None:
        """Print the medians, and the ratios with their quartiles."""
        print(f"\n{self.who:<44}{'p99 ms':>10}{'against calm':>22}")
        for kind, values in self.p99_ms.items():
            low, middle, high = self.ratio(kind)
            ratio = f"{middle:.2f} ({low:.2f}–{high:.2f})"
            print(f"  {kind:<42}{statistics.median(values):>10.1f}{ratio:>22}")


async def in_turns(found: Found, windows: Mapping[str, Window], rounds: int, seed: int) -> Found:
    """Measure every kind of window once in each round, in an order drawn anew."""
    rng = random.Random(seed)
    for number in range(rounds):
        for kind in rng.sample(list(windows), len(windows)):
            found.add(kind, await windows[kind]())
        print(f"\r{found.who}: round {number + 1} of {rounds}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return found


class SickTool:
    """Calls two tools through the domain hop; one of them can fall sick."""

    def __init__(self, client: Client, folder: Path, length_s: float) -> None:
        """Take the way, a folder for the tool's log, and how long a window is."""
        self._length_s = length_s
        domain, log = client.channels[DOMAIN], str(folder / "log")
        self._well, self._sick = (
            DomainDoor(domain, "steady", log=log, length_s=each_s).send(DEADLINE_S)
            for each_s in (WELL_S, SICK_S)
        )
        self._other = DomainDoor(domain, PLACES, count=64, length_s=WELL_S).send(DEADLINE_S)

    async def calm(self) -> Sequence[Sent]:
        """Call both while both are well."""
        return await self._beside(self._well)

    async def disturbed(self) -> Sequence[Sent]:
        """Call both while one is sick, from its first slow call on; then let it recover."""
        calls = await self._beside(self._sick)
        await self.recover()
        return calls

    async def trip(self) -> tuple[float, float]:
        """Fall sick; return how long it took until a call was refused, and what refusals take.

        The second, in milliseconds, is what the hop that refuses reports.
        """
        calls = await at_once(self._sick, [Sender()] * 4, TRIP_S, PAUSE_S)
        # Before it opens, some end by their timeout.
        refused = [call for call in calls if call.reason == "CIRCUIT_OPEN"]
        opened_s = min(call.ended for call in refused) - min(call.began for call in calls)
        used_s = [report.used_s for call in refused for report in call.reports]
        return opened_s, 1000 * statistics.median(used_s)

    async def recover(self) -> float:
        """Recover; return how long it took until a call was answered again."""
        began = time.monotonic()
        while not (await self._well(Sender())).served:
            if time.monotonic() - began > GIVE_UP_S:
                break
            await asyncio.sleep(PAUSE_S)
        return time.monotonic() - began

    async def _beside(self, send: Send) -> Sequence[Sent]:
        others, _ = await asyncio.gather(
            at_once(self._other, [Sender()] * 4, self._length_s, PAUSE_S),
            at_once(send, [Sender()] * 4, self._length_s, PAUSE_S),
        )
        return others


@asynccontextmanager
async def sick_tool(length_s: float, **settings: str) -> AsyncIterator[SickTool]:
    """Start the domain hop and the tool hop, both tools well and known."""
    with tempfile.TemporaryDirectory(prefix="sixhop-benchmark-") as name:
        folder = Path(name)
        with running_suite(folder, (DOMAIN, TOOL), **ENGINE, **settings) as suite:
            async with open_client(suite) as client:
                await client.tools_known()
                tool = SickTool(client, folder, length_s)
                await tool.calm()
                yield tool


async def measure_tool(rounds: int, seed: int, length_s: float) -> Found:
    """Measure other tools beside a sick one."""
    async with sick_tool(length_s, **QUICK_RECOVERY) as tool:
        windows = {"calm": tool.calm, "calm again": tool.calm, "disturbed": tool.disturbed}
        return await in_turns(Found("other tools beside a sick one"), windows, rounds, seed)


async def measure_breaker(length_s: float) -> tuple[float, float, float]:
    """Measure a breaker as it is by default: opened, refusals in milliseconds, closed."""
    async with sick_tool(length_s) as tool:
        opened_s, refusal_ms = await tool.trip()
        return opened_s, refusal_ms, await tool.recover()


async def measure_tenants(rounds: int, seed: int, length_s: float) -> Found:
    """Measure tenants within their share beside one at ten times its own."""
    limit = {"SIXHOP_LIMIT__MAX_INFLIGHT": str(LIMIT)}
    with tempfile.TemporaryDirectory(prefix="sixhop-benchmark-") as folder:
        with running_suite(Path(folder), (TOOL,), **ENGINE, **limit) as suite:
            async with open_client(suite) as client:
                send = ToolDoor(client.channels[TOOL], PLACE_COUNT, PLACE_S).send(DEADLINE_S)
                rates = dict.fromkeys(QUIET, USED * FAIR_RATE)

                async def calm() -> Sequence[Sent]:
                    return await at_rate(send, rates, length_s)

                async def disturbed() -> Sequence[Sent]:
                    calls = await at_rate(send, rates | {HOT: 10 * FAIR_RATE}, length_s)
                    return [call for call in calls if call.sender != HOT]

                await calm()
                windows = {"calm": calm, "calm again": calm, "disturbed": disturbed}
                found = Found("tenants beside one at ten times its share")
                return await in_turns(found, windows, rounds, seed)


def main() -> int:
    """Measure as the command line says; return 1 when a promise is broken."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.isolation", description=__doc__)
    parser.add_argument("--rounds", type=int, default=6, help="windows of each kind")
    parser.add_argument("--length", type=float, default=5.0, help="seconds of a window")
    parser.add_argument("--seed", type=int, default=1, help="draws the order of the windows")
    parser.add_argument("--json", action="store_true", help="print everything as JSON instead")
    arguments = parser.parse_args()
    how = (arguments.rounds, arguments.seed, arguments.length)
    questions = [asyncio.run(measure_tool(*how)), asyncio.run(measure_tenants(*how))]
    opened_s, refusal_ms, closed_s = asyncio.run(measure_breaker(arguments.length))
    judged = [
        *(line for found in questions for line in found.verdicts()),
        OPEN_TARGET.judge(opened_s, " s"),
        REFUSAL_TARGET.judge(refusal_ms, " ms"),
        CLOSED_TARGET.judge(closed_s, " s"),
    ]
    if arguments.json:
        lines = [line for _, line in judged]
        told = {"questions": [asdict(found) for found in questions], "verdicts": lines}
        print(json.dumps(told, ensure_ascii=False, indent=1))
    else:
        for found in questions:
            found.print_table()
        print("\n" + "\n".join(line for _, line in judged))
    return 0 if all(kept for kept, _ in judged) else 1


if __name__ == "__main__":
    sys.exit(main())
