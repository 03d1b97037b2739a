"""Keeps what is known of one replica: how slow it is, what is under way, whether it is sick."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import count

from services.routing.config import BoardSettings
from services.routing.pace import Underway, ratio_of
from services.runtime.circuit import BreakerState
from services.runtime.load_report import LoadReport

MAX_VIEW_AGE_S = 45.0
"""What a replica told of its dependencies longer ago says nothing: breakers move faster."""
_LOAD_HALF_LIFE_S = 5.0
"""How fast a count of calls in flight that somebody told loses its weight."""
FRESH_PEER_S = 5.0
"""How long the word of another routing process about runs under way and sickness counts."""
PROOF_S = 10.0
"""So long after an answer nobody else's word makes a replica sick."""
_PRIOR_RATIO = 3.0
"""How many times as slow as the others a replica may be believed to be before it was tried."""
_STEP = 0.2
"""How far one run moves the slowdown that is known from runs just before."""


class RunEnd(StrEnum):
    """Says how a run ended for the replica that it was sent to."""

    ANSWERED = "answered"
    """Well."""
    FAILED = "failed"
    """By the replica's own fault."""
    UNREACHABLE = "unreachable"
    """Nothing listens there, or the connection broke."""
    REFUSED = "refused"
    """The replica had enough to do."""
    CUT = "cut"
    """Its time was up, or its caller went away: it took at least as long."""
    ELSEWHERE = "elsewhere"
    """What failed lies behind the replica, or in the question; the replica itself works."""
    UNSENT = "unsent"
    """A policy of ours refused to send it."""


@dataclass(slots=True, eq=False)
class RunTicket:
    """Is one run under way at a replica."""

    agent: str
    began_at: float
    usual_s: float
    """What such a run usually takes."""
    probe: bool
    """True when it went to a replica that is in doubt, to find out."""
    number: int
    heard: bool = False
    """True once its first event is there."""
    held_s: float = 0.0
    """How long its reader has kept us from reading on."""

    def length_s(self, now: float) -> float:
        """Return how long it has taken so far, without what its reader took."""
        return now - self.began_at - self.held_s


