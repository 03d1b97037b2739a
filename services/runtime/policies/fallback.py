"""Gives something lesser when a call has failed for good, and says what, how old and why."""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Annotated, Any, TypeVar

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat

from services.runtime.call import Alternative, Call, Degradation, Fallback
from services.runtime.clock import Clock
from services.runtime.errors import (
    CallerError,
    DeadlineMissingError,
    SelfBugError,
    SixhopError,
)
from services.runtime.keyed import Keyed
from services.runtime.ranges import check_ranges
from services.runtime.setting_text import SettingError

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupConfig:
    """Says how the model that stands in is asked."""

    window_tokens: Annotated[int, Field(ge=256)] = 4096
    """What prompt and answer may have together while it has not told; few models have less, and
    no conversation fits below 256."""
    first_token_s: NonNegativeFloat = 0.25
    """What its first word takes while nobody knows, seconds. With less left it is not asked; a
    quarter of a second, because too high a guess costs an answer that it would have given, and too
    low a one only tells the error a moment later."""
    refresh_interval_s: PositiveFloat = 30.0
    """How often it is asked what it can, seconds; a model is changed by a new start."""
    refresh_timeout_s: PositiveFloat = 2.0
    """How long that may take, seconds; it is asked for nothing that it would have to look up."""
    compress_timeout_s: PositiveFloat = 1.0
    """The longest time for fitting a conversation to it, seconds, and never more than a fifth of
    what is left: whoever waits has waited for the first model already."""

    def __post_init__(self) -> None:
        """Refuse what cannot work.

        Raises:
            SettingError: a number is outside of its range.
        """
        check_ranges(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class FallbackConfig:
    """Says what may be given instead."""

    enabled: bool = True
    """Without it every failure is told; a profile that shows why it is there turns it off."""
    mechanisms: frozenset[Fallback] = frozenset(Fallback) - {Fallback.NONE}
    """The kinds that may be given, whatever a callee declares; all of them."""
    max_cached_count: NonNegativeInt = 256
    """How many answers are kept to be given again; a few for each question that comes often."""
    max_cached_bytes: NonNegativeInt = 16 * 1024 * 1024
    """What they may weigh together; a hop takes 40 MB without them."""
    backup: BackupConfig = BackupConfig()
    """How the model is asked that stands in for the first one, where there is one."""

    def __post_init__(self) -> None:
        """Refuse what cannot work.

        Raises:
            SettingError: a bound is below zero, or a mechanism gives nothing.
        """
        check_ranges(self)
        if Fallback.NONE in self.mechanisms:
            advice = "it gives nothing; leave it out, or set enabled = false"
            raise SettingError("mechanisms", Fallback.NONE, advice, item=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class FallbackSnapshot:
    """Counts, since the start, what was given in place of an answer."""

    counts: Mapping[Fallback, int]
    """Of all callees, by mechanism."""
    callees: Mapping[str, Mapping[Fallback, int]]
    """Of each callee, by mechanism."""


@dataclass(frozen=True, slots=True)
class Given:
    """Is what was given in place of an answer."""

    answer: Any
    degradation: Degradation


class AlternativeMissingError(Exception):
    """Says that an alternative has nothing to give; the next one is tried."""


class FallbackDriver:
    """Owns what is given in place of an answer. Outermost: it sees what the attempts came to."""

    idle = False
    applies = staticmethod(attrgetter("alternatives"))
    """Tells whether there is anything to give; no function of Python's, for every call is asked."""

    def __init__(self, config: FallbackConfig, clock: Clock) -> None:
        """Take the rules."""
        self._config = config
        self._clock = clock
        self._counts: Counter[Fallback] = Counter()
        self._callees: Keyed[Counter[Fallback]] = Keyed(lambda key: Counter())
        self.answers = AnswerCache(
            clock, max_count=config.max_cached_count, max_bytes=config.max_cached_bytes
        )
        """What callees have answered, for those that declare that it may be given again."""

    def snapshot(self) -> FallbackSnapshot:
        """Return what has been given."""
        callees = {key: dict(counts) for key, counts in self._callees.items()}
        return FallbackSnapshot(counts=dict(self._counts), callees=callees)

    def reconfigure(self, config: FallbackConfig) -> None:
        """Change the rules, for failures from now on."""
        self._config = config
        self.answers.resize(max_count=config.max_cached_count, max_bytes=config.max_cached_bytes)

    @property
    def backup(self) -> BackupConfig | None:
        """Return how another model is asked instead; None when none may be."""
        config = self._config
        allowed = config.enabled and Fallback.BACKUP in config.mechanisms
        return config.backup if allowed else None

    def note_given(self, key: str, mechanism: Fallback) -> None:
        """Count what was given in place of a callee's answer by somebody else than this driver."""
        self._counts[mechanism] += 1
        self._callees.of(key)[mechanism] += 1

    async def __call__(self, call: Call, attempt: Callable[[], Awaitable[T]]) -> T:
        """Run the call; when it fails, try its alternatives in their order.

        What is given instead is told by `call.degradation`.

        Raises:
            SixhopError: the call's own failure, when no alternative fits; never an alternative's.
        """
        began = self._clock.now()
        try:
            return await attempt()
        except (CallerError, DeadlineMissingError, SelfBugError):
            # The same call would fail anywhere, and a defect must be seen.
            raise
        except SixhopError as error:
            # A consumer that has had a part of the answer must not get another one's.
            if call.delivered:
                raise
            given = await self.give(
                call.callee.key,
                call.alternatives,
                error,
                waited_s=self._clock.now() - began,
                until=call.inbound.self_deadline,
            )
            if given is None:
                raise
            call.degradation = given.degradation
            answer: T = given.answer
            return answer

    async def give(
        self,
        key: str,
        alternatives: Sequence[Alternative],
        error: SixhopError,
        *,
        waited_s: float,
        until: float,
    ) -> Given | None:
        """Return the first alternative that fits; None when there is none.

        Args:
            key: the callee.
            alternatives: what may be given, best first.
            error: what makes it necessary.
            waited_s: how long ago the call began.
            until: the instant until which there is time.
        """
        if not self._config.enabled:
            return None
        for alternative in alternatives:
            found = await self._try(alternative, until)
            if found:
                aged_s = waited_s if alternative.mechanism is Fallback.CACHE else 0.0
                degradation = Degradation(
                    mechanism=alternative.mechanism,
                    reason=error.reason,
                    age_s=alternative.age_s + aged_s,
                    message=error.message,
                )
                self.note_given(key, alternative.mechanism)
                alternative.tell(degradation)
                return Given(found[0], degradation)
        return None

    async def _try(self, alternative: Alternative, until: float) -> list[Any]:
        """Return what an alternative gives, in a list; an empty one when it does not fit."""
        left_s = until - self._clock.now()
        if alternative.mechanism not in self._config.mechanisms:
            return []
        if left_s <= 0 or left_s < alternative.expected_s:
            return []
        try:
            async with asyncio.timeout(left_s):
                return [await alternative.run()]
        except (SixhopError, AlternativeMissingError, TimeoutError):
            return []


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedAnswer:
    """Is an answer that was given before."""

    answer: Any
    """What was given; whoever keeps it must not change it any more."""
    age_s: float
    """How long ago that was, seconds."""


@dataclass(slots=True)
class _Entry:
    """Is one place of the cache."""

    answer: Any
    kept_at: float
    size_bytes: int


class AnswerCache:
    """Keeps the last answers of callees, by callee and request, within a bound of memory."""

    def __init__(
        self, clock: Clock, *, max_count: int = 256, max_bytes: int = 16 * 1024 * 1024
    ) -> None:
        """Take the bounds: how many answers, and how many bytes of them as their keepers say."""
        self._clock = clock
        self._max_count = max_count
        self._max_bytes = max_bytes
        self._entries: OrderedDict[tuple[str, str], _Entry] = OrderedDict()
        self.size_bytes = 0
        """What is kept now."""

    def __len__(self) -> int:
        """Return how many answers are kept."""
        return len(self._entries)

    def resize(self, *, max_count: int, max_bytes: int) -> None:
        """Change the bounds; what does not fit any more is dropped, the least used first."""
        self._max_count = max_count
        self._max_bytes = max_bytes
        self._fit()

    def keep(self, key: str, digest: str, answer: Any, *, size_bytes: int) -> None:
        """Keep an answer in place of an older one; one that is larger than all may be is not.

        Args:
            key: the callee.
            digest: tells this request from every other, its tenant included.
            answer: what to give again.
            size_bytes: about what it weighs.
        """
        self._drop((key, digest))
        if size_bytes > self._max_bytes:
            return
        self._entries[key, digest] = _Entry(answer, self._clock.now(), size_bytes)
        self.size_bytes += size_bytes
        self._fit()

    def find(self, key: str, digest: str, *, max_age_s: float) -> CachedAnswer | None:
        """Return the answer to the same request, unless it is older than may be given."""
        entry = self._entries.get((key, digest))
        if entry is None:
            return None
        age_s = self._clock.now() - entry.kept_at
        if age_s > max_age_s:
            self._drop((key, digest))
            return None
        self._entries.move_to_end((key, digest))
        return CachedAnswer(answer=entry.answer, age_s=age_s)

    def alternative(
        self,
        key: str,
        digest: str,
        *,
        max_age_s: float,
        load: Callable[[Any], Any] = lambda kept: kept,
        tell: Callable[[Degradation], None] = lambda degradation: None,
    ) -> Alternative | None:
        """Return the same as an alternative of a call that begins now.

        Args:
            key: the callee.
            digest: of the request.
            max_age_s: how old the answer may be.
            load: makes an answer of what was kept.
            tell: is told when it is given.
        """
        found = self.find(key, digest, max_age_s=max_age_s)
        if found is None:
            return None

        async def give() -> Any:
            return load(found.answer)

        return Alternative(mechanism=Fallback.CACHE, run=give, age_s=found.age_s, tell=tell)

    def _fit(self) -> None:
        while len(self._entries) > self._max_count or self.size_bytes > self._max_bytes:
            self._drop(next(iter(self._entries)))

    def _drop(self, place: tuple[str, str]) -> None:
        entry = self._entries.pop(place, None)
        if entry is not None:
            self.size_bytes -= entry.size_bytes
