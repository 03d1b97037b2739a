"""Lets gateways write runs that come at random, command by command, as `gateway/runs` does.

As `simulation.py`, it knows nothing of the plan's arithmetic.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from gateway.planning.traffic import Traffic
from tests.unit.gateway.planning.simulation import World

INTERVAL_S = 0.1
"""How often a gateway writes what is new."""
MOST = 50
"""Runs of one batch."""


@dataclass(slots=True)
class Kept:
    """Is one run."""

    tenant: int
    has_files: bool
    live: bool = True
    new: bool = True
    """Whether the index does not have it yet."""


class Writers:
    """Is all gateways, and the index of each tenant in Redis."""

    def __init__(
        self, traffic: Traffic, gateways: int, run_s: float, *, indexed: int, most: int, seed: int
    ) -> None:
        """Take what comes.

        Args:
            traffic: the rate, the tenants and how many runs have files.
            gateways: how many there are.
            run_s: how long a run takes.
            indexed: how many runs each tenant has there already.
            most: how many it may have.
            seed: what all chance comes from.
        """
        self._traffic, self._run_s, self._most = traffic, run_s, most
        self._world = World(seed)
        self._waiting: list[dict[int, Kept]] = [{} for _ in range(gateways)]
        self._indexed = [indexed] * traffic.tenant_count
        self.commands: Counter[str] = Counter()

    def run(self, warm_up_s: float, window_s: float) -> float:
        """Let runs come and go, and return the commands of a second."""
        world = self._world
        world.after(0.0, self._arrive)
        for waiting in self._waiting:
            # Gateways do not write in step.
            world.after(world.chance.uniform(0.0, INTERVAL_S), self._writer(waiting))
        world.run(warm_up_s)
        self.commands.clear()
        world.run(warm_up_s + window_s)
        return sum(self.commands.values()) / window_s

    def _arrive(self) -> None:
        world, traffic = self._world, self._traffic
        world.after(world.chance.expovariate(traffic.qps * traffic.peak_factor), self._arrive)
        run = Kept(
            tenant=world.chance.randrange(traffic.tenant_count),
            has_files=world.chance.random() < traffic.redis.file_ratio,
        )
        waiting = world.chance.choice(self._waiting)
        waiting[id(run)] = run

        def end() -> None:
            run.live = False
            waiting[id(run)] = run

        world.after(self._run_s, end)

    def _writer(self, waiting: dict[int, Kept]) -> "Writer":
        return Writer(self, waiting)

    def write(self, waiting: dict[int, Kept]) -> None:
        """Write all that waits, in batches."""
        while waiting:
            names = list(waiting)[:MOST]
            self._batch([waiting.pop(name) for name in names])

    def again(self, writer: "Writer") -> None:
        """Have a gateway write once more after the interval."""
        self._world.after(INTERVAL_S, writer)

    def _batch(self, runs: Sequence[Kept]) -> None:
        for run in runs:
            self.commands.update(["zadd", "set"])
            if run.new:
                run.new = False
                self._indexed[run.tenant] += 1
            if not run.live:
                self.commands.update(["set", "set"])
                if run.has_files:
                    self.commands.update(["hset", "pexpire"])
        dropped = False
        for tenant in {run.tenant for run in runs}:
            self.commands.update(["pexpire", "zremrangebyscore", "zrange"])
            if self._indexed[tenant] > self._most:
                self._indexed[tenant] = self._most
                self.commands.update(["zrem"])
                dropped = True
        if dropped:
            self.commands.update(["del"])


@dataclass(frozen=True, slots=True)
class Writer:
    """Is one gateway that writes now and then."""

    writers: Writers
    waiting: dict[int, Kept]

    def __call__(self) -> None:
        """Write, and come again."""
        self.writers.write(self.waiting)
        self.writers.again(self)
