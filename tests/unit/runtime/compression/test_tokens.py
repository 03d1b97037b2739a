"""Estimates tokens without a tokenizer."""

import math

import pytest

from services.runtime.compression.costs import text_tokens
from services.runtime.compression.tokens import (
    ESTIMATE,
    TokenEstimate,
    estimate_prompt_tokens,
)
from services.runtime.conversation import Message, ToolCall


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ("a", 1),
        ("abcd", 1),
        ("abcde", 2),
        ("数据数据", 3),
        ("数a", 1),
        ("1234", 3),
        ("{a:1}", 3),
    ],
)
def test_an_estimate_goes_by_the_class_of_the_characters(text: str, count: int) -> None:
    estimate = TokenEstimate()

    estimate.add(text)

    assert estimate.count == count


def test_an_estimate_does_not_depend_on_how_the_text_is_cut() -> None:
    whole, cut = TokenEstimate(), TokenEstimate()

    whole.add("数据 and more")
    for character in "数据 and more":
        cut.add(character)

    assert whole.count == cut.count


def test_every_message_costs_a_little_more_than_its_text() -> None:
    messages = [Message("system", "abcd"), Message("user", "abcd")]

    alone = estimate_prompt_tokens([Message("user", "abcd" * 2)])
    assert estimate_prompt_tokens(messages) >= alone + 4


def test_everything_that_a_model_reads_of_a_message_costs_something() -> None:
    call = ToolCall("id", "name", "arguments!!!")
    message = Message("assistant", "abcd", (call,), "answers", reasoning="abcd")
    parts = ("abcd", "abcd", "id", "name", "arguments!!!", "answers")

    cost = sum(text_tokens(part) for part in parts)
    assert estimate_prompt_tokens([message]) == math.ceil(cost) + 2 * 4


def test_an_estimate_says_that_it_is_one() -> None:
    assert not ESTIMATE.count([Message("user", "x" * 400)]).exact
