"""Fits a prompt to the time that is left: fewer tokens, and asked for in words."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from services.model.backend import Prompt
from services.model.pace import USUAL_RATIO, Pace
from services.runtime.conversation import Message
from services.runtime.errors import BudgetTooSmallError
from services.runtime.language import language_of

TimeNote = Literal["always", "short", "never"]
"""When a prompt says how much time there is: always, only when it asks for less, or never."""

MIN_USEFUL_TOKENS = 16
"""A sentence. With less an answer is none, however little its caller wants to wait."""
RESERVE_RATIO = 0.1
MIN_RESERVE_S = 0.1
"""What of the time is kept for the answer's way back through every hop."""
MAX_EXACT_S = 10
STEP_S = 5
"""More seconds than `MAX_EXACT_S` are told in steps of these: providers keep what they have read
of a prompt that begins the same."""
SPARE_RATIO = 0.8
"""Models count words badly, and upwards."""
_TOKENS_PER_WORD = {"en": 1.5, "zh": 1.2}
"""Of a word of English and a character of Chinese, with their share of punctuation."""
_TIME = {"en": "You have about {seconds} s to answer.", "zh": "你大约有{seconds}秒的时间来回答。"}
_SHORTER = {
    "en": "Answer in at most {words} words, and end your last sentence.",
    "zh": "请用不超过{words}个字回答，并写完最后一句。",
}


def fitted(prompt: Prompt, left_s: float, pace: Pace, note: TimeNote = "always") -> Prompt:
    """Return the prompt as it can be answered in the time that is left.

    With too few measurements nothing is cut. What is added stands in the system's message; the
    others stay as they are.

    Args:
        prompt: what is asked.
        left_s: how long the completion may last, seconds.
        pace: how the provider writes.
        note: when the prompt says how much time there is.

    Raises:
        BudgetTooSmallError: the time does not suffice for a sentence.
    """
    usable_s = left_s - max(MIN_RESERVE_S, RESERVE_RATIO * left_s)
    wanted = prompt.max_output_tokens
    fits = _tokens_within(usable_s, min(wanted, MIN_USEFUL_TOKENS), pace)
    shorter = fits is not None and fits < wanted
    granted = fits if fits is not None and shorter else wanted
    language = _language(prompt.messages)
    notes = []
    if note == "always" or (note == "short" and shorter):
        notes.append(_TIME[language].format(seconds=_seconds(usable_s)))
    if shorter and note != "never":
        notes.append(_SHORTER[language].format(words=words_within(granted, language)))
    gap = "" if language == "zh" else " "
    messages = _with_note(prompt.messages, gap.join(notes)) if notes else prompt.messages
    return replace(prompt, messages=messages, max_output_tokens=granted)


def _tokens_within(usable_s: float, least: int, pace: Pace) -> int | None:
    """Return how many tokens there is time for; None when that is not known, or to be tried.

    Raises:
        BudgetTooSmallError: there is no time for the least, even as the provider usually writes:
            a few slow answers of others refuse nobody.
    """
    sure = pace.tokens_within(usable_s)
    if sure is None or sure >= least:
        return sure
    usual = pace.tokens_within(usable_s, USUAL_RATIO)
    if usual is None or usual >= least:
        return usual
    if pace.try_again():
        return None
    first_s = pace.time_to_first_token_s() or 0.0
    raise BudgetTooSmallError(
        f"in the {max(0.0, usable_s):.2f} s left the provider usually writes {usual} of the "
        f"{least} tokens that make an answer, the first after {first_s:.2f} s; call with a longer "
        "deadline",
        cause="time_to_tokens",
    )


def words_within(token_count: int, language: str) -> int:
    """Return how many words, or characters of Chinese, to ask for so that the tokens suffice."""
    words = int(SPARE_RATIO * token_count / _TOKENS_PER_WORD[language])
    return max(5, words - words % 5)


def _seconds(length_s: float) -> int:
    whole = max(1, int(length_s))
    return whole if whole <= MAX_EXACT_S else whole - whole % STEP_S


def _language(messages: Sequence[Message]) -> str:
    asked = (message.content for message in reversed(messages) if message.role == "user")
    return language_of(next(asked, ""))


def _with_note(messages: Sequence[Message], note: str) -> Sequence[Message]:
    if messages and messages[0].role == "system":
        first = messages[0]
        return [replace(first, content=f"{first.content}\n\n{note}"), *messages[1:]]
    return [Message("system", note), *messages]
