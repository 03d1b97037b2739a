"""Sends a second attempt when the first is later than nearly all, and takes the faster one.

For unary reads only, off unless a callee is named, and never more than a fiftieth of the calls:
every call earns a part of a token and a hedge costs a whole one, with nothing to begin with.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, TypeVar

from pydantic import Field, PositiveInt

from services.runtime.call import Call, Callee
from services.runtime.clock import Clock
from services.runtime.errors import CallerError
from services.runtime.keyed import MAX_KEYS, Keyed
from services.runtime.ranges import check_ranges
from services.runtime.recent import RecentLengths

T = TypeVar("T")

MIN_SAMPLES = 20
"""With fewer successes nobody knows what is late."""
MAX_EXTRA_RATIO = 0.02
"""More than a fiftieth of extra load would make a slow callee slower."""
PARTING_S = 0.05
"""How long the faster attempt waits for the cancelled one to put its things in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HedgeConfig:
    """Says whose calls are hedged, and at what price."""

    keys: frozenset[str] = frozenset()
    """The callees whose reads are hedged; none, because it costs load when load is scarce."""
    percentile: Annotated[float, Field(ge=0.5, le=1)] = 0.95
    """A call later than this part of the recent ones is hedged, 0.5–1; one in twenty is late."""
    max_extra_ratio: Annotated[float, Field(ge=0, le=MAX_EXTRA_RATIO)] = MAX_EXTRA_RATIO
    """Hedges per call at most, 0–0.02."""
    max_tokens: Annotated[float, Field(ge=1)] = 3.0
    """How many hedges may be saved up in quiet times, so that a burst of them stays small."""
    max_keys: PositiveInt = MAX_KEYS
    """For how many callees lengths and tokens are kept."""

    def __post_init__(self) -> None:
        """Refuse what cannot work.

        Raises:
            SettingError: a number is outside of its range.
        """
        check_ranges(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class HedgeSnapshot:
    """Describes the hedging of one callee."""

    key: str
    """The callee."""
    delay_s: float
    """When a call is late; zero while too few are known."""
    tokens: float
    """How many hedges may be sent now."""
    call_count: int
    """How many calls there were."""
    hedge_count: int
    """How many of them were hedged."""
    win_count: int
    """How many hedges were the faster ones."""


class _Record:
    """Is what is known of one callee."""

    __slots__ = ("calls", "hedges", "lengths", "tokens", "wins")

    def __init__(self) -> None:
        self.lengths = RecentLengths()
        self.tokens = 0.0
        self.calls = 0
        self.hedges = 0
        self.wins = 0


class Hedge:
    """Owns the attempts of a read that may be hedged. Touched by its event loop only.

    Both attempts run at once, so each needs a call of its own: the first is the call that is
    driven, and whoever makes the second gives it a copy (`Call.next_attempt`).
    """

    def __init__(self, config: HedgeConfig, clock: Clock, closed: Callable[[str], bool]) -> None:
        """Take the rules, and what tells whether the breaker of a callee is closed."""
        self._config = config
        self.idle = not config.keys
        self._clock = clock
        self._closed = closed
        self._records = Keyed(lambda key: _Record(), max_keys=config.max_keys)
        self._parting: set[asyncio.Task[object]] = set()

    def reconfigure(self, config: HedgeConfig) -> None:
        """Change the rules; lengths stay known, and hedges that were saved up are there still."""
        self._config = config
        self.idle = not config.keys
        self._records.resize(config.max_keys)

    def applies(self, call: Call) -> bool:
        """Tell whether the call may be hedged: a read that is answered at once."""
        return not call.streaming and self.repeats(call.callee)

    async def __call__(self, call: Call, attempt: Callable[[], Awaitable[T]]) -> T:
        """Run one attempt, and a second one when the first is late.

        Raises:
            SixhopError: the first attempt's failure, when no attempt succeeded.
        """
        if not self.applies(call):
            return await attempt()
        config, record = self._config, self._records.of(call.callee.key)
        record.calls += 1
        record.tokens = min(config.max_tokens, record.tokens + config.max_extra_ratio)
        began = self._clock.now()
        delay_s = self._delay_s(record)
        if delay_s is None or record.tokens < 1:
            result = await attempt()
        else:
            result = await self._race(call, record, attempt, delay_s)
        # Of a first attempt that was overtaken this is less than it would have taken; the budget
        # bounds what that can do.
        record.lengths.add(self._clock.now() - began)
        return result

    def repeats(self, callee: Callee) -> bool:
        """Tell whether a call to this callee may take more than one attempt here."""
        return callee.idempotent and callee.key in self._config.keys

    def snapshot(self) -> dict[str, HedgeSnapshot]:
        """Return how the hedging of every callee stands."""
        return {
            key: HedgeSnapshot(
                key=key,
                delay_s=self._delay_s(record) or 0.0,
                tokens=record.tokens,
                call_count=record.calls,
                hedge_count=record.hedges,
                win_count=record.wins,
            )
            for key, record in self._records.items()
        }

    async def wait_parted(self) -> None:
        """Wait until every attempt that lost has ended; they are cancelled already."""
        if self._parting:
            await asyncio.wait(self._parting)

    def _delay_s(self, record: _Record) -> float | None:
        if len(record.lengths) < MIN_SAMPLES:
            return None
        return record.lengths.percentile(self._config.percentile)

    async def _race(
        self, call: Call, record: _Record, attempt: Callable[[], Awaitable[T]], delay_s: float
    ) -> T:
        first = _started(attempt)
        running = {first}
        try:
            await asyncio.wait(running, timeout=delay_s)
            if first.done() or not self._pays(call, record, delay_s):
                await asyncio.wait(running)
                return first.result()
            record.tokens -= 1
            record.hedges += 1
            running.add(_started(attempt))
            winner = await _faster(first, running)
            record.wins += winner is not first
            return winner.result()
        finally:
            await self._part(running)

    def _pays(self, call: Call, record: _Record, delay_s: float) -> bool:
        """Tell whether a second attempt can be paid for, and be answered in time."""
        left_s = call.inbound.self_deadline - self._clock.now()
        return record.tokens >= 1 and left_s >= delay_s and self._closed(call.callee.key)

    async def _part(self, tasks: set[asyncio.Task[T]]) -> None:
        """Cancel what still runs. It is kept until it has ended, and its end harms nobody."""
        losers = {task for task in tasks if not task.done()}
        for task in losers:
            task.cancel()
            self._parting.add(task)
            task.add_done_callback(self._parted)
        if losers:
            # Waited for as a set: its cancel would else become ours, and gRPC would send nothing.
            await asyncio.wait(losers, timeout=PARTING_S)

    def _parted(self, task: "asyncio.Task[object]") -> None:
        self._parting.discard(task)
        if not task.cancelled():
            # Looked at, so that the loop does not report it: the other one has been taken.
            task.exception()


async def _faster(first: asyncio.Task[T], running: set[asyncio.Task[T]]) -> asyncio.Task[T]:
    """Return the first that succeeded, or that ends the matter; else the first attempt."""
    pending = set(running)
    while pending:
        done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        # Both at once: the first attempt's answer is as good, and its error is the original.
        for task in sorted(done, key=lambda task: task is not first):
            error = None if task.cancelled() else task.exception()
            if not task.cancelled() and (error is None or isinstance(error, CallerError)):
                return task
    for task in running - {first}:
        if not task.cancelled():
            task.exception()
    return first


def _started(attempt: Callable[[], Awaitable[T]]) -> "asyncio.Task[T]":
    async def run() -> T:
        return await attempt()

    return asyncio.get_running_loop().create_task(run())
