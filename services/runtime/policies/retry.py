"""Repeats a failed call when that is allowed, paid for, and can still be answered in time.

The rule is that of the design, section 3, and there is no other retry anywhere: the callee is
idempotent, the failure is its own and of a kind that passes, attempts and tokens remain, its
breaker is closed, and `r − margin − backoff ≥ 1.5 · expected`. What is expected is the p90 of
recent successes, and while there are few of them the least that is declared for the callee. A
stream is opened again only if it can begin while those before us still wait for its beginning.
"""

import math
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Literal, TypeVar

from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt

from services.runtime.call import Call, Callee, CallLimits
from services.runtime.clock import Clock
from services.runtime.errors import (
    REASONS,
    DependencyError,
    DependencyOverloadedError,
    RejectedError,
    SixhopError,
)
from services.runtime.keyed import MAX_KEYS, Keyed
from services.runtime.ranges import check_ranges
from services.runtime.recent import RecentLengths
from services.runtime.setting_text import SettingError, nearest
from services.runtime.verdict import OUT_OF_TIME, STEP_TIMEOUT

T = TypeVar("T")

MIN_SAMPLES = 20
"""With fewer successes what is declared stands for what a success takes."""
MAX_ATTEMPTS = 5
"""More would multiply a failure, whatever is configured (gRPC A6)."""


UNTAKEN = frozenset({"UNREACHABLE", "SELF_UNAVAILABLE", "LOAD_SHED", "BULKHEAD_FULL"})
"""The reasons of a callee that has surely not begun; of any other it is not known what it did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryConfig:
    """Says what is repeated, how often and how soon."""

    mode: Literal["budgeted", "blind", "off"] = "budgeted"
    """`budgeted` repeats by the rule of the design. `blind` repeats every failure of every callee
    after the same short wait, whatever it may do twice and whatever time is left: only to show
    what comes of that. Not even it runs a stream again that has given an event, a heartbeat
    included. `off` repeats nothing."""
    max_attempts: Annotated[int, Field(ge=1, le=MAX_ATTEMPTS)] = 2
    """Attempts in all, the first one included, 1–5; two, because six hops multiply."""
    retry_on: frozenset[str] = frozenset(
        {
            "UNREACHABLE",
            "CONNECTION_LOST",
            "NO_ANSWER",
            "STREAM_LOST",
            "CANCELLED",
            "SELF_UNAVAILABLE",
            "SELF_TIMEOUT",
            "PROVIDER_ERROR",
            "PROVIDER_OVERLOADED",
            "PROVIDER_RATE_LIMITED",
            "LOAD_SHED",
            "BULKHEAD_FULL",
        }
    )
    """The callee's reasons that pass by themselves; those of overload only with a pushback."""
    never_on: frozenset[str] = frozenset(
        {
            "SELF_BUG",
            "QUOTA_EXCEEDED",
            "BUDGET_TOO_SMALL",
            "CONTEXT_LENGTH",
            "CONTENT_FILTERED",
            "PROVIDER_REFUSED",
            "PROVIDER_KEY_REFUSED",
            "PROVIDER_NO_BALANCE",
            "PROVIDER_MODEL_UNKNOWN",
        }
    )
    """Reasons that are never repeated, whatever `retry_on` says: they come again. A prompt that a
    provider refuses may go elsewhere, or shorter, and never to it as it was."""
    not_for: frozenset[str] = frozenset()
    """Callees that are not repeated here; those that are hedged have to be among them."""
    max_tokens: PositiveFloat = 10.0
    """The retry budget of each callee: a failure takes one token (gRPC A6). After
    five in a row nothing is repeated: at half there is no retry any more."""
    token_ratio: NonNegativeFloat = 0.1
    """What a success gives back; so at most a tenth of the calls is repeated in the long run."""
    initial_backoff_s: NonNegativeFloat = 0.2
    """The first wait, seconds; it doubles. A busy callee gets a moment, a user waits little."""
    jitter_ratio: NonNegativeFloat = 0.5
    """The part of a wait that is added at random at most: callers must not come in step."""
    expected_factor: Annotated[float, Field(ge=1)] = 1.5
    """How many times what nine of ten successes take there must be time for; one and a half,
    because a callee that has failed is slower than before."""
    max_keys: PositiveInt = MAX_KEYS
    """For how many callees budgets are kept."""

    def __post_init__(self) -> None:
        """Refuse what cannot work.

        Raises:
            SettingError: a number is outside of its range, or a reason is none.
        """
        check_ranges(self)
        for setting in ("retry_on", "never_on"):
            for reason in sorted(getattr(self, setting) - REASONS):
                advice = f"no error has this reason{nearest(reason, sorted(REASONS))}"
                raise SettingError(setting, reason, advice, item=True)

    def backoff_s(self, number: int) -> float:
        """Return the least wait after an attempt, the first of them being number 1."""
        return self.initial_backoff_s * 2.0 ** (number - 1)

    def repeats(self, callee: Callee) -> bool:
        """Tell whether a call to a callee may take more than one attempt."""
        if self.mode != "budgeted":
            return self.mode == "blind" and self.max_attempts > 1
        return callee.idempotent and self.max_attempts > 1 and callee.key not in self.not_for

    def leaves_time(self, left_s: float, backoff_s: float, expected_s: float) -> bool:
        """Tell whether what is left until the own answer holds a backoff and another attempt."""
        return left_s - backoff_s >= self.expected_factor * expected_s


