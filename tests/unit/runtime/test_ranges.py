"""Holds ranges to being kept, and to being said in words."""

import math
from dataclasses import dataclass
from typing import Annotated

import pytest
from annotated_types import Ge, Gt, Le, Lt
from pydantic import Field, PositiveInt

from services.runtime.ranges import check_ranges, declared_bounds, number_advice
from services.runtime.setting_text import SettingError


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Has a field of each kind."""

    count: PositiveInt = 1
    ratio: Annotated[float, Field(ge=0, lt=1)] = 0.5
    length_s: float = 1.0
    name: str = "x"
    on: bool = True

    def __post_init__(self) -> None:
        """Refuse what is outside."""
        check_ranges(self)


@pytest.mark.parametrize(
    ("key", "value", "advice"),
    [
        ("count", 0, "write a whole number of 1 or more"),
        ("ratio", 1.0, "write a number from 0 and below 1"),
        ("ratio", -0.1, "write a number from 0 and below 1"),
        ("ratio", math.nan, "write a number from 0 and below 1"),
        ("length_s", math.inf, "write a number"),
    ],
)
def test_a_value_outside_of_its_range_is_refused_with_the_range(
    key: str, value: float, advice: str
) -> None:
    with pytest.raises(SettingError) as caught:
        Sample(**{key: value})  # type: ignore[arg-type]

    assert (caught.value.key, caught.value.advice) == (key, advice)


def test_the_ends_of_a_range_are_inside_where_they_are_said_to_be() -> None:
    sample = Sample(count=1, ratio=0.0, length_s=-5.0)

    assert (sample.count, sample.ratio, sample.length_s) == (1, 0.0, -5.0)


def test_what_has_no_range_has_no_bounds() -> None:
    assert declared_bounds(Sample)["name"] == []


@pytest.mark.parametrize(
    ("bounds", "whole", "words"),
    [
        ([Ge(1), Le(5)], True, "from 1 to 5"),
        ([Gt(0), Le(600)], False, "above 0 and up to 600"),
        ([Gt(0), Lt(1)], False, "above 0 and below 1"),
        ([Ge(0), Lt(1)], False, "from 0 and below 1"),
        ([Gt(0), Lt(10)], True, "from 1 to 9"),
        ([Ge(0)], False, "of 0 or more"),
        ([Gt(0)], False, "above 0"),
        ([Le(3)], False, "of 3 or less"),
        ([Lt(3)], False, "below 3"),
    ],
)
def test_a_range_is_said_in_words(bounds: list[object], whole: bool, words: str) -> None:
    assert number_advice(bounds, whole=whole).endswith(f"number {words}")
