"""Holds lengths to what protobuf allows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.runtime.durations import to_duration, to_seconds


@pytest.mark.parametrize(
    ("length_s", "seconds", "nanos"),
    [
        (0.0, 0, 0),
        (1.5, 1, 500_000_000),
        (-1.5, -1, -500_000_000),
        (-0.25, 0, -250_000_000),
        (0.9999999999, 1, 0),
        (3.0, 3, 0),
    ],
)
def test_both_parts_of_a_duration_carry_the_sign(length_s: float, seconds: int, nanos: int) -> None:
    duration = to_duration(length_s)

    assert (duration.seconds, duration.nanos) == (seconds, nanos)


@given(st.floats(-1e6, 1e6))
def test_a_length_comes_back_to_the_nanosecond(length_s: float) -> None:
    duration = to_duration(length_s)

    assert abs(duration.nanos) < 1_000_000_000
    assert to_seconds(duration) == pytest.approx(length_s, abs=1e-9)