def presumed_s(callee: Callee, limits: CallLimits) -> float:
    """Return what a success takes at most by declaration, seconds, while nothing better is known.

    The step timeout holds whatever is behind a hop. A tool declares a timeout of its own, and each
    callee what is slow for it: nine of ten calls to one that is well are not.
    """
    least_s = min(limits.step_timeout_s, callee.slow_call_s)
    return least_s if callee.timeout_s is None else min(least_s, callee.timeout_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrySnapshot:
    """Describes the retry budget of one callee."""

    key: str
    """The callee."""
    tokens: float
    """What is left; at or below half of the most there is no retry."""
    expected_s: float
    """What nine of ten recent successes took; zero while too few are known."""
    retry_count: int
    """How often a call was repeated."""


class _Budget:
    """Is what one callee has left, and how long its successes take."""

    __slots__ = ("retries", "successes", "tokens")

    def __init__(self, tokens: float) -> None:
        self.tokens = tokens
        self.successes = RecentLengths()
        self.retries = 0

    def expected_s(self, otherwise_s: float) -> float:
        known = len(self.successes) >= MIN_SAMPLES
        return self.successes.percentile(0.9) if known else otherwise_s


class Retry:
    """Owns the attempts of a call. Touched by its event loop only."""

    def __init__(
        self,
        config: RetryConfig,
        clock: Clock,
        chance: random.Random,
        closed: Callable[[str], bool],
    ) -> None:
        """Take the rules, and what tells whether the breaker of a callee is closed."""
        self._config = config
        self._set_mode(config)
        self._clock = clock
        self._chance = chance
        self._closed = closed
        self._budgets = Keyed(
            lambda key: _Budget(self._config.max_tokens), max_keys=config.max_keys
        )

    def reconfigure(self, config: RetryConfig) -> None:
        """Change the rules; of its retry budget each callee keeps the part that is left.

        Its number of tokens would not do: of ten tokens five are half, and of twenty too few.
        """
        scale = config.max_tokens / self._config.max_tokens
        self._config = config
        self._set_mode(config)
        self._budgets.resize(config.max_keys)
        for budget in self._budgets.values():
            budget.tokens *= scale

    def _set_mode(self, config: RetryConfig) -> None:
        self.idle = config.mode == "off"
        self._blind = config.mode == "blind"

    def applies(self, call: Call) -> bool:
        """Tell whether the call may take more than one attempt."""
        # What must not be sent twice need not be looked at more closely.
        return (call.callee.idempotent or self._blind) and self._config.repeats(call.callee)

    async def __call__(self, call: Call, attempt: Callable[[], Awaitable[T]]) -> T:
        """Run attempts until one succeeds or none may follow.

        `call.last_chance` is set for the last of several attempts, when no alternative needs
        what would be left. A single attempt keeps to its share: the caller has other steps.

        Raises:
            SixhopError: the failure of the last attempt; or that of the one before, when the
                last was not even begun.
        """
        key = call.callee.key
        budget = self._budgets.known(key) or self._budgets.of(key)
        first_until = math.inf
        if call.streaming and not self._blind:
            first_until = _first_event_until(call, self._clock.now())
        failure: SixhopError | None = None
        number = 1
        while True:
            if number > 1:
                last = number == self._config.max_attempts
                call.last_chance = last and not call.alternatives
            began = self._clock.now()
            try:
                result = await attempt()
            except RejectedError as refusal:
                # That the repetition was refused is not why the call has failed.
                raise failure or refusal from None
            except SixhopError as error:
                failure = error
            else:
                budget.successes.add(self._clock.now() - began)
                # By the rules of now: they may have changed meanwhile.
                config = self._config
                budget.tokens = min(config.max_tokens, budget.tokens + config.token_ratio)
                return result
            backoff_s = self._backoff_before_next(call, budget, failure, number)
            soonest = self._clock.now() + (backoff_s or 0.0) + budget.expected_s(0.0)
            if backoff_s is None or soonest > first_until:
                raise failure
            await self._clock.sleep(backoff_s)
            if not self._worth_it_still(call):
                raise failure
            budget.retries += 1
            number += 1

    def snapshot(self) -> dict[str, RetrySnapshot]:
        """Return the budget of every callee."""
        return {
            key: RetrySnapshot(
                key=key,
                tokens=budget.tokens,
                expected_s=budget.expected_s(0.0),
                retry_count=budget.retries,
            )
            for key, budget in self._budgets.items()
        }

    def _backoff_before_next(
        self, call: Call, budget: _Budget, error: SixhopError, number: int
    ) -> float | None:
        """Return how long to wait before the next attempt; None when there is none."""
        config = self._config
        if self._blind:
            again = number < config.max_attempts and not call.delivered
            return config.initial_backoff_s if again else None
        if not self._passes(call, error):
            return None
        # It counts whether or not it may be repeated: it tells how the callee is.
        budget.tokens = max(0.0, budget.tokens - 1)
        if number >= config.max_attempts or not config.repeats(call.callee):
            return None
        if call.streaming and call.delivered:
            return None
        if call.callee.paid and not _reasons(error) & UNTAKEN:
            return None
        if budget.tokens <= config.max_tokens / 2 or not self._closed(call.callee.key):
            return None
        backoff_s = self._backoff_s(call.callee, error, number)
        if backoff_s is None:
            return None
        expected_s = budget.expected_s(presumed_s(call.callee, call.limits))
        left_s = call.inbound.self_deadline - self._clock.now()
        return backoff_s if config.leaves_time(left_s, backoff_s, expected_s) else None

    def _passes(self, call: Call, error: SixhopError) -> bool:
        """Tell whether the failure is the callee's own and of a kind that may pass."""
        if not isinstance(error, DependencyError) or error.origin is None:
            return False
        # What a hop behind the callee has done was for the callee to repeat.
        if error.origin.hop != call.dependency:
            return False
        # A wait that ended by the share has spent what may be spent on this callee: the rest is
        # for something lesser. One that ended by the step's own limit was short. A stream that is
        # late has used up what those who wait for our own first event wait.
        if error.origin.reason in OUT_OF_TIME and (call.streaming or error.cause != STEP_TIMEOUT):
            return False
        reasons = _reasons(error)
        return not reasons & self._config.never_on and bool(reasons & self._config.retry_on)

    def _backoff_s(self, callee: Callee, error: SixhopError, number: int) -> float | None:
        """Return the callee's pushback, or our own wait; None when it is told not to come back.

        Where something stands in for the callee, nobody waits longer than the own wait.
        """
        wait_s = self._config.backoff_s(number)
        if error.retry_after_s is not None:
            patient = not callee.has_stand_in or error.retry_after_s <= wait_s
            return error.retry_after_s if error.retry_after_s >= 0 and patient else None
        if isinstance(error, DependencyOverloadedError):
            return None
        return wait_s + self._chance.uniform(0.0, self._config.jitter_ratio * wait_s)

    def _worth_it_still(self, call: Call) -> bool:
        """Tell whether the wait has changed nothing that matters."""
        if self._blind:
            return True
        return self._clock.now() < call.inbound.self_deadline and self._closed(call.callee.key)


def _reasons(error: SixhopError) -> frozenset[str]:
    """Return the error's reason, and that of whoever it began with."""
    return frozenset({error.reason, error.origin_reason})


def _first_event_until(call: Call, now: float) -> float:
    """Return until when a stream's next attempt must have begun to answer.

    Those who wait for our own first event wait no longer than we do for the callee's: what would
    come later is told as a failure at once, so that they can turn elsewhere.
    """
    limits = call.limits
    longest_s = limits.step_timeout_s
    if limits.first_content_timeout_s is not None:
        longest_s = min(longest_s, limits.first_content_timeout_s)
    return now + min(longest_s, limits.share * (call.inbound.deadline - now))
