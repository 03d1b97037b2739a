"""Computes who may wait how long, and refuses what cannot be paid for.

All lengths are seconds. `R` is the time remaining when a call arrived at this hop, `r` the
time remaining now, both to the caller's deadline. The arithmetic is that of the design,
section 3.
"""

import math
from dataclasses import dataclass

from services.runtime.call import Call, CallLimits, Inbound
from services.runtime.clock import Clock
from services.runtime.errors import (
    BudgetTooSmallError,
    DeadlineMissingError,
    DependencyFailedError,
    Origin,
    SelfTimeoutError,
    SixhopError,
)
from services.runtime.guarding import Guard

MAX_SHARE = 0.6
"""No hop waits for its callee longer than this part of what it has left."""
MARGIN_RATIO = 0.12
MIN_MARGIN_S = 0.05
MAX_MARGIN_S = 1.0
WIRE_EXCESS_RATIO = 1 / 30
"""gRPC may send an earlier timeout of the same connection again that is up to 3.1 % longer."""


def margin_s(time_remaining_on_arrival_s: float) -> float:
    """Return how long before the caller's deadline a hop answers by itself.

    `clamp(0.12 · R, 0.05, 1.0)`: a caller that times out first leaves no trace in Envoy. Above
    30 s it is `R / 30`, because what arrives may be that much more than what the caller has.
    """
    # Comparisons, because every call comes here and max() costs four of them.
    if time_remaining_on_arrival_s > MAX_MARGIN_S / WIRE_EXCESS_RATIO:
        return WIRE_EXCESS_RATIO * time_remaining_on_arrival_s
    margin = MARGIN_RATIO * time_remaining_on_arrival_s
    if margin < MIN_MARGIN_S:
        return MIN_MARGIN_S
    return margin if margin < MAX_MARGIN_S else MAX_MARGIN_S


def floor_to_grid(timeout_s: float) -> float:
    """Return the timeout that, rounded up by gRPC on the wire, stays below the one given.

    gRPC sends whole milliseconds under 1 s and from there three digits, always rounded up: tens
    of milliseconds under 10 s, hundreds under 100 s, and so on. Floor to that grid and take one
    step off.
    """
    if timeout_s < 1:
        steps_in_1_s = 1000.0
    elif timeout_s < 10:
        steps_in_1_s = 100.0
    elif timeout_s < 100:
        steps_in_1_s = 10.0
    elif timeout_s < 1_000:
        steps_in_1_s = 1.0
    elif timeout_s < 10_000:
        steps_in_1_s = 0.1
    else:
        steps_in_1_s = 0.01
    # The nudge keeps what is on the grid there: 1.1 · 100 is 110.00…01, and others fall short.
    steps = math.floor(timeout_s * steps_in_1_s + 1e-9) - 1
    return steps / steps_in_1_s if steps > 0 else 0.0


def attempt_timeout_s(limits: CallLimits, remaining_s: float) -> float:
    """Return what one unary attempt gets: `min(step_timeout_s, share · r)`."""
    share = limits.share if limits.share < MAX_SHARE else MAX_SHARE
    share_s, step_s = share * remaining_s, limits.step_timeout_s
    # Comparisons, because every attempt comes here and min() costs four of them.
    return share_s if share_s < step_s else step_s


def last_attempt_timeout_s(
    limits: CallLimits, inbound: Inbound, now: float, *, reserve_s: float = 0.0
) -> float:
    """Return what the last attempt of a call gets: nothing can follow that needs the rest.

    `min(step_timeout_s, r − margin_s − reserve_s, share · R)`.
    """
    share = min(limits.share, MAX_SHARE)
    return min(
        limits.step_timeout_s,
        inbound.self_deadline - now - reserve_s,
        share * inbound.time_remaining_on_arrival_s,
    )


@dataclass(slots=True)
class StreamWait:
    """Bounds every wait of one stream.

    The first event within `min(step_timeout_s, share · r)`, each later one within
    `min(read_timeout_s, share · r)` of the one before, the first content within
    `min(first_content_timeout_s, share · r)` of the start, all before `whole_until`.
    """

    limits: CallLimits
    deadline: float
    """The caller's deadline, an instant."""
    whole_until: float
    """The instant at which the stream ends, come what may."""
    first_until: float = 0.0
    content_until: float = math.inf
    first_cause: str = "step_timeout"
    content_cause: str = "first_content_timeout"

    @classmethod
    def begin(cls, limits: CallLimits, deadline: float, now: float, whole_s: float) -> "StreamWait":
        """Return the limits of a stream that begins now and may last `whole_s`."""
        wait = cls(limits, deadline, now + whole_s)
        first_s, wait.first_cause = wait._shorter(limits.step_timeout_s, "step_timeout", now)
        wait.first_until = now + first_s
        if limits.first_content_timeout_s is not None:
            content_s, wait.content_cause = wait._shorter(
                limits.first_content_timeout_s, "first_content_timeout", now
            )
            wait.content_until = now + content_s
        return wait

    def _shorter(self, limit_s: float, cause: str, now: float) -> tuple[float, str]:
        share_s = min(self.limits.share, MAX_SHARE) * max(0.0, self.deadline - now)
        return (share_s, "deadline_share") if share_s < limit_s else (limit_s, cause)

    def first_wait_until(self) -> tuple[float, str]:
        """Return until when the first event may be waited for, and which limit says so."""
        return self._nearest(self.first_until, self.first_cause)

    def next_wait_until(self, now: float) -> tuple[float, str]:
        """Return until when a later event may be waited for, and which limit says so."""
        gap_s, cause = self._shorter(self.limits.read_timeout_s, "read_timeout", now)
        return self._nearest(now + gap_s, cause)

    def _nearest(self, until: float, cause: str) -> tuple[float, str]:
        if self.content_until < until:
            until, cause = self.content_until, self.content_cause
        if self.whole_until < until:
            until, cause = self.whole_until, "deadline"
        return until, cause

    def content_arrived(self) -> None:
        """Note that the first content is there: from now on only gaps and the whole count."""
        self.content_until = math.inf


