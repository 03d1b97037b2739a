"""Lets one pod of many be sick, to see how many calls its callers lose until all have ejected it.

As `simulation.py`, it knows nothing of the plan's arithmetic.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from gateway.planning.traffic import Spread
from tests.unit.gateway.planning.simulation import World

SICK = 0
"""The pod that is."""


@dataclass(slots=True)
class Caller:
    """Is one sidecar: it knows its own calls, and who of the pods it has ejected."""

    rate: float
    """Its calls per second."""
    own: list[int]
    """Its calls in flight, by pod."""
    in_a_row: int = 0
    ejected_s: float | None = None
    """How long after the pod fell sick it ejected it."""


@dataclass(slots=True)
class Found:
    """Tells what one sickness came to."""

    lost: int = 0
    """Calls that failed."""
    made: int = 0
    """Calls of all callers, of each until it had ejected the pod."""
    ejected_s: list[float] = field(default_factory=list)
    """When each caller had ejected the pod."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sickness:
    """Says what is the matter."""

    pods: int
    held: Spread
    """How long a well pod takes."""
    failures: int = 3
    """After so many in a row a caller ejects a pod."""
    failing: float = 1.0
    """The part of its calls that the pod fails."""
    hang_s: float = 0.0
    """After how long a call to it fails."""


class Ward:
    """Runs one sickness to its end."""

    def __init__(self, sickness: Sickness, callers: Sequence[tuple[int, float]], seed: int) -> None:
        """Take what is the matter, and of each kind of caller how many, with how many calls."""
        self._sickness = sickness
        self._world = World(seed)
        self._sick_at = 0.0
        self._left = sum(count for count, _ in callers)
        self._callers = [
            Caller(rate, [0] * sickness.pods) for count, rate in callers for _ in range(count)
        ]
        self.found = Found()

    def run(self, warm_up_s: float, most_s: float) -> Found:
        """Let calls come, all pods well at first; then let one be sick until nobody calls it."""
        self._sick_at = warm_up_s
        for caller in self._callers:
            self._next(caller)
        self._world.run(warm_up_s)
        while self._left and self._world.now < warm_up_s + most_s:
            self._world.run(self._world.now + 0.5)
        assert not self._left, "not all callers ejected the pod in time"
        # What was sent there before then fails as well.
        self._world.run(self._world.now + 2 * self._sickness.hang_s)
        return self.found

    def _next(self, caller: Caller) -> None:
        pause_s = self._world.chance.expovariate(caller.rate)
        self._world.after(pause_s, lambda: self._send(caller))

    def _send(self, caller: Caller) -> None:
        self._next(caller)
        world, sickness = self._world, self._sickness
        sick_time = world.now >= self._sick_at
        draw = world.chance.randrange
        first = 1 if caller.ejected_s is not None else 0
        one, other = draw(first, sickness.pods), draw(first, sickness.pods)
        chosen = one if caller.own[one] <= caller.own[other] else other
        self.found.made += sick_time and caller.ejected_s is None
        caller.own[chosen] += 1
        if chosen == SICK and sick_time:
            failed = world.chance.random() < sickness.failing
            takes_s = sickness.hang_s if failed else world.lasting(sickness.held)
            world.after(takes_s, lambda: self._ended(caller, failed=failed))
        else:
            world.after(world.lasting(sickness.held), lambda: self._left_well(caller, chosen))

    def _left_well(self, caller: Caller, pod: int) -> None:
        caller.own[pod] -= 1

    def _ended(self, caller: Caller, *, failed: bool) -> None:
        caller.own[SICK] -= 1
        self.found.lost += failed
        caller.in_a_row = caller.in_a_row + 1 if failed else 0
        if caller.in_a_row >= self._sickness.failures and caller.ejected_s is None:
            caller.ejected_s = self._world.now - self._sick_at
            self.found.ejected_s.append(caller.ejected_s)
            self._left -= 1
