"""Holds compression to what is true of every conversation."""

import subprocess
import sys
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from services.runtime.compression.compress import (
    WHOLE_ROUNDS,
    CannotFitError,
    Compressed,
    compress,
    smallest,
)
from services.runtime.compression.keywords import by_counting
from services.runtime.compression.rounds import split
from services.runtime.compression.tokens import ESTIMATE, TokenCounter
from services.runtime.conversation import Message
from tests.requirements import requirement
from tests.unit.runtime.compression.conversations import (
    CharacterCounter,
    SurchargingCounter,
    WholeWordCounter,
    chat,
    conversations,
)

COUNTERS = [ESTIMATE, CharacterCounter(), WholeWordCounter(), SurchargingCounter()]
counters = st.sampled_from(COUNTERS)
targets = st.integers(0, 1500)


def attempt(messages: list[Message], target: int, counter: TokenCounter) -> Compressed | None:
    """Return the result; None when it is right to refuse."""
    try:
        return compress(
            messages,
            target_tokens=target,
            counter=counter,
            keep_reasoning=True,
            extract=by_counting,
        )
    except CannotFitError:
        return None


def moved(messages: list[Message]) -> list[Message]:
    """Return the conversation as it is moved, with nothing left out."""
    whole = compress(messages, target_tokens=10**9, keep_reasoning=True)
    return list(whole.messages)


@requirement("compression:fits")
@settings(max_examples=50)
@given(conversations, targets, counters)
def test_the_result_fits_or_is_refused(
    messages: list[Message], target: int, counter: TokenCounter
) -> None:
    done = attempt(messages, target, counter)

    if done is None:
        assert counter.count(smallest(messages, keep_reasoning=True)).count > target
    else:
        assert counter.count(done.messages).count == done.report.tokens_after <= target


@requirement("compression:whole-rounds")
@settings(max_examples=50)
@given(conversations, targets, counters)
def test_what_stays_is_whole_and_in_order(
    messages: list[Message], target: int, counter: TokenCounter
) -> None:
    done = attempt(messages, target, counter)

    assume(done)
    assert done is not None
    parts = split(moved(messages))
    kept = parts.rounds[done.report.dropped_rounds :]
    gone = parts.rounds[: done.report.dropped_rounds]
    assert len(kept) == done.report.kept_rounds >= min(WHOLE_ROUNDS, len(parts.rounds))
    tail = [message for each in kept for message in each.messages]
    rules = [message for each in gone for message in each.instructions]
    assert list(done.messages[len(done.messages) - len(tail) - len(rules) :]) == rules + tail
    head = done.messages[: len(done.messages) - len(tail) - len(rules)]
    assert all(message.role == "system" for message in head)
    assert head[: max(0, len(parts.head) - 1)] == parts.head[:-1]
    if parts.head:
        assert head[-1].content.startswith(parts.head[-1].content)


@requirement("compression:whole-rounds")
@settings(max_examples=50)
@given(conversations, targets, counters)
def test_no_tool_round_is_split(
    messages: list[Message], target: int, counter: TokenCounter
) -> None:
    done = attempt(messages, target, counter)

    assume(done)
    assert done is not None
    before, after = dangling(messages), dangling(done.messages)
    assert after[0] <= before[0]
    assert after[1] <= before[1]


def dangling(messages: Sequence[Message]) -> tuple[int, int]:
    """Return how many results have no call before them, and how many calls no result after."""
    open_calls: Counter[str] = Counter()
    results = 0
    for message in messages:
        open_calls.update(call.id for call in message.tool_calls)
        if message.role == "tool" and open_calls[message.tool_call_id] > 0:
            open_calls[message.tool_call_id] -= 1
        elif message.role == "tool":
            results += 1
    return results, open_calls.total()


@settings(max_examples=50)
@given(conversations, targets, counters)
def test_the_same_conversation_gives_the_same_result(
    messages: list[Message], target: int, counter: TokenCounter
) -> None:
    assert attempt(messages, target, counter) == attempt(messages, target, counter)


@settings(max_examples=50)
@given(conversations, targets)
def test_a_compressed_conversation_is_not_compressed_again(
    messages: list[Message], target: int
) -> None:
    done = attempt(messages, target, ESTIMATE)

    assume(done)
    assert done is not None
    again = attempt(list(done.messages), target, ESTIMATE)
    assert again is not None
    assert again.messages == done.messages


@requirement("compression:keeps-facts")
@settings(max_examples=20)
@given(st.lists(st.integers(10_000, 99_999), min_size=4, max_size=40, unique=True))
def test_every_fact_of_the_dropped_rounds_survives_while_there_is_room(numbers: list[int]) -> None:
    messages = chat(*(f"Order ORD-{number} is late. {'filler ' * 400}" for number in numbers))

    done = compress(messages, target_tokens=4_000, extract=by_counting)

    sent = "\n".join(message.content for message in done.messages)
    assert all(f"ORD-{number}" in sent for number in numbers)


@requirement("compression:fits")
def test_the_result_does_not_depend_on_the_seed_of_hashes() -> None:
    pytest.importorskip("yake")
    program = (
        "from tests.unit.runtime.compression.conversations import chinese_history, history\n"
        "from services.runtime.compression.compress import compress\n"
        "both = [*history(30), *chinese_history(30)[1:]]\n"
        "done = compress(both, target_tokens=4000)\n"
        "print(ascii(done.messages[0].content))"
    )

    said = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }

    assert len(said) == 1
