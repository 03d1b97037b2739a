"""Counts what a conversation costs a model to read, as an estimate that says so."""

import math
import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from services.runtime.compression.costs import text_tokens
from services.runtime.conversation import Message, ToolOffer

_TOKENS_PER_LETTER = 0.25
"""Of ASCII letters and blanks; all three were measured with the vocabulary of a large provider."""
_TOKENS_PER_SIGN = 0.6
"""Of ASCII digits and punctuation: by a quarter, JSON and CSV come to half of what they cost."""
_TOKENS_PER_OTHER = 0.75
_SIGNS = bytes(set(range(128)) - set(string.ascii_letters.encode()) - set(b" \n"))
TOKENS_PER_MESSAGE = 4
"""What a chat template adds to a message, or to a tool call, at most."""


@dataclass(frozen=True, slots=True)
class TokenCount:
    """Tells what a conversation costs to read."""

    count: int
    """The tokens."""
    exact: bool
    """True for a tokenizer's count, False for an estimate."""


class TokenCounter(Protocol):
    """Counts tokens as one model does."""

    def count(self, messages: Sequence[Message]) -> TokenCount:
        """Return what a conversation costs to read."""
        ...


class TokenEstimate:
    """Sums an estimate over the pieces of a text, however it is cut.

    By the class of each character alone: what is written comes in thousands of pieces, and its true
    count comes with the end as a rule. For what is read, `ESTIMATE` is nearer.
    """

    def __init__(self) -> None:
        """Start with nothing."""
        self._letter_count = 0
        self._sign_count = 0
        self._other_count = 0

    def add(self, text: str) -> None:
        """Count one more piece."""
        ascii_text = text.encode("ascii", "ignore")
        letter_count = len(ascii_text.translate(None, _SIGNS))
        self._letter_count += letter_count
        self._sign_count += len(ascii_text) - letter_count
        self._other_count += len(text) - len(ascii_text)

    @property
    def count(self) -> int:
        """Return the tokens of all pieces, rounded up."""
        return math.ceil(
            self._letter_count * _TOKENS_PER_LETTER
            + self._sign_count * _TOKENS_PER_SIGN
            + self._other_count * _TOKENS_PER_OTHER
        )


def texts_of(message: Message) -> Iterator[str]:
    """Yield every text of a message that a model reads; none is empty."""
    if message.content:
        yield message.content
    if message.reasoning:
        yield message.reasoning
    if message.tool_call_id:
        yield message.tool_call_id
    for call in message.tool_calls:
        yield from filter(None, (call.id, call.name, call.arguments))


def framing_tokens(messages: Sequence[Message]) -> int:
    """Return what a chat template adds to a conversation, at most."""
    return TOKENS_PER_MESSAGE * sum(1 + len(message.tool_calls) for message in messages)


def estimate_prompt_tokens(messages: Sequence[Message]) -> int:
    """Return what a conversation costs to read, as an estimate."""
    cost = sum(text_tokens(text) for message in messages for text in texts_of(message))
    return math.ceil(cost) + framing_tokens(messages)


def estimate_offered_tokens(offers: Sequence[ToolOffer]) -> int:
    """Return what the offer of tools costs to read, as an estimate."""
    cost = sum(
        text_tokens(text)
        for offer in offers
        for text in (offer.name, offer.description, offer.arguments_schema)
    )
    return math.ceil(cost) + TOKENS_PER_MESSAGE * len(offers)


class EstimatingCounter:
    """Counts by the shapes in a text, for models whose tokenizer is not here.

    On DeepSeek's vocabulary it gives 1.0 to 1.3 times the exact count for prose of English and
    Chinese, code, JSON, CSV, logs, ids and emoji, and is too low only for texts full of rare
    characters or of names with accents. A small vocabulary has more tokens for Chinese.
    """

    def count(self, messages: Sequence[Message]) -> TokenCount:
        """Return the estimate, rounded up."""
        return TokenCount(estimate_prompt_tokens(messages), exact=False)


ESTIMATE = EstimatingCounter()
"""The counter that is always there."""
