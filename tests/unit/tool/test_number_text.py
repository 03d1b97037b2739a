"""Tests how numbers are written for people."""

import pytest

from services.tool.chart_spec import Language
from services.tool.number_text import compact, decimals_of, full, short


@pytest.mark.parametrize(
    ("value", "language", "text"),
    [
        (0, "en", "0"),
        (9500, "en", "9,500"),
        (40_000, "en", "40k"),
        (1_500_000, "en", "1.5m"),
        (-2_000_000_000, "en", "−2bn"),
        (0.25, "en", "0.25"),
        (9500, "zh", "9,500"),
        (40_000, "zh", "4万"),
        (150_000_000, "zh", "1.5亿"),
    ],
)
def test_numbers_on_an_axis_are_short(value: float, language: Language, text: str) -> None:
    assert short(value, language) == text


@pytest.mark.parametrize(
    ("value", "text"), [(34860.4, "34,860"), (48.92, "48.9"), (0.1534, "0.153"), (-3, "−3")]
)
def test_numbers_beside_bars_are_as_exact_as_they_need_to_be(value: float, text: str) -> None:
    assert compact(value) == text


@pytest.mark.parametrize(
    ("values", "decimals"),
    [([1, 2.0, None], 0), ([1.5, 2.0], 1), ([1.5, 200], 2), ([1.55], 2), ([0.1234], 2), ([], 0)],
)
def test_a_column_has_the_decimals_that_its_values_need(
    values: list[float | None], decimals: int
) -> None:
    assert decimals_of(values) == decimals


@pytest.mark.parametrize(
    ("value", "decimals", "text"),
    [
        (1234567.891, 2, "1,234,567.89"),
        (-1234, 0, "−1,234"),
        (-0.001, 2, "0.00"),
        (None, 2, "–"),
        (0, 0, "0"),
    ],
)
def test_numbers_in_tables_have_thousands_separators(
    value: float | None, decimals: int, text: str
) -> None:
    assert full(value, decimals) == text
