"""Decides which replica of the domain hop gets a run, before anyone waits for it."""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from services.routing.config import BoardSettings
from services.routing.pace import Usual
from services.routing.record import ReplicaRecord, RunEnd, RunTicket
from services.runtime.clock import Clock
from services.runtime.keyed import Keyed

MAX_AGENTS = 128
FIRST_EVENT_FLOOR_S = 0.25
"""A first event that comes within this is no sign of anything, however fast others were."""
UNKNOWN_RUN_S = 1.0
"""What a run is taken for before any of its agent has ended."""
UNKNOWN_FIRST_S = 0.5
MIN_PRIOR_CALLS = 20
"""With fewer calls the median that a replica tells is chance."""
_BUSY_RATIO = 10.0
"""What a refusal for load costs a replica for a moment: a fast no is not a fast answer."""


class Why(StrEnum):
    """Says why a replica was chosen."""

    ONLY = "only"
    """There is no other."""
    LEAST_EXPECTED = "least_expected"
    """A run is expected to be done there first."""
    PROBE = "probe"
    """It is in doubt, and this run finds out."""
    ALL_SICK = "all_sick"
    """Every one is; this is the least sick."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Says where a run goes."""

    record: ReplicaRecord
    why: Why


class HealthBoard:
    """Knows the replicas, and sends each run where it is expected to be done first.

    The expected time is `slowdown · (1 + in flight) / limit`. The *slowdown* says how many times
    as long runs take there as the same agent's runs take anywhere; runs under way that are late
    already count before they end. Every replica is looked at, because there are few and all that
    is known lies in this process; chance decides between those that are nearly equal.
    """

    def __init__(
        self,
        addresses: Sequence[str],
        settings: BoardSettings,
        clock: Clock,
        chance: random.Random,
    ) -> None:
        """Take the replicas' addresses, how to choose, and what decides between equals."""
        self.records = {address: ReplicaRecord(address, settings) for address in addresses}
        self._settings = settings
        self._clock = clock
        self._chance = chance
        self._runs = Keyed(lambda agent: Usual(), max_keys=MAX_AGENTS)
        self._first = Usual()
        self._tokens = 0.0
        self._probed_at = -math.inf

    def place(self, blocked: frozenset[str] = frozenset()) -> Placement:
        """Return where the next run goes.

        Args:
            blocked: the addresses to which nothing can be sent at this moment.
        """
        records = list(self.records.values())
        if len(records) == 1:
            return Placement(record=records[0], why=Why.ONLY)
        now = self._clock.now()
        slow = {record.address: self.slowdown(record, now) for record in records}
        costs = {r.address: cost(r, slow[r.address], now) for r in records}
        well = [r for r in records if r.address not in blocked and not r.sick(now)]
        if not well:
            record = min(records, key=lambda r: (r.address in blocked, r.away, costs[r.address]))
            return Placement(record=record, why=Why.ALL_SICK)
        probed = self._to_probe(records, min(slow[r.address] for r in well), slow, blocked, now)
        if probed is not None:
            return Placement(record=probed, why=Why.PROBE)
        enough = self._settings.near_ratio * min(costs[record.address] for record in well)
        near = [record for record in well if costs[record.address] <= enough]
        return Placement(record=self._chance.choice(near), why=Why.LEAST_EXPECTED)

    def begin(self, placement: Placement, agent: str) -> RunTicket:
        """Count a run that is sent where it was placed."""
        first_s = self._first.length_s
        return placement.record.begin(
            agent,
            self._clock.now(),
            self.usual_s(agent),
            UNKNOWN_FIRST_S if first_s is None else max(first_s, FIRST_EVENT_FLOOR_S),
            probe=placement.why is Why.PROBE,
        )

    def usual_s(self, agent: str) -> float:
        """Return what runs of an agent usually take."""
        usual_s = self._runs.of(agent).length_s
        return UNKNOWN_RUN_S if usual_s is None else usual_s

    def hear(self, record: ReplicaRecord, ticket: RunTicket) -> None:
        """Note that a run has given its first event."""
        if not ticket.heard:
            self._first.add(self._clock.now() - ticket.began_at)
            record.hear(ticket)

    def end(
        self, record: ReplicaRecord, ticket: RunTicket, end: RunEnd, retry_after_s: float = 0.0
    ) -> None:
        """Learn from the end of a run."""
        now, usual = self._clock.now(), self._runs.of(ticket.agent)
        length_s = ticket.length_s(now)
        # Compared with what is known by now; the first of its agent is like itself.
        ticket.usual_s = length_s if usual.length_s is None else usual.length_s
        record.end(ticket, end, now, retry_after_s)
        if end is RunEnd.ANSWERED:
            usual.add(length_s)

    def slowdown(self, record: ReplicaRecord, now: float) -> float:
        """Return how many times as long as usual runs take at a replica."""
        return max(math.exp(record.known_log(now)), record.hanging(now))

    def learn_priors(self) -> None:
        """Compare what the replicas tell of their medians, for those that were never tried."""
        medians = {
            record.address: math.log(record.polled.p50_s)
            for record in self.records.values()
            if record.polled is not None
            and record.polled.call_count >= MIN_PRIOR_CALLS
            and record.polled.p50_s > 0
        }
        if len(medians) > 1:
            middle = sum(medians.values()) / len(medians)
            for address, median in medians.items():
                self.records[address].believe(median - middle)

    def describe(self) -> str:
        """Return how every replica stands, for people."""
        now = self._clock.now()
        return "; ".join(self._described(record, now) for record in self.records.values())

    def _described(self, record: ReplicaRecord, now: float) -> str:
        state = record.sick(now) or f"{self.slowdown(record, now):.1f}× the usual time"
        return f"{record.pod or record.address}: {state}, {record.inflight} runs"

    def _to_probe(
        self,
        records: Sequence[ReplicaRecord],
        best: float,
        slow: Mapping[str, float],
        blocked: frozenset[str],
        now: float,
    ) -> ReplicaRecord | None:
        """Return the replica in doubt that has waited longest, when a probe is due.

        Args:
            records: all replicas.
            best: the least slowdown of those that are well.
            slow: the slowdown of each, by its address.
            blocked: the addresses to which nothing can be sent.
            now: the instant.
        """
        settings = self._settings
        self._tokens = min(1.0, self._tokens + settings.probe_ratio)
        if self._tokens < 1 and now - self._probed_at < settings.sick_s:
            return None
        doubtful = settings.doubt_ratio * best
        due = [
            record
            for record in records
            if record.address not in blocked
            and not record.away
            and not record.probing
            and now - record.began_at >= settings.probe_interval_s
            and (record.sick(now) or slow[record.address] > doubtful)
        ]
        if not due:
            return None
        self._tokens = 0.0
        self._probed_at = now
        return min(due, key=lambda record: record.began_at)


def cost(record: ReplicaRecord, slowdown: float, now: float) -> float:
    """Return the expected time of one more run at a replica, for comparison only."""
    expected = slowdown * (1 + record.load(now)) / record.limit()
    return expected * _BUSY_RATIO if record.busy(now) else expected
