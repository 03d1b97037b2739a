"""Tests which types are read from the way values are written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.tool.column_types import Kind, readings


def first_kind(*values: str, name: str = "x", delimiter: str = ",") -> Kind:
    found = next(readings(values, column_name=name, delimiter=delimiter), None)
    return Kind.TEXT if found is None else found.kind


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (("1", "-20", "300"), Kind.INTEGER),
        (("1.5", "2"), Kind.NUMBER),
        (("1e5", "2.5"), Kind.NUMBER),
        (("¥1,234.50", "¥99.00"), Kind.NUMBER),
        (("$1,000", "-$5"), Kind.NUMBER),
        (("(1.50)", "2.00"), Kind.NUMBER),
        (("120元", "3元"), Kind.NUMBER),
        (("12.5%", "3%"), Kind.NUMBER),
        (("true", "FALSE"), Kind.BOOLEAN),
        (("2025-01-02", "2025-1-3"), Kind.DATE),
        (("2025/01/02",), Kind.DATE),
        (("2025年1月2日",), Kind.DATE),
        (("02.01.2025",), Kind.DATE),
        (("Nov 3, 2025",), Kind.DATE),
        (("3 November 2025",), Kind.DATE),
        (("2025-01", "2025-02"), Kind.DATE),
        (("2025-01-02 10:00", "2025-01-02T10:00:05"), Kind.TIMESTAMP),
        (("2025-01-02T10:00:05Z",), Kind.TIMESTAMP),
        (("1/2/2025 10:00",), Kind.TIMESTAMP),
        (("yes", "no"), Kind.TEXT),
        (("East", "West"), Kind.TEXT),
        (("1", "two"), Kind.TEXT),
    ],
)
def test_the_kind_follows_from_how_all_values_are_written(
    values: tuple[str, ...], kind: Kind
) -> None:
    assert first_kind(*values) is kind


@pytest.mark.parametrize("value", ["007", "12345678901234567890", "00.5", "1234567890123456"])
def test_identifiers_made_of_digits_stay_text(value: str) -> None:
    assert first_kind(value, value + "1") is Kind.TEXT


def test_eight_digits_are_a_date_only_under_a_name_that_says_so() -> None:
    assert first_kind("20251103", name="order_date") is Kind.DATE
    assert first_kind("20251103", name="日期") is Kind.DATE
    assert first_kind("20251103", name="quantity") is Kind.INTEGER


def test_words_for_missing_do_not_make_a_column_text() -> None:
    assert first_kind("1", "n/a", "-", "NULL") is Kind.INTEGER


def test_a_column_of_words_for_missing_alone_stays_text() -> None:
    assert first_kind("-", "n/a") is Kind.TEXT


def test_a_semicolon_file_has_decimal_commas_and_days_before_months() -> None:
    money = next(readings(["1.234,50"], column_name="x", delimiter=";"))
    day = next(readings(["01/02/2025"], column_name="x", delimiter=";"))

    assert "comma" in money.note
    assert day.note == "dates were read as day/month/year"


def test_an_ambiguous_date_says_how_it_was_read() -> None:
    assert next(readings(["01/02/2025"], column_name="x", delimiter=",")).note == (
        "dates were read as month/day/year"
    )


@given(st.lists(st.text(min_size=1, max_size=30), min_size=1, max_size=5))
def test_any_text_is_judged_without_failing(values: list[str]) -> None:
    list(readings(values, column_name="x", delimiter=","))
