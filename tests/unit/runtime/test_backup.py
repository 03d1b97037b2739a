"""Holds the model that stands in to being sent what it can read in time."""

import asyncio
from dataclasses import replace

import pytest

from services.runtime.backup import DoesNotFitError, Fitted
from services.runtime.compression.tokens import ESTIMATE
from services.runtime.conversation import Message, ToolCall
from services.runtime.generation import ModelCard
from services.runtime.policies.fallback import BackupConfig
from tests.requirements import requirement
from tests.unit.runtime.two_models import CARD, OPTIONS, QUESTION, Pair, failed, pair
from tests.waiting import until

RULES = BackupConfig()
SENTENCE = "Order 4711 of Mei Nakamura was shipped to the harbour on 2026-03-14 for 99.50 EUR. "


def talk(rounds: int, sentences: int = 5) -> list[Message]:
    """Return a conversation of so many rounds, and a question."""
    said = [
        message
        for number in range(rounds)
        for message in (
            Message("user", f"Question {number}: {SENTENCE * sentences}"),
            Message("assistant", f"Answer {number}: {SENTENCE * sentences}"),
        )
    ]
    return [Message("system", "Be kind."), *said, Message("user", "And the last one?")]


async def fitted(both: Pair, messages: list[Message], **known: object) -> Fitted:
    """Return what of a conversation is sent."""
    options: dict[str, object] = {"left_s": 20.0} | known
    return await both.backup.fit(messages, RULES, **options)  # type: ignore[arg-type]


async def test_a_short_conversation_is_sent_whole() -> None:
    found = await fitted(pair([]), QUESTION, compressed=True, options=OPTIONS)

    assert (found.messages, found.compression) == (QUESTION, "")
    assert found.options == OPTIONS


@requirement("failover:fits-the-window")
async def test_a_conversation_that_is_too_long_is_compressed_and_says_so() -> None:
    both, messages = pair([]), talk(60)

    found = await fitted(both, messages)

    assert ESTIMATE.count(messages).count > CARD.window_tokens
    assert ESTIMATE.count(found.messages).count <= CARD.window_tokens - 512
    assert found.messages[-7:] == messages[-7:], "the last rounds are whole"
    assert "rounds were left out" in found.compression


@requirement("failover:fits-the-window")
async def test_the_models_own_count_decides_where_an_estimate_may_be_wrong() -> None:
    both, messages = pair([]), talk(20)
    both.second.ratio = 2.0

    found = await fitted(both, messages)

    assert ESTIMATE.count(messages).count < CARD.window_tokens - 512
    assert found.compression
    assert found.token_count <= CARD.window_tokens - 512


@requirement("failover:fits-the-window")
async def test_a_conversation_whose_end_alone_is_too_long_does_not_fit() -> None:
    both = pair([])

    with pytest.raises(DoesNotFitError):
        await fitted(both, [Message("user", SENTENCE * 2000)])


REASONED = [
    Message("user", "Where is order 4711?"),
    Message("assistant", "", (ToolCall("c1", "sql", "{}"),), reasoning="I have to look it up."),
    Message("tool", "shipped", tool_call_id="c1"),
    Message("assistant", "It was shipped.", reasoning="The result says so."),
    Message("user", "And the last one?"),
]


@requirement("failover:reasoning")
@pytest.mark.parametrize("rounds", [0, 60])
@pytest.mark.parametrize(
    ("card", "sent"),
    [
        (replace(CARD, wants_reasoning=True), ["", "I have to look it up.", "", "", ""]),
        (CARD, [""] * 5),
        (None, [""] * 5),
    ],
    ids=["wants it", "does not", "has not told"],
)
async def test_reasoning_before_tool_calls_goes_back_only_to_a_model_that_wants_it(
    rounds: int, card: ModelCard | None, sent: list[str]
) -> None:
    both = pair([])
    both.backup.card = card

    found = await fitted(both, [*talk(rounds)[:-1], *REASONED])

    assert bool(found.compression) is (rounds > 0)
    assert [message.reasoning for message in found.messages[-5:]] == sent
    assert [message.content for message in found.messages[-5:]] == [
        message.content for message in REASONED
    ]


async def test_where_less_was_advised_half_of_it_is_sent() -> None:
    both, messages = pair([]), talk(12)

    whole = await fitted(both, messages)
    less = await fitted(both, messages, compressed=True)

    assert whole.compression == ""
    assert less.compression
    assert less.token_count <= whole.token_count / 2


async def test_what_would_be_read_too_long_is_compressed() -> None:
    both, messages = pair([]), talk(12)
    for _ in range(5):
        # A hundred tokens in a second.
        both.backup.note_first(1.0, 100)

    found = await fitted(both, messages, left_s=20.0)

    assert found.compression
    assert found.token_count <= 1000


async def test_what_was_written_already_takes_its_room() -> None:
    both, messages = pair([]), talk(12)
    both.backup.card = ModelCard(name="small", window_tokens=4096, max_output_tokens=512)

    found = await fitted(both, messages, prefix="word " * 1000)

    assert found.messages[-1] == Message("assistant", "word " * 1000)
    assert found.compression
    assert ESTIMATE.count(found.messages).count <= 4096 - 512


async def test_a_model_that_has_not_told_is_taken_for_a_small_one() -> None:
    both = pair([])
    both.backup.card = None

    found = await fitted(both, talk(30))

    assert found.options.max_output_tokens == RULES.window_tokens // 4
    assert ESTIMATE.count(found.messages).count <= RULES.window_tokens * 3 // 4


@requirement("failover:card")
async def test_what_a_model_can_is_learned_again_and_again_and_kept_while_it_is_away() -> None:
    both = pair([])
    both.backup.card = None
    learning = asyncio.create_task(both.backup.learn_forever("domain", RULES))

    await until(lambda: both.backup.name == "small")
    both.second.card = failed("UNREACHABLE")
    both.clock.advance(RULES.refresh_interval_s)
    await until(lambda: both.second.described_count == 2)
    kept = both.backup.card
    both.second.card = ModelCard(name="other", window_tokens=1, max_output_tokens=1)
    both.clock.advance(RULES.refresh_interval_s)
    await until(lambda: both.backup.name == "other")

    assert kept == CARD
    learning.cancel()
    await asyncio.wait({learning})
