"""Refuses calls to a dependency that is known to be sick, and finds out when it is well again."""

import math
from collections import OrderedDict, deque
from collections.abc import Callable

from services.runtime.call import FAILURE, IGNORED, OFF, SUCCESS, Call, Mode, Outcome
from services.runtime.circuit import (
    CLOSED,
    HALF_OPEN,
    BreakerChange,
    BreakerConfig,
    BreakerSnapshot,
    BreakerState,
    Circuit,
    Reason,
    Watched,
    refusal,
)
from services.runtime.clock import Clock
from services.runtime.errors import CircuitOpenError
from services.runtime.guarding import Guard
from services.runtime.keyed import Keyed
from services.runtime.recent import RecentCalls
from services.runtime.verdict import correction, verdict

_UNSEEN = -1
"""The epoch of an attempt that was let pass by a breaker which only observes."""


class Breaker:
    """Watches one callee. A decision takes the same time, however many calls there are."""

    def __init__(
        self, key: str, config: BreakerConfig, clock: Clock, tell: Callable[[BreakerChange], None]
    ) -> None:
        """Take what to watch, and who is told of changes."""
        self.key = key
        self.state = CLOSED
        self.forced = False
        self.slow_call_s = 2.0
        self.has_stand_in = False  # then failures count like slow calls
        self._config = config
        self._clock = clock
        self._tell = tell
        self._circuit = Circuit(key, self._changed)
        self._epoch = 0
        self._moved_at = clock.now()
        self._until = math.inf
        # No later than the instant at which time alone changes something; looked at instead of it.
        self._due = -math.inf
        self._window = RecentCalls(config.window_s)
        # When the last calls proved slow, or failed where something stands in; -inf for the others.
        self._marks: deque[float] = deque(maxlen=config.slow_of)
        # In the order of their starts: those under way of which it is not known yet.
        self._waiting: OrderedDict[Watched, None] = OrderedDict()
        self._overdue, self._overdue_starts = 0, 0.0
        self._probes = 0
        self._probed = False
        self._trips = 0
        self._reason, self._told = Reason.NEW, ""
        self._before = self._describe(clock.now())

    def reconfigure(self, config: BreakerConfig) -> None:
        """Change the rules; state, window and probes stay, and its present state ends by them."""
        now = self._clock.now()
        self.catch_up(now)
        self._config = config
        self._window.move(now)
        self._window.resize(config.window_s)
        self._marks = deque(self._marks, maxlen=config.slow_of)
        if not self.forced:
            self._until = self._moved_at + self._longest_s(self.state)
        self._due = -math.inf

    def begin(self) -> Watched:
        """Let an attempt start.

        Raises:
            CircuitOpenError: the callee is sick, or enough probes are under way.
        """
        now = self._clock.now()
        if now >= self._due:
            self.catch_up(now)
        # Filled here and not by a constructor, because every attempt comes here.
        attempt = Watched()
        attempt.breaker, attempt.epoch, attempt.started_at = self, self._epoch, now
        attempt.length_s, attempt.overdue, attempt.probe = None, False, False
        if self.state is not CLOSED:
            refused = self._refusal(now)
            if refused is not None:
                if self._config.mode is Mode.ENFORCE:
                    raise refused
                # It passes as if it had been refused: what it comes to must not be looked at.
                attempt.epoch = _UNSEEN
                return attempt
            attempt.probe = self._probed = True
            self._probes += 1
        self._waiting[attempt] = None
        if now + self.slow_call_s < self._due:
            self._due = now + self.slow_call_s
        return attempt

    def pause(self, attempt: Watched) -> None:
        """Look away while an attempt waits for something of ours; a probe stays one."""
        self._waiting.pop(attempt, None)

    def resume(self, attempt: Watched) -> None:
        """Count the time of an attempt from now on."""
        attempt.started_at = now = self._clock.now()
        if attempt.epoch == self._epoch:
            self._waiting[attempt] = None
            self._due = min(self._due, now + self.slow_call_s)

    def first_event(self, attempt: Watched) -> None:
        """Note that a stream has begun: that is what its callee needed for an answer."""
        now = self._clock.now()
        if now >= self._due:
            self.catch_up(now)
        attempt.length_s = now - attempt.started_at
        self._settle(attempt, SUCCESS, now)

    def end(self, attempt: Watched, outcome: Outcome, told: str = "") -> None:
        """Take the end of an attempt; `told` is what has to be corrected before any can succeed."""
        now = self._clock.now()
        if now >= self._due:
            self.catch_up(now)
        if outcome is SUCCESS and attempt in self._waiting:
            # As _settle, because almost every attempt ends so.
            del self._waiting[attempt]
            self._marks.append(-math.inf)
        else:
            self._settle(attempt, outcome, now)
        if attempt.probe:
            self._probes -= 1
        # What began in an earlier state says nothing.
        if attempt.epoch != self._epoch or outcome is IGNORED:
            return
        if told and not self.forced:
            self._move(BreakerState.OPEN, Reason.REFUSES_ALL, now, told)
            return
        if self.state is HALF_OPEN:
            good = outcome is SUCCESS
            state = CLOSED if good else BreakerState.OPEN
            self._move(state, Reason.PROBE_SUCCEEDED if good else Reason.PROBE_FAILED, now)
            return
        length_s = now - attempt.started_at if attempt.length_s is None else attempt.length_s
        window = self._window
        window.add(now, length_s, failed=outcome is FAILURE)
        slow = window.total_s > window.call_count * self.slow_call_s
        # Where none of these is so nothing that is judged can be wrong.
        if slow or window.failure_count or self._overdue or self.has_stand_in:
            self._judge(now)

    def catch_up(self, now: float) -> None:
        """See what has changed by the passing of time alone."""
        if self._waiting and now - next(iter(self._waiting)).started_at > self.slow_call_s:
            self._mark_overdue(now)
        if now >= self._until:
            self._time_is_up(now)
        oldest = next(iter(self._waiting), None)
        overdue_at = math.inf if oldest is None else oldest.started_at + self.slow_call_s
        self._due = min(self._until, overdue_at)

    def is_closed(self) -> bool:
        """Tell whether calls pass freely now."""
        now = self._clock.now()
        if now >= self._due:
            self.catch_up(now)
        return self.state is CLOSED

    def declare_slow(self, slow_call_s: float) -> None:
        """Take what the callee declares to be slow."""
        self.slow_call_s = slow_call_s
        self._due = -math.inf

    def force(self, state: BreakerState, until: float) -> None:
        """Put it into a state and hold it there until an instant."""
        self._move(state, Reason.OPERATOR, self._clock.now())
        self.forced = True
        self._until = until
        self._due = -math.inf

    def release(self) -> None:
        """Begin anew."""
        self._move(CLOSED, Reason.OPERATOR, self._clock.now())

    def snapshot(self) -> BreakerSnapshot:
        """Return how it stands now."""
        now = self._clock.now()
        self.catch_up(now)
        return self._describe(now)

    def _refusal(self, now: float) -> CircuitOpenError | None:
        half_open = self.state is HALF_OPEN
        if half_open and self._probes < self._config.max_probes:
            return None
        after_s = self.slow_call_s if half_open else self._remaining_s(now)
        return refusal(self.key, self.state, self._reason, self._told, after_s)

    def _settle(self, attempt: Watched, outcome: Outcome, now: float) -> None:
        """Stop watching the age of an attempt."""
        if attempt.epoch != self._epoch:
            return
        if attempt in self._waiting:
            del self._waiting[attempt]
            if outcome is not IGNORED:
                self._marks.append(now if outcome is FAILURE and self.has_stand_in else -math.inf)
        elif attempt.overdue:
            attempt.overdue = False
            self._overdue -= 1
            self._overdue_starts -= attempt.started_at

    def _mark_overdue(self, now: float) -> None:
        while self._waiting:
            attempt = next(iter(self._waiting))
            if now - attempt.started_at <= self.slow_call_s:
                break
            del self._waiting[attempt]
            attempt.overdue = True
            self._overdue += 1
            self._overdue_starts += attempt.started_at
            self._marks.append(now)
        if self.state is HALF_OPEN:
            self._move(BreakerState.OPEN, Reason.PROBE_SLOW, now)
        elif self._slow_count(now) >= self._config.slow_count and not self.forced:
            self._move(BreakerState.OPEN, Reason.SLOW_CALLS, now)
        else:
            self._judge(now)

    def _judge(self, now: float) -> None:
        if self.forced:
            return
        config, window, calls = self._config, self._window, self._window.call_count
        if calls >= config.min_calls and window.failure_count > config.max_failure_ratio * calls:
            self._move(BreakerState.OPEN, Reason.FAILURE_RATIO, now)
        elif self.has_stand_in and self._slow_count(now) >= config.slow_count:
            self._move(BreakerState.OPEN, Reason.FEW_CALLS, now)
        elif calls + self._overdue >= config.min_calls and self._mean_s(now) > self.slow_call_s:
            self._move(BreakerState.OPEN, Reason.MEAN_LATENCY, now)

    def _mean_s(self, now: float) -> float:
        overdue_s = self._overdue * now - self._overdue_starts
        count = self._window.call_count + self._overdue
        return (self._window.total_s + overdue_s) / count if count else 0.0

    def _slow_count(self, now: float) -> int:
        return sum(mark >= now - self._config.slow_within_s for mark in self._marks)

    def _time_is_up(self, now: float) -> None:
        if self.state is BreakerState.OPEN:
            self._move(HALF_OPEN, Reason.OPEN_OVER, now)
        elif self.state is HALF_OPEN and not self._probed and self._probes:
            self._move(BreakerState.OPEN, Reason.PROBES_STUCK, now)
        elif self.state is HALF_OPEN:
            self._move(CLOSED, Reason.HALF_OPEN_OVER, now)
        else:
            self.release()

    def _move(self, state: BreakerState, reason: Reason, now: float, told: str = "") -> None:
        self._before = self._describe(now)
        self._reason, self._told = reason, told
        self.forced = False
        self._moved_at = now
        self._until = now + self._longest_s(state)
        self._due = -math.inf
        self._circuit.move(state)

    def _longest_s(self, state: BreakerState) -> float:
        if state is BreakerState.OPEN:
            return self._config.open_duration_s
        return self._config.max_half_open_s if state is HALF_OPEN else math.inf

    def _changed(self, old: BreakerState, new: BreakerState) -> None:
        self.state = new
        self._epoch += 1
        self._window.clear()
        self._marks.clear()
        self._waiting.clear()
        self._overdue, self._overdue_starts = 0, 0.0
        self._probed = False
        if old is new:
            return
        self._trips += new is BreakerState.OPEN
        why, told, was = self._reason, self._told, self._before
        self._tell(
            BreakerChange(key=self.key, old=old, new=new, reason=why, told=told, numbers=was)
        )

    def _remaining_s(self, now: float) -> float | None:
        if self.state is not BreakerState.OPEN or math.isinf(self._until):
            return None
        return max(0.0, self._until - now)

    def _describe(self, now: float) -> BreakerSnapshot:
        self._window.move(now)
        calls = self._window.call_count
        return BreakerSnapshot(
            key=self.key,
            state=self.state,
            reason=self._reason,
            forced=self.forced,
            retry_after_s=self._remaining_s(now),
            call_count=calls,
            failure_ratio=self._window.failure_count / calls if calls else 0.0,
            mean_latency_s=self._mean_s(now),
            slow_count=self._slow_count(now),
            overdue=self._overdue,
            probes=self._probes,
            trip_count=self._trips,
            epoch=self._epoch,
            age_s=now - self._moved_at,
            told=self._told,
        )


