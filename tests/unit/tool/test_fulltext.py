"""Tests the index and the words that it is asked with."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.tool.fulltext import (
    FullTextIndex,
    Section,
    index_words,
    query_words,
    sections_of,
    snippet,
)

INDEX = FullTextIndex(
    [
        Section("Returns", "a.md", "Articles may be returned within 30 days."),
        Section("Shipping", "b.md", "Parcels leave the same day."),
        Section("退货政策", "c.md", "三十天内可以退货。"),
    ]
)


def test_other_forms_of_a_word_are_found() -> None:
    assert INDEX.find("return", 5)[0].section.source == "a.md"


def test_a_word_of_the_title_counts_more_than_one_of_the_text() -> None:
    index = FullTextIndex(
        [Section("Other", "text.md", "About lamps."), Section("Lamps", "title.md", "About others.")]
    )

    assert [hit.section.source for hit in index.find("lamps", 5)] == ["title.md", "text.md"]


def test_chinese_words_inside_a_sentence_are_found() -> None:
    assert [hit.section.source for hit in INDEX.find("我想退货", 5)] == ["c.md"]


def test_no_more_results_than_asked_for() -> None:
    assert len(INDEX.find("day days parcels articles", 1)) == 1


def test_chinese_is_indexed_by_character_and_by_pair() -> None:
    assert list(index_words("退货 in 30天")) == ["退", "货", "退货", "in", "30", "天"]


def test_words_that_ask_are_left_out_of_a_query() -> None:
    assert query_words("What is the return policy?") == ["return", "policy"]
    assert query_words("退货怎么办理") == ["退货", "货怎", "么办", "办理"]


@given(st.text(max_size=200))
def test_no_query_can_break_the_index(query: str) -> None:
    INDEX.find(query, 3)


def test_a_snippet_shows_the_words_it_was_found_by() -> None:
    text = "Nothing here. " * 40 + "Parcels to the West are late." + " And more." * 40

    part = snippet(text, ["west"])

    assert "West" in part
    assert len(part) <= 205
    assert part.startswith("…")
    assert part.endswith("…")


def test_headings_cut_a_document_into_sections(tmp_path: Path) -> None:
    text = "Preface.\n# Top\nIntro.\n## Inner\nText.\n# Next\n#hashtag is text\n"
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "d.md").write_text(text, encoding="utf-8")
    (tmp_path / "ignored.pdf").write_bytes(b"%PDF")

    assert sections_of(tmp_path) == [
        Section("d", "deep/d.md", "Preface."),
        Section("Top", "deep/d.md", "Intro."),
        Section("Top – Inner", "deep/d.md", "Text."),
        Section("Next", "deep/d.md", "#hashtag is text"),
    ]


def test_text_files_have_no_headings(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("# not a heading\n", encoding="utf-8")

    assert sections_of(tmp_path) == [Section("t", "t.txt", "# not a heading")]


@pytest.mark.parametrize("words", [[], ["absent"]])
def test_a_snippet_without_a_place_is_the_beginning(words: list[str]) -> None:
    assert snippet("Short text.", words) == "Short text."