@dataclass(frozen=True, slots=True, kw_only=True)
class DependencyView:
    """Tells how a replica sees those that it calls."""

    told_at: float = -math.inf
    """When it told so."""
    breakers: Mapping[str, BreakerState] = field(default_factory=dict)
    """Whose breaker is not closed, by key."""
    mean_s: Mapping[str, float] = field(default_factory=dict)
    """What answers take, by key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolledState:
    """Is what a replica tells when it is asked for its state."""

    pod: str
    ready: bool
    detail: str
    inflight: int
    limit: int
    """How many calls may be in flight; 0 is unknown."""
    p50_s: float
    """The median of its recent calls; 0 is unknown."""
    call_count: int
    """How many calls it has served; few of them say little."""
    breakers: Mapping[str, BreakerState]
    mean_s: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerView:
    """Is what another routing process has told of a replica."""

    told_at: float
    """When it told so, on our clock."""
    log_slow: float
    """The logarithm of the slowdown that it has seen."""
    weight: float
    """What that weighed when it was told, 0–1."""
    hanging: float
    """How far its runs under way were beyond what they usually take."""
    inflight: int
    """Its runs under way there."""
    sick: str
    """Why it sends nothing there; empty when it does."""
    view: DependencyView = DependencyView()
    """What the replica has told it of those that it calls."""


class ReplicaRecord:
    """Learns from runs, from polls and from load reports. Every step takes the same time."""

    def __init__(self, address: str, settings: BoardSettings) -> None:
        """Take the address, and how fast what is known ages."""
        self.address = address
        self.pod = ""
        """Its own name, once it has told it."""
        self.inflight = 0
        """Our own runs under way there."""
        self.probing = 0
        """Of these, the probes."""
        self.began_at = -math.inf
        """When a run was last sent there."""
        self.view = DependencyView()
        self.peers: dict[str, PeerView] = {}
        """What other routing processes have told of it, by their names."""
        self.prior = 0.0
        """How slow it seems to be before it was tried, as a logarithm."""
        self.polled: PolledState | None = None
        self._settings = settings
        self._numbers = count()
        self._log_slow = 0.0
        self._learned_at = -math.inf
        self._answered_at = -math.inf
        self._proved_at = -math.inf
        """When the last probe began that ended well: what began before says nothing any more."""
        self._first = Underway()
        self._whole = Underway()
        self._failures = 0
        self._failed_at = -math.inf
        self._away = ""
        self._away_at = -math.inf
        self._busy_until = -math.inf
        self._told_inflight = 0
        self._told_at = -math.inf
        self._limit = 0

    def begin(
        self, agent: str, now: float, usual_s: float, usual_first_s: float, *, probe: bool
    ) -> RunTicket:
        """Count a run that is sent there now."""
        ticket = RunTicket(agent, now, usual_s, probe, next(self._numbers))
        self.inflight += 1
        self.probing += probe
        self.began_at = now
        self._first.begin(ticket.number, now, usual_first_s)
        self._whole.begin(ticket.number, now, usual_s)
        return ticket

    def hear(self, ticket: RunTicket) -> None:
        """Note that the first event of a run is there."""
        ticket.heard = True
        self._first.arrive(ticket.number, ticket.began_at)
        if ticket.began_at > self._away_at:
            self._away = ""

    def end(self, ticket: RunTicket, end: RunEnd, now: float, retry_after_s: float = 0.0) -> None:
        """Learn from the end of a run."""
        self.inflight -= 1
        self.probing -= ticket.probe
        length_s = ticket.length_s(now)
        self._first.leave(ticket.number)
        if end is RunEnd.ANSWERED:
            self._answered_at = now
            self._whole.arrive(ticket.number, ticket.began_at)
            self._learn(ticket, length_s, now)
        else:
            self._whole.leave(ticket.number)
        if end is RunEnd.CUT and ratio_of(length_s, ticket.usual_s) > 1:
            self._learn(ticket, length_s, now)
        elif end is RunEnd.REFUSED:
            self._busy_until = now + max(retry_after_s, self._settings.min_busy_s)
        elif end is RunEnd.UNREACHABLE:
            self.take_silence("unreachable", now)
        elif end is RunEnd.FAILED:
            self._failures += 1
            self._failed_at = now
        elif end in (RunEnd.ANSWERED, RunEnd.ELSEWHERE):
            self._failures = 0

    def take_poll(self, state: PolledState, now: float) -> None:
        """Learn from what the replica told when it was asked."""
        self.polled = state
        self.pod = state.pod
        self._away, self._away_at = _why_not_ready(state), now
        self._take_load(state.inflight, state.limit, now)
        self.view = DependencyView(told_at=now, breakers=state.breakers, mean_s=state.mean_s)

    def take_report(self, report: LoadReport, now: float) -> None:
        """Learn from the load report that came with an answer."""
        self._take_load(report.inflight, report.limit, now)
        self.view = DependencyView(told_at=now, breakers=report.breakers, mean_s=report.mean_s)

    def take_silence(self, why: str, now: float) -> None:
        """Note that it cannot be reached, and why."""
        self._away, self._away_at = why, now

    def sick(self, now: float) -> str:
        """Return why nothing but a probe should go there; empty when it is well."""
        own = self.own_sickness(now)
        if own or now - self._answered_at < PROOF_S:
            # What we see ourselves is nearer than what we are told.
            return own
        told = (peer.sick for peer in self._fresh_peers(now) if peer.sick)
        return next(told, "")

    def own_sickness(self, now: float) -> str:
        """Return the same as far as we have seen it ourselves."""
        if self._away:
            return self._away
        failing = self._failures >= self._settings.max_failures
        if failing and now - self._failed_at < self._settings.sick_s:
            return f"failed {self._failures} times in a row"
        return ""

    @property
    def away(self) -> bool:
        """Return whether no run can work there, so that only polls find out."""
        return bool(self._away)

    def latest_view(self) -> DependencyView:
        """Return what the replica has told last of those that it calls, to us or to a peer."""
        if not self.peers:
            return self.view
        views = [self.view, *(peer.view for peer in self.peers.values())]
        return max(views, key=lambda view: view.told_at)

    def known_log(self, now: float) -> float:
        """Return the logarithm of the slowdown that ended runs show, ours and those of peers.

        Each weighs less the older it is; together they never say more than they did when new.
        """
        if not self.peers:
            log_slow, weight = self.evidence(now)
            return log_slow * weight if weight > 0 else self.prior
        told = [self.evidence(now)]
        for peer in self.peers.values():
            aged = math.exp2((peer.told_at - now) / self._settings.half_life_s)
            told.append((peer.log_slow, peer.weight * aged))
        weights = sum(weight for _, weight in told)
        if weights <= 0:
            return self.prior
        return sum(log_slow * weight for log_slow, weight in told) / max(1.0, weights)

    def evidence(self, now: float) -> tuple[float, float]:
        """Return what our own ended runs show, and what it weighs, 0–1."""
        return self._log_slow, math.exp2((self._learned_at - now) / self._settings.half_life_s)

    def hanging(self, now: float) -> float:
        """Return how far runs under way are beyond what they usually take; 1 and less is calm."""
        own = self.own_hanging(now)
        if not self.peers:
            return own
        return max(own, *(peer.hanging for peer in self._fresh_peers(now)), 0.0)

    def own_hanging(self, now: float) -> float:
        """Return the same of our own runs."""
        return max(self._first.ratio(now), self._whole.ratio(now))

    def load(self, now: float) -> float:
        """Return how many calls are in flight there: those we know of, or what it told itself."""
        told = self._told_inflight * math.exp2((self._told_at - now) / _LOAD_HALF_LIFE_S)
        known = self.inflight
        if self.peers:
            known += sum(peer.inflight for peer in self._fresh_peers(now))
        return max(known, told)

    def limit(self) -> int:
        """Return how many calls may be in flight; a usual number while it has told none."""
        return self._limit or self._settings.default_limit

    def busy(self, now: float) -> bool:
        """Return whether it has lately refused a run for having enough to do."""
        return now < self._busy_until

    def believe(self, log_ratio: float) -> None:
        """Take how slow it seems beside the others, as long as no run has told."""
        bound = math.log(_PRIOR_RATIO)
        self.prior = min(max(log_ratio, -bound), bound)

    def _learn(self, ticket: RunTicket, length_s: float, now: float) -> None:
        if ticket.began_at < self._proved_at:
            return
        log_ratio = math.log(ratio_of(length_s, ticket.usual_s))
        _, known = self.evidence(now)
        # What is known from long ago gives way to what is new, and all of it to a probe.
        step = 1.0 if ticket.probe else 1 - (1 - _STEP) * known
        self._log_slow += step * (log_ratio - self._log_slow)
        self._learned_at = now
        if ticket.probe:
            self._proved_at = ticket.began_at

    def _fresh_peers(self, now: float) -> Iterator[PeerView]:
        return (peer for peer in self.peers.values() if now - peer.told_at < FRESH_PEER_S)

    def _take_load(self, inflight: int, limit: int, now: float) -> None:
        self._told_inflight, self._told_at = inflight, now
        self._limit = limit or self._limit


def _why_not_ready(state: PolledState) -> str:
    return "" if state.ready else f"not ready: {state.detail or 'it does not say why'}"
