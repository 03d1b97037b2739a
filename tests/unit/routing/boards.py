"""Plays a domain hop of several replicas to a board, on a manual clock."""

import heapq
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from services.routing.board import HealthBoard, Placement
from services.routing.config import BoardSettings
from services.routing.record import PolledState, ReplicaRecord, RunEnd, RunTicket
from services.runtime.clock import ManualClock

A, B, C = "a:1", "b:1", "c:1"
AGENT = "orders"


def polled(**changed: object) -> PolledState:
    """Return what a well replica tells."""
    told: dict[str, object] = {
        "pod": "domain-1",
        "ready": True,
        "detail": "",
        "inflight": 0,
        "limit": 256,
        "p50_s": 0.0,
        "call_count": 0,
        "breakers": {},
        "mean_s": {},
    }
    return PolledState(**(told | changed))  # type: ignore[arg-type]


@dataclass(slots=True)
class Play:
    """Sends runs through a board, each of which ends as its replica does at that time."""

    addresses: tuple[str, ...] = (A, B)
    settings: BoardSettings = field(default_factory=BoardSettings)
    clock: ManualClock = field(default_factory=ManualClock)
    seed: int = 7
    length_s: dict[str, float] = field(default_factory=dict)
    """What runs take at each replica; 0.1 s by default."""
    ends: dict[str, RunEnd] = field(default_factory=dict)
    """How runs end at each replica; well by default."""
    stopped: set[str] = field(default_factory=set)
    """The replicas from which nothing comes any more."""
    placed: list[tuple[float, Placement]] = field(default_factory=list)
    board: HealthBoard = field(init=False)
    _due: list[tuple[float, int, str, RunTicket]] = field(default_factory=list)
    _held: list[tuple[str, RunTicket]] = field(default_factory=list)
    _number: int = 0

    def __post_init__(self) -> None:
        self.board = HealthBoard(
            self.addresses, self.settings, self.clock, random.Random(self.seed)
        )

    def record(self, address: str) -> ReplicaRecord:
        """Return what the board knows of a replica."""
        return self.board.records[address]

    def send(self, agent: str = AGENT) -> Placement:
        """Place one run and let it begin."""
        placement = self.board.place()
        address = placement.record.address
        ticket = self.board.begin(placement, agent)
        self.placed.append((self.clock.now(), placement))
        if address in self.stopped:
            self._held.append((address, ticket))
        else:
            self.board.hear(placement.record, ticket)
            self._number += 1
            due = self.clock.now() + self.length_s.get(address, 0.1)
            heapq.heappush(self._due, (due, self._number, address, ticket))
        return placement

    def run(self, length_s: float, *, rps: float = 20.0) -> Counter[str]:
        """Let runs come for a while; return how many went where."""
        count = round(length_s * rps)
        before = len(self.placed)
        for _ in range(count):
            self.send()
            self.wait(1 / rps)
        return Counter(placement.record.address for _, placement in self.placed[before:])

    def wait(self, length_s: float) -> None:
        """Let time pass in which runs end."""
        until = self.clock.now() + length_s
        while self._due and self._due[0][0] <= until:
            due, _, address, ticket = heapq.heappop(self._due)
            self.clock.advance(max(0.0, due - self.clock.now()))
            self.end(address, ticket)
        self.clock.advance(max(0.0, until - self.clock.now()))

    def end(self, address: str, ticket: RunTicket, end: RunEnd | None = None) -> None:
        """End one run."""
        how = end or self.ends.get(address, RunEnd.ANSWERED)
        self.board.end(self.record(address), ticket, how)

    def release(self) -> None:
        """Let everything that hangs end well."""
        self.stopped.clear()
        held, self._held = self._held, []
        for address, ticket in held:
            self.board.hear(self.record(address), ticket)
            self.end(address, ticket)

    def until(self, condition: Callable[[], bool], *, within_s: float, rps: float = 20.0) -> float:
        """Let runs come until a condition holds; return how long that took."""
        began = self.clock.now()
        while not condition():
            assert self.clock.now() - began < within_s, "it did not come true in time"
            self.run(1 / rps, rps=rps)
        return self.clock.now() - began
