"""Tests where lines end, with letters that are all one point wide."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.tool.line_breaking import longest_piece, shortened, wrapped


def width(text: str) -> float:
    return float(len(text))


def test_english_lines_end_between_words() -> None:
    assert wrapped("the quick brown fox", 10, width) == ["the quick", "brown fox"]


def test_chinese_lines_end_between_characters() -> None:
    assert wrapped("西部地区退货率最高", 4, width) == ["西部地区", "退货率最", "高"]


@pytest.mark.parametrize("mark", ["，", "。", "）", "”", "%"])
def test_a_closing_mark_never_begins_a_line(mark: str) -> None:
    lines = wrapped(f"西部地区{mark}退货率", 4, width)

    assert not any(line.startswith(mark) for line in lines)


def test_an_opening_mark_never_ends_a_line() -> None:
    assert wrapped("西部地（退货率", 4, width) == ["西部地", "（退货率"]


def test_english_words_inside_chinese_stay_whole() -> None:
    assert wrapped("使用Fernhill的包装", 9, width) == ["使用", "Fernhill的", "包装"]


def test_a_word_wider_than_the_line_is_broken() -> None:
    assert wrapped("abcdefghij kl", 4, width) == ["abcd", "efgh", "ij", "kl"]


def test_long_names_end_a_line_after_an_underscore() -> None:
    assert wrapped("expected_delivery_date", 10, width) == ["expected_", "delivery_", "date"]


def test_line_ends_of_the_text_are_kept() -> None:
    assert wrapped("a b\n\nc", 10, width) == ["a b", "", "c"]


@given(st.text(alphabet="ab 西，。(（_\n", max_size=60), st.integers(1, 12))
def test_no_letter_is_lost(text: str, room: int) -> None:
    lines = wrapped(text, room, width)

    assert "".join("".join(lines).split()) == "".join(text.split())


@given(st.text(alphabet="ab 西x", max_size=60), st.integers(1, 12))
def test_no_line_is_wider_than_the_room(text: str, room: int) -> None:
    assert all(width(line) <= room for line in wrapped(text, room, width))


def test_what_does_not_fit_ends_in_an_ellipsis() -> None:
    assert shortened("abcdefgh", 5, width) == "abcd…"
    assert shortened("abcde", 5, width) == "abcde"
    assert shortened("abc", 0.5, width) == "…"


def test_the_longest_piece_is_what_cannot_be_broken_at_a_word() -> None:
    assert longest_piece("a longest word", width) == 7
    assert longest_piece("order_date", width) == 6
    assert longest_piece("西部，", width) == 2
