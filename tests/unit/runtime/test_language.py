"""Holds the guess of a language to the two that the suite speaks."""

import pytest

from services.runtime.language import LANGUAGES, language_of


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Which category grew most?", "en"),
        ("上个季度哪个品类增长最快?", "zh"),
        ("哪个 category grew most", "zh"),
        ("", "en"),
        ("1234 — ¿qué?", "en"),
        ("カテゴリ", "en"),
    ],
)
def test_a_text_with_chinese_characters_is_chinese(text: str, language: str) -> None:
    assert language_of(text) == language
    assert language in LANGUAGES
