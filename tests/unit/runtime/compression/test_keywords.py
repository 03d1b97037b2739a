"""Finds the keywords of what is left out."""

from typing import Any

import pytest

from services.runtime.compression import chinese
from services.runtime.compression import keywords as module
from services.runtime.compression.keywords import (
    MAX_KEYWORDS,
    MAX_WORDS,
    by_counting,
    installed,
    keywords,
    sample,
    word_count,
)
from services.runtime.compression.rounds import Round
from services.runtime.conversation import Message

ENGLISH = (
    "The supplier of the laptop battery is late. The gateway refused the shipment, and the laptop "
    "battery of Alice Chen caught fire. Refunds for the laptop battery go through the gateway. "
)
CHINESE = (
    "供应商的网关打开了熔断器。笔记本电脑的退款由网关完成，供应商要求退款。"
    "笔记本电脑的保修由供应商负责。"
)


def rounds(*contents: str) -> list[Round]:
    """Return rounds in which only a user speaks."""
    return [Round((Message("user", content),)) for content in contents]


@pytest.fixture
def without_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the optional packages away."""

    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(module, "import_module", missing)
    monkeypatch.setattr(chinese, "import_module", missing)


def test_two_chinese_characters_count_as_a_word() -> None:
    assert word_count("two words 四个汉字", most=100) == 4
    assert word_count("one " * 50, most=7) == 7


def test_a_sample_has_the_beginning_of_each_round() -> None:
    text = sample(rounds("first " * 5000, "second " * 5000, "third"))

    assert text.count("first") == text.count("second") + 1 == 1000
    assert text.endswith("third")
    assert word_count(text, most=10_000) == MAX_WORDS


def test_of_many_rounds_each_has_a_part() -> None:
    text = sample(rounds(*(f"r{index} " * 100 for index in range(500))))

    assert all(f"r{index} " in text for index in range(500))
    assert word_count(text, most=10_000) == MAX_WORDS


@pytest.mark.usefixtures("without_libraries")
def test_without_libraries_words_are_counted() -> None:
    assert installed() is by_counting
    found = keywords(ENGLISH)
    assert found[0] == "laptop battery"
    assert "gateway" in found


@pytest.mark.usefixtures("without_libraries")
def test_without_libraries_chinese_keywords_are_what_is_repeated() -> None:
    found = keywords(CHINESE)

    assert "笔记本电" in found or "笔记本" in "".join(found)
    assert {"供应商", "退款", "网关"} <= set(found)


def test_yake_finds_what_an_english_text_is_about() -> None:
    pytest.importorskip("yake")

    found = keywords(ENGLISH * 2)

    assert any("laptop battery" in word for word in found)


def test_chinese_keywords_are_words_of_two_characters_and_more() -> None:
    pytest.importorskip("yake")
    pytest.importorskip("rjieba")

    found = keywords(CHINESE)

    assert {"笔记本电脑", "供应商", "网关", "熔断器"} <= set(found)


def test_of_mixed_text_both_languages_have_their_turn() -> None:
    found = keywords(ENGLISH + CHINESE, extract=lambda text, language, count: [language] * count)

    assert found == ("en", "zh")


def test_a_keyword_within_another_is_not_told_again() -> None:
    words = ["laptop battery", "laptop", "Battery", "lap", "laptop battery"]

    assert keywords(ENGLISH, extract=lambda *_: words) == ("laptop battery", "lap")


def test_no_more_text_is_read_than_a_thread_can_end_with() -> None:
    read: list[str] = []

    def extract(text: str, language: str, max_count: int) -> list[str]:
        read.append(text)
        return []

    keywords("word " * 10 * MAX_WORDS, extract=extract)

    assert [len(text.split()) for text in read] == [MAX_WORDS]


def test_in_too_little_text_nothing_stands_out() -> None:
    assert keywords("only three words") == ()


def test_a_defect_of_the_library_costs_nothing_but_its_keywords(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Broken:
        def KeywordExtractor(self, **_: object) -> object:
            raise ZeroDivisionError

    monkeypatch.setattr(module, "import_module", lambda _: Broken())

    assert keywords(ENGLISH)[0] == "laptop battery"


@pytest.mark.parametrize("extract", [None, by_counting])
def test_keywords_have_a_number_and_a_length(extract: module.Extract | None) -> None:
    text = " ".join(f"{letter}{'x' * 30}{other}" for letter in "abcdefgh" for other in "abcdefgh")

    found = keywords(text * 3, extract=extract)

    assert len(found) <= MAX_KEYWORDS
    assert all(len(word) <= 60 and "\n" not in word for word in found)
