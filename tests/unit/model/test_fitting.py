"""Holds prompts to fitting their time, and to staying what their callers wrote."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.model.backend import Prompt
from services.model.fitting import (
    MIN_USEFUL_TOKENS,
    TimeNote,
    fitted,
    words_within,
)
from services.model.pace import TRIAL_INTERVAL_S, Pace
from services.runtime.clock import ManualClock
from services.runtime.conversation import Message
from services.runtime.errors import BudgetTooSmallError
from tests.requirements import requirement
from tests.unit.model.test_pace import measured

SYSTEM = Message("system", "Be kind.")
ENGLISH = Message("user", "How many orders are there?")
CHINESE = Message("user", "有多少订单？")


def prompt(*messages: Message, wanted: int = 500) -> Prompt:
    """Return what is asked."""
    return Prompt(messages or (SYSTEM, ENGLISH), max_output_tokens=wanted)


@requirement("time-to-tokens:nothing-cut-without-knowledge")
def test_an_unknown_provider_is_asked_for_all_and_told_the_time() -> None:
    found = fitted(prompt(), 20.0, Pace(ManualClock()))

    assert found.max_output_tokens == 500
    assert found.messages == [
        Message("system", "Be kind.\n\nYou have about 15 s to answer."),
        ENGLISH,
    ]


@requirement("time-to-tokens:fits")
def test_an_answer_that_fits_is_asked_for_as_it_is() -> None:
    pace, _ = measured(0.5, 0.01)

    found = fitted(prompt(), 20.0, pace, "short")

    assert found == prompt()


@requirement("time-to-tokens:asked-for-shorter")
@pytest.mark.parametrize(
    ("question", "note"),
    [
        (
            ENGLISH,
            "You have about 8 s to answer. Answer in at most 35 words, and end your last sentence.",
        ),
        (CHINESE, "你大约有8秒的时间来回答。请用不超过45个字回答，并写完最后一句。"),
    ],
)
def test_an_answer_that_would_be_cut_is_asked_for_shorter_in_its_language(
    question: Message, note: str
) -> None:
    pace, _ = measured(1.0, 0.1)

    found = fitted(prompt(SYSTEM, question), 9.0, pace)

    # Of 9 s 0.9 are kept and one is the first token's.
    assert found.max_output_tokens in (71, 72)
    assert found.messages[0].content == f"Be kind.\n\n{note}"


@requirement("time-to-tokens:asked-for-shorter")
def test_a_prompt_without_a_system_gets_one() -> None:
    pace, _ = measured(1.0, 0.1)

    found = fitted(prompt(ENGLISH), 9.0, pace, "short")

    assert [message.role for message in found.messages] == ["system", "user"]


@pytest.mark.parametrize(
    ("note", "told"),
    [("always", ("about 8 s", "35 words")), ("short", ("about 8 s", "35 words")), ("never", ())],
)
def test_what_is_said_of_the_time_is_a_setting(note: TimeNote, told: tuple[str, ...]) -> None:
    pace, _ = measured(1.0, 0.1)

    found = fitted(prompt(), 9.0, pace, note)

    said = found.messages[0].content
    assert found.max_output_tokens < 500
    assert all(words in said for words in told)
    assert told or said == SYSTEM.content


@requirement("time-to-tokens:fits")
def test_a_time_that_does_not_suffice_for_a_sentence_is_refused() -> None:
    pace, _ = measured(1.0, 0.1)

    with pytest.raises(BudgetTooSmallError, match=r"in the 2\.25 s left .* 13 of the 16") as at:
        fitted(prompt(), 2.5, pace)

    assert at.value.cause == "time_to_tokens"


@requirement("time-to-tokens:few-slow-refuse-nobody")
def test_a_few_slow_answers_of_others_refuse_nobody() -> None:
    pace, _ = measured(0.4, 0.02)
    for _ in range(2):
        pace.note_first(20.0)
        pace.note_rate(100, 50.0)

    found = fitted(prompt(wanted=20), 2.5, pace)

    assert pace.tokens_within(2.25) == 0
    assert found.max_output_tokens == 20


@requirement("time-to-tokens:few-slow-refuse-nobody")
def test_while_nothing_is_learned_one_answer_is_tried_now_and_then() -> None:
    pace, clock = measured(5.0, 0.1)

    def tried() -> bool:
        try:
            return fitted(prompt(wanted=20), 2.5, pace).max_output_tokens == 20
        except BudgetTooSmallError:
            return False

    at_once = tried()
    clock.advance(TRIAL_INTERVAL_S)
    later = [tried() for _ in range(3)]
    clock.advance(TRIAL_INTERVAL_S)

    assert not at_once
    assert later == [True, False, False]
    assert tried()


def test_a_caller_that_wants_a_word_gets_it_where_a_sentence_has_no_time() -> None:
    pace, _ = measured(1.0, 0.1)

    assert fitted(prompt(wanted=5), 2.5, pace).max_output_tokens == 5


MESSAGES = st.lists(
    st.builds(Message, st.sampled_from(["system", "user", "assistant"]), st.text(max_size=20)),
    min_size=1,
    max_size=6,
)


@requirement("time-to-tokens:fits", "time-to-tokens:asked-for-shorter")
@given(
    messages=MESSAGES,
    wanted=st.integers(1, 4000),
    left_s=st.floats(0.05, 120.0),
    first_s=st.floats(0.01, 5.0),
    interval_s=st.floats(0.002, 0.5),
    known=st.booleans(),
    note=st.sampled_from(["always", "short", "never"]),
)
def test_never_more_than_the_caller_wants_never_less_than_is_useful_and_nothing_is_rewritten(
    messages: list[Message],
    wanted: int,
    left_s: float,
    first_s: float,
    interval_s: float,
    known: bool,
    note: TimeNote,
) -> None:
    pace, _ = measured(first_s, interval_s, count=5 if known else 0)

    try:
        found = fitted(Prompt(messages, max_output_tokens=wanted), left_s, pace, note)
    except BudgetTooSmallError:
        assert known
        assert first_s + (min(wanted, MIN_USEFUL_TOKENS) - 1) * interval_s > 0.9 * left_s - 0.1
        return

    assert min(wanted, MIN_USEFUL_TOKENS) <= found.max_output_tokens <= wanted
    assert known or found.max_output_tokens == wanted
    if found.max_output_tokens < wanted:
        assert first_s + (found.max_output_tokens - 1) * interval_s <= left_s
    kept = found.messages[-len(messages) :]
    assert len(found.messages) - len(messages) in (0, 1)
    for before, after in zip(messages, kept, strict=True):
        if before.role != "system":
            assert before == after
        assert after.content.startswith(before.content)


@given(token_count=st.integers(16, 10_000), language=st.sampled_from(["en", "zh"]))
def test_the_words_that_are_asked_for_take_fewer_tokens_than_there_are(
    token_count: int, language: str
) -> None:
    words = words_within(token_count, language)

    assert 5 <= words <= token_count
    assert words % 5 == 0
