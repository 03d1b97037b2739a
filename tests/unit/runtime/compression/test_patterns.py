"""Recognises what must survive a compression."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.runtime.compression.patterns import KINDS, find


def found(text: str, *, data: bool = False) -> list[str]:
    """Return what is found, as it stands in the text."""
    return [text[span.start : span.end] for span in find(text, data=data)]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("date", "2026-03-14"),
        ("date", "2026-03-14T10:20:00Z"),
        ("date", "14.03.2026"),
        ("date", "2026/3/14"),
        ("date", "3 March 2026"),
        ("date", "March 3rd, 2026"),
        ("date", "Sept 2026"),
        ("date", "Q3 2026"),
        ("date", "14:30"),
        ("date", "2 pm"),
        ("date", "2026年3月14日"),
        ("date", "2026年3月"),
        ("date", "二〇二六年三月"),
        ("date", "3月14日"),
        ("date", "第三季度"),
        ("money", "€1,240.50"),
        ("money", "$3.2 million"),
        ("money", "1,250 USD"),
        ("money", "40 euros"),
        ("money", "¥300万"),
        ("money", "1,240.50元"),
        ("money", "50万美元"),
        ("id", "ORD-2026-00123"),
        ("id", "#4711"),
        ("id", "20260314001"),
        ("id", "7f3a9c2e"),
        ("id", "550e8400-e29b-41d4-a716-446655440000"),
        ("id", "+49 30 123456"),
        ("link", "bob.smith@example.co.uk"),
        ("link", "https://shop.example/orders?id=7"),
        ("number", "3.5 kg"),
        ("number", "12%"),
        ("number", "30-day"),
        ("number", "-12.5"),
        ("number", "3个月"),
        ("number", "42台"),
        ("number", "百分之三十"),
        ("name", "Alice Chen"),
        ("name", "Bank of China"),
        ("quoted", "“weak quarters”"),
        ("quoted", '"weak quarters"'),
        ("quoted", "《年度报告》"),
        ("quoted", "「熔断」"),
    ],
)
@pytest.mark.parametrize("frame", ["it was {} then", "是{}。", "({})"])
def test_a_value_is_found_whole_and_by_its_kind(kind: str, value: str, frame: str) -> None:
    text = frame.format(value)

    spans = list(find(text))

    assert [(span.kind, text[span.start : span.end]) for span in spans] == [(kind, value)]


def test_plain_words_are_not_kept() -> None:
    assert not found("please tell me what the weather is like, and why it may rain on us again")


def test_a_common_word_before_a_name_is_not_part_of_it() -> None:
    assert found("The Shenzhen Factory is late. Please ask Alice Chen.") == [
        "Shenzhen Factory",
        "Alice Chen",
    ]


def test_the_first_word_of_a_sentence_is_no_name() -> None:
    assert found("Revenue rose. Sales fell.") == []


def test_an_id_after_a_capitalised_word_is_an_id() -> None:
    assert found("Order ORD-2026-7 is late") == ["ORD-2026-7"]


def test_a_full_stop_is_no_part_of_a_link() -> None:
    assert found("see https://shop.example/a.") == ["https://shop.example/a"]


def test_the_keys_of_data_are_not_quoted_terms() -> None:
    assert found('{"order_id": "A-1001", "total": 1240.5}', data=True) == ["A-1001", "1240.5"]


@given(st.text(max_size=400))
def test_what_is_found_is_in_order_and_never_overlaps(text: str) -> None:
    spans = list(find(text))

    assert all(span.start < span.end and span.kind in KINDS for span in spans)
    assert all(one.end <= other.start for one, other in pairwise(spans))


@pytest.mark.parametrize(
    "unit",
    ["a-", "A1-", "1,", "1", "Aa ", '"', "“", "a@", "http://", "+1 ", "x.", "0-", "一", "Ab-"],
)
def test_no_text_takes_longer_than_its_length_allows(unit: str) -> None:
    # With a time that grew with the square, this would take minutes, and the test's limit ends it.
    spans = list(find(unit * (200_000 // len(unit))))

    assert len(spans) <= 200_000