def own_timeout(inbound: Inbound) -> SixhopError:
    """Return whose fault it is that the time of a call is up.

    A hop that was cut off while it waited for a dependency tells the dependency's failure: only
    its own slow work may count against it.
    """
    given_s = inbound.time_remaining_on_arrival_s
    if not inbound.cut_wait:
        return SelfTimeoutError(
            f"{inbound.hop} could not finish {inbound.method} within the {given_s:.2f} s it had",
            cause="deadline",
        )
    return DependencyFailedError(
        inbound.cut_wait,
        f"{inbound.cut_wait} had not answered when the {given_s:.2f} s of {inbound.hop} were over",
        cause="deadline",
        origin=Origin(inbound.cut_wait, code="DEADLINE_EXCEEDED", reason="NO_ANSWER"),
    )


class ServerDeadline(Guard[Inbound]):
    """Gives every call a deadline and a margin, or refuses it."""

    def __init__(
        self,
        clock: Clock,
        *,
        default_deadline_s: float | None = None,
        max_deadline_s: float | None = None,
    ) -> None:
        """Take the edge's rules; inner hops have none and refuse a missing deadline."""
        self._clock = clock
        self.reconfigure(default_deadline_s=default_deadline_s, max_deadline_s=max_deadline_s)

    def reconfigure(
        self, *, default_deadline_s: float | None, max_deadline_s: float | None
    ) -> None:
        """Change the edge's rules, for calls from now on."""
        self._default_s = default_deadline_s
        self._max_s = max_deadline_s

    def before(self, inbound: Inbound) -> None:
        """Set the call's deadline and margin.

        Raises:
            DeadlineMissingError: the call has none, and no default applies.
            BudgetTooSmallError: there is no time to do anything.
        """
        remaining_s = inbound.deadline - inbound.arrived_at
        if remaining_s == math.inf:
            if self._default_s is None:
                raise DeadlineMissingError(
                    f"{inbound.method} was called without a deadline; pass a timeout with the call"
                )
            remaining_s = self._default_s
        if self._max_s is not None:
            remaining_s = min(remaining_s, self._max_s)
        inbound.deadline = deadline = inbound.arrived_at + remaining_s
        inbound.margin_s = margin = margin_s(remaining_s)
        if deadline - margin <= self._clock.now():
            raise BudgetTooSmallError(
                f"{remaining_s:.3f} s are left on arrival, and {inbound.margin_s:.3f} s of them "
                "are needed to answer; call with a longer deadline",
                cause="arrival",
            )


class ClientDeadline(Guard[Call]):
    """Gives every attempt its timeout and every stream its limits, or refuses to send."""

    def __init__(self, clock: Clock) -> None:
        """Take the clock."""
        self._clock = clock

    def before(self, call: Call) -> None:
        """Set the attempt's limits.

        Raises:
            BudgetTooSmallError: what is left is not worth sending.
        """
        now = self._clock.now()
        inbound, limits = call.inbound, call.limits
        remaining_s = inbound.deadline - now
        if call.streaming:
            whole_s = floor_to_grid(inbound.self_deadline - now)
            call.attempt_timeout_s = whole_s
            call.wait_limit = StreamWait.begin(limits, inbound.deadline, now, whole_s)
            useful_s = min(whole_s, attempt_timeout_s(limits, remaining_s))
        else:
            wanted_s = (
                last_attempt_timeout_s(limits, inbound, now)
                if call.last_chance
                else attempt_timeout_s(limits, remaining_s)
            )
            # Late in a call the share is more than what is left until our own answer.
            most_s = remaining_s - inbound.margin_s
            if wanted_s > most_s:
                wanted_s = most_s
            useful_s = call.attempt_timeout_s = floor_to_grid(wanted_s)
        if useful_s < limits.min_useful_s or useful_s <= 0:
            raise BudgetTooSmallError(
                f"{call.dependency} would get {max(useful_s, 0.0):.3f} s of the "
                f"{max(remaining_s, 0.0):.3f} s left and needs {limits.min_useful_s:.3f} s; "
                "call with a longer deadline",
                cause="not_worth_sending",
                details={"dependency": call.dependency},
            )
