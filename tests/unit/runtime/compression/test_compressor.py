"""Compresses beside the event loop, in time, by the backup's own count."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

import pytest

from services.runtime.clock import MonotonicClock
from services.runtime.compression import compressor as module
from services.runtime.compression.compress import CannotFitError, Compressed, compress, smallest
from services.runtime.compression.compressor import MAX_COUNTS, MAX_WAITING, Compressor
from services.runtime.compression.keywords import by_counting
from services.runtime.compression.tokens import ESTIMATE, TokenCount
from services.runtime.conversation import Message
from services.runtime.errors import BulkheadFullError
from tests.requirements import requirement
from tests.unit.runtime.compression.conversations import chat, history

AMPLE_S = 15.0


class Worked:
    """Stands before `compress`: notes in which thread it ran, and can hold it up there."""

    def __init__(self) -> None:
        """Hold nothing up."""
        self.threads: list[str] = []
        self.begun = threading.Event()
        self.go_on = threading.Event()
        self.go_on.set()

    def __call__(self, messages: Sequence[Message], **options: Any) -> Compressed:
        """Compress, by keywords that load nothing."""
        name = threading.current_thread().name
        self.threads.append(name.rstrip("0123456789_"))
        self.begun.set()
        if name.startswith("compression"):
            assert self.go_on.wait(AMPLE_S)
        return compress(messages, **options, extract=by_counting)


@pytest.fixture
def worked(monkeypatch: pytest.MonkeyPatch) -> Iterator[Worked]:
    """Return what stands before `compress`; lets everything go at the end."""
    stand_in = Worked()
    monkeypatch.setattr(module, "compress", stand_in)
    yield stand_in
    stand_in.go_on.set()


def run(scenario: Callable[[Compressor], Awaitable[Any]]) -> Any:
    """Run a scenario on a loop with real time, for threads know no other."""

    async def whole() -> Any:
        compressor = Compressor(MonotonicClock())
        try:
            async with asyncio.timeout(AMPLE_S):
                return await scenario(compressor)
        finally:
            compressor.close()

    return asyncio.run(whole())


class Counting:
    """Is a backup that counts the estimate times a ratio."""

    def __init__(self, ratio: float) -> None:
        """Take the ratio."""
        self.ratio = ratio
        self.asked: list[tuple[Message, ...]] = []

    async def __call__(self, messages: Sequence[Message]) -> TokenCount:
        """Count."""
        self.asked.append(tuple(messages))
        return TokenCount(int(ESTIMATE.count(messages).count * self.ratio), exact=True)


@requirement("compression:off-the-loop")
def test_a_long_conversation_is_compressed_in_the_thread(worked: Worked) -> None:
    done = run(lambda it: it.compress(history(60), target_tokens=4_000, timeout_s=AMPLE_S))

    assert worked.threads == ["compression"]
    assert done == compress(history(60), target_tokens=4_000, extract=by_counting)


def test_a_short_one_that_fits_needs_no_thread(worked: Worked) -> None:
    messages = chat("one", "two")

    done = run(lambda it: it.compress(messages, target_tokens=4_000, timeout_s=AMPLE_S))

    assert worked.threads == ["MainThread"]
    assert done.messages == tuple(messages)


def test_a_short_one_that_does_not_fit_is_noted_in_the_thread(worked: Worked) -> None:
    messages = chat(*(f"Order ORD-{index} is late. " * 5 for index in range(8)))

    done = run(lambda it: it.compress(messages, target_tokens=320, timeout_s=AMPLE_S))

    assert worked.threads == ["compression"]
    assert "ORD-0" in done.messages[0].content


def test_a_long_one_is_not_even_counted_on_the_loop(worked: Worked) -> None:
    messages = history(60)

    done = run(lambda it: it.compress(messages, target_tokens=10**6, timeout_s=AMPLE_S))

    assert worked.threads == ["compression"]
    assert done.messages == tuple(messages)


@requirement("compression:off-the-loop")
def test_what_takes_too_long_is_left_out_without_a_note(worked: Worked) -> None:
    worked.go_on.clear()

    done = run(lambda it: it.compress(history(60), target_tokens=4_000, timeout_s=0.2))

    assert worked.threads == ["compression", "MainThread"]
    assert done.report.dropped_rounds > 0
    assert done.report.facts_kept == 0
    assert ESTIMATE.count(done.messages).count <= 4_000


def test_without_any_time_nothing_waits(worked: Worked) -> None:
    done = run(lambda it: it.compress(history(60), target_tokens=4_000, timeout_s=0))

    assert worked.threads == ["MainThread"]
    assert done.report.dropped_rounds > 0


@requirement("compression:off-the-loop")
def test_a_cancel_leaves_at_once_and_what_was_queued_is_not_begun(worked: Worked) -> None:
    worked.go_on.clear()

    async def scenario(compressor: Compressor) -> list[Any]:
        tasks = [
            asyncio.create_task(
                compressor.compress(history(60), target_tokens=4_000, timeout_s=AMPLE_S)
            )
            for _ in range(3)
        ]
        assert await asyncio.to_thread(worked.begun.wait, AMPLE_S)
        for task in tasks:
            task.cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    ended = run(scenario)

    assert [type(each) for each in ended] == [asyncio.CancelledError] * 3
    assert worked.threads == ["compression"]


@requirement("compression:off-the-loop")
def test_behind_a_few_others_nobody_waits(worked: Worked) -> None:
    worked.go_on.clear()

    async def scenario(compressor: Compressor) -> list[Compressed]:
        tasks = [
            asyncio.create_task(
                compressor.compress(history(60), target_tokens=4_000, timeout_s=AMPLE_S)
            )
            for _ in range(MAX_WAITING + 3)
        ]
        at_once, _ = await asyncio.wait(tasks[MAX_WAITING:], timeout=AMPLE_S / 3)
        assert len(at_once) == 3
        worked.go_on.set()
        return await asyncio.gather(*tasks)

    done = run(scenario)

    assert [each.report.facts_kept > 0 for each in done] == [True] * MAX_WAITING + [False] * 3


@requirement("compression:counted-by-the-backup")
def test_a_backup_that_counts_less_gets_more_rounds(worked: Worked) -> None:
    exact = Counting(0.6)
    estimated = compress(history(60), target_tokens=6_000, extract=by_counting)

    done = run(
        lambda it: it.compress(history(60), target_tokens=6_000, timeout_s=AMPLE_S, exact=exact)
    )

    assert done.report.exact
    assert done.report.dropped_rounds < estimated.report.dropped_rounds
    assert 5_000 < done.report.tokens_after <= 6_000
    assert len(exact.asked) <= MAX_COUNTS


@requirement("compression:counted-by-the-backup")
def test_a_backup_that_counts_more_gets_fewer_rounds(worked: Worked) -> None:
    exact = Counting(1.5)

    done = run(
        lambda it: it.compress(history(60), target_tokens=6_000, timeout_s=AMPLE_S, exact=exact)
    )

    assert done.report.exact
    assert ESTIMATE.count(done.messages).count * 1.5 <= 6_001
    assert len(exact.asked) <= MAX_COUNTS


@requirement("compression:counted-by-the-backup")
def test_a_count_that_fails_leaves_the_estimate_that_says_so(worked: Worked) -> None:
    async def exact(messages: Sequence[Message]) -> TokenCount:
        raise BulkheadFullError("no permit")

    done = run(
        lambda it: it.compress(history(60), target_tokens=6_000, timeout_s=AMPLE_S, exact=exact)
    )

    assert not done.report.exact
    assert ESTIMATE.count(done.messages).count <= 6_000


def test_a_count_that_never_comes_is_not_waited_for(worked: Worked) -> None:
    async def exact(messages: Sequence[Message]) -> TokenCount:
        await asyncio.Event().wait()
        raise AssertionError("nobody sets it")

    done = run(lambda it: it.compress(history(60), target_tokens=6_000, timeout_s=0.5, exact=exact))

    assert not done.report.exact
    assert ESTIMATE.count(done.messages).count <= 6_000


def test_what_fits_by_the_backups_count_alone_is_compressed(worked: Worked) -> None:
    messages = history(10)
    target = ESTIMATE.count(smallest(messages)).count - 200
    exact = Counting(0.5)

    done = run(
        lambda it: it.compress(messages, target_tokens=target, timeout_s=AMPLE_S, exact=exact)
    )

    assert exact.asked[0] == smallest(messages)
    assert done.report.exact
    assert done.report.tokens_after <= target
    assert done.report.dropped_rounds < 7


def test_what_cannot_fit_by_the_backups_count_is_refused_with_it(worked: Worked) -> None:
    messages = history(10)
    needed = ESTIMATE.count(smallest(messages)).count

    with pytest.raises(CannotFitError) as caught:
        run(
            lambda it: it.compress(
                messages, target_tokens=needed // 2, timeout_s=AMPLE_S, exact=Counting(0.9)
            )
        )

    assert caught.value.exact
    assert caught.value.needed == int(needed * 0.9)


def test_what_cannot_fit_by_the_estimate_is_refused_when_nobody_counts(worked: Worked) -> None:
    with pytest.raises(CannotFitError) as caught:
        run(lambda it: it.compress(history(10), target_tokens=500, timeout_s=AMPLE_S))

    assert not caught.value.exact


def test_the_backup_is_asked_a_few_times_only(worked: Worked) -> None:
    asked: list[int] = []

    async def exact(messages: Sequence[Message]) -> TokenCount:
        asked.append(len(messages))
        return TokenCount(6_001, exact=True)

    done = run(
        lambda it: it.compress(history(60), target_tokens=6_000, timeout_s=AMPLE_S, exact=exact)
    )

    assert len(asked) == MAX_COUNTS
    assert not done.report.exact


def test_what_finds_keywords_can_be_loaded_early() -> None:
    assert run(lambda it: it.prepare()) is None
