"""Compresses conversations beside the event loop, inside a time and by the backup's own count."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from services.runtime.clock import Clock
from services.runtime.compression.compress import CannotFitError, Compressed, compress, smallest
from services.runtime.compression.keywords import installed, word_count
from services.runtime.compression.tokens import ESTIMATE, TokenCount, texts_of
from services.runtime.conversation import Message
from services.runtime.errors import SixhopError

INLINE_WORDS = 2_000
"""A conversation of more words is not even counted on the event loop."""
_INLINE_CHARACTERS = 6 * INLINE_WORDS
"""Nor one of more characters, so that nobody need look for its words."""
MAX_WAITING = 4
"""How many compressions the thread may have before it: a note is worth no longer wait."""
MAX_COUNTS = 3
"""How often the backup is asked to count, for one compression."""
_SHARE = 0.6
"""The part of the time remaining that the thread may take; the rest is for what comes after it."""
_FULL_ENOUGH = 0.85
"""A result that uses this much of the window is not tried again for one round more."""
_CAUTION = 0.98

ExactCount = Callable[[Sequence[Message]], Awaitable[TokenCount]]
"""Counts by the backup's own tokenizer, as a call to its hop does.

May raise SixhopError; is cancelled when the time is over.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """Holds what stays the same in all tries of one compression."""

    messages: Sequence[Message]
    target_tokens: int
    language: str
    keep_reasoning: bool
    until: float
    """The instant when the time is over."""

    def result(self, *, target_tokens: int, with_note: bool) -> Compressed:
        """Compress; blocks, for a second at the very most."""
        return compress(
            self.messages,
            target_tokens=target_tokens,
            language=self.language,
            keep_reasoning=self.keep_reasoning,
            with_note=with_note,
        )


class Compressor:
    """Owns the one thread of a process in which conversations are compressed.

    One, because the work holds the interpreter: when a provider fails under load, many runs come
    at once, and each that would wait too long for its turn leaves rounds out without a note. A
    thread cannot be killed. What it looks at is bounded, so that it ends by itself, about a second
    later at most, and a work that nobody waits for any more is not begun.
    """

    def __init__(self, clock: Clock) -> None:
        """Take the clock; the first long conversation makes the thread."""
        self._clock = clock
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="compression")
        self._waiting = 0

    async def prepare(self) -> None:
        """Load what finds keywords, so that no failover pays for that; half a second."""
        await asyncio.wrap_future(self._executor.submit(installed))

    def close(self) -> None:
        """Take no more work; what runs ends by itself."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    async def compress(
        self,
        messages: Sequence[Message],
        *,
        target_tokens: int,
        timeout_s: float,
        language: str = "en",
        keep_reasoning: bool = False,
        exact: ExactCount | None = None,
    ) -> Compressed:
        """Return a conversation that the backup can read, within a time and a few milliseconds.

        Without an exact counter, or when it fails or there is no time for it, the result fits by
        the estimate, and its report says so.

        Args:
            messages: the conversation, oldest first.
            target_tokens: what the backup can read, less its answer and the tools it is offered.
            timeout_s: the longest time, exact counts included.
            language: of the note, `en` or `zh`.
            keep_reasoning: see `compress`.
            exact: the backup's own count.

        Raises:
            CannotFitError: what always stays is too long, by the exact count where there was one.
        """
        work = _Work(
            messages=tuple(messages),
            target_tokens=target_tokens,
            language=language,
            keep_reasoning=keep_reasoning,
            until=self._clock.now() + timeout_s,
        )
        if exact is None:
            return await self._estimated(work, target_tokens)
        return await self._counted(work, exact)

    async def _counted(self, work: _Work, exact: ExactCount) -> Compressed:
        """Try targets of the estimate until the exact count is right, a few times at most."""
        target = work.target_tokens
        best: Compressed | None = None
        for _ in range(MAX_COUNTS):
            try:
                tried = await self._estimated(work, target)
            except CannotFitError as error:
                if best is not None:
                    return best
                # The estimate may be too high by half: only the backup can say that it is not.
                least = smallest(work.messages, keep_reasoning=work.keep_reasoning)
                count = await self._in_time(work, exact, least)
                if count is None:
                    raise
                if count.count > work.target_tokens:
                    raise CannotFitError(
                        count.count, work.target_tokens, exact=count.exact
                    ) from None
                target = max(error.needed, _scaled(work, error.needed, count))
                continue
            count = await self._in_time(work, exact, tried.messages)
            if count is None:
                return best or tried
            if count.count <= work.target_tokens:
                fitting = replace(tried, report=tried.report.counted(count))
                if best is None or fitting.report.dropped_rounds < best.report.dropped_rounds:
                    best = fitting
                enough = _FULL_ENOUGH * work.target_tokens
                if not tried.report.dropped_rounds or count.count >= enough:
                    return best
            target = _scaled(work, tried.report.tokens_after, count)
        return best or await self._estimated(work, target)

    async def _estimated(self, work: _Work, target: int) -> Compressed:
        """Compress by the estimate: in the thread, or without a note when that takes too long."""
        if not _is_long(work.messages) and ESTIMATE.count(work.messages).count <= target:
            return work.result(target_tokens=target, with_note=False)
        left_s = work.until - self._clock.now()
        if left_s > 0 and self._waiting < MAX_WAITING:
            self._waiting += 1
            try:
                async with asyncio.timeout(left_s * _SHARE):
                    return await asyncio.wrap_future(
                        self._executor.submit(work.result, target_tokens=target, with_note=True)
                    )
            except TimeoutError:
                pass
            finally:
                self._waiting -= 1
        # Some milliseconds, for any length: rounds are only counted.
        return work.result(target_tokens=target, with_note=False)

    async def _in_time(
        self, work: _Work, exact: ExactCount, messages: Sequence[Message]
    ) -> TokenCount | None:
        """Return the exact count; None when it fails or the time is over."""
        left_s = work.until - self._clock.now()
        if left_s <= 0:
            return None
        try:
            async with asyncio.timeout(left_s):
                return await exact(messages)
        except (SixhopError, TimeoutError):
            return None


def _scaled(work: _Work, estimated: int, counted: TokenCount) -> int:
    """Return the target by which the estimate will mean what the backup counts."""
    return int(work.target_tokens * estimated / max(1, counted.count) * _CAUTION)


def _is_long(messages: Sequence[Message]) -> bool:
    if sum(len(message.content) for message in messages) > _INLINE_CHARACTERS:
        return True
    words = 0
    for message in messages:
        for text in texts_of(message):
            words += word_count(text, most=INLINE_WORDS + 1)
            if words > INLINE_WORDS:
                return True
    return False