class Breakers(Guard[Call]):
    """Guards every attempt by the breaker of its callee. Touched by its event loop only."""

    def __init__(
        self,
        config: BreakerConfig,
        clock: Clock,
        tell: Callable[[BreakerChange], None] = lambda change: None,
    ) -> None:
        """Take the rules, the clock, and who is told of changes of state."""
        self.config = config
        """The rules that hold now."""
        self._clock = clock
        self._keyed = Keyed(
            lambda key: Breaker(key, self.config, clock, tell),
            max_keys=config.max_keys,
            spare=lambda breaker: breaker.forced or breaker.state is not CLOSED,
        )

    def reconfigure(self, config: BreakerConfig) -> None:
        """Change the rules of every breaker; what each has learned stays."""
        self.config = config
        self._keyed.resize(config.max_keys)
        for breaker in self._keyed.values():
            breaker.reconfigure(config)

    def before(self, call: Call) -> None:
        """Let an attempt start.

        Raises:
            CircuitOpenError: the callee is sick, or enough probes are under way.
        """
        if self.config.mode is OFF:
            call.watched = None
            return
        callee = call.callee
        breaker = self._keyed.known(callee.key) or self._keyed.of(callee.key)
        if breaker.slow_call_s != callee.slow_call_s:
            breaker.declare_slow(callee.slow_call_s)
        breaker.has_stand_in = callee.has_stand_in
        call.watched = breaker.begin()

    def first_event(self, call: Call) -> None:
        """Note that the stream of a call has given its first event."""
        attempt: Watched | None = call.watched
        if attempt is not None:
            attempt.breaker.first_event(attempt)

    def after(self, call: Call, error: BaseException | None) -> None:
        """Take the end of an attempt; a stream's comes when it is left."""
        attempt: Watched | None = call.watched
        if attempt is not None:
            outcome = SUCCESS if error is None else verdict(error, call)
            attempt.breaker.end(attempt, outcome, "" if error is None else correction(error))

    def state(self, key: str) -> BreakerState:
        """Return what the breaker of a callee does with calls now; closed for an unknown one."""
        breaker = self._keyed.find(key)
        if breaker is None:
            return CLOSED
        breaker.catch_up(self._clock.now())
        return breaker.state

    def closed(self, key: str) -> bool:
        """Tell whether calls to a callee pass freely."""
        breaker = self._keyed.find(key) if self.config.mode is Mode.ENFORCE else None
        return breaker is None or breaker.is_closed()

    def snapshot(self) -> dict[str, BreakerSnapshot]:
        """Return how every breaker stands now, by callee."""
        return {key: breaker.snapshot() for key, breaker in self._keyed.items()}

    def force_open(self, key: str, *, for_s: float = math.inf) -> None:
        """Refuse every call to a callee: for a length, or until it is released."""
        self._keyed.of(key).force(BreakerState.OPEN, self._clock.now() + for_s)

    def force_closed(self, key: str, *, for_s: float = math.inf) -> None:
        """Let every call pass, whatever happens: for a length, or until it is released."""
        self._keyed.of(key).force(CLOSED, self._clock.now() + for_s)

    def release(self, key: str) -> None:
        """Let a callee's breaker decide again; it begins closed, with nothing remembered."""
        self._keyed.of(key).release()
