"""Holds the clock of bytes to calling dead only what has stopped to say that it lives."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.model.bytes_clock import MIN_SILENCE_S, MISSED_COUNT, BytesClock
from tests.requirements import requirement


@requirement("model:two-clocks")
def test_a_provider_that_sends_no_signs_of_life_owes_none() -> None:
    clock = BytesClock(100.0)

    clock.see(130.0, content=True)

    assert math.isinf(clock.until)


@requirement("model:two-clocks")
@pytest.mark.parametrize(("every_s", "within_s"), [(0.1, 15.0), (5.0, 15.0), (10.0, 30.0)])
def test_signs_that_stay_out_several_times_are_the_end(every_s: float, within_s: float) -> None:
    clock = BytesClock(100.0)

    for number in range(1, 4):
        clock.see(100.0 + number * every_s, content=False)

    assert clock.until == pytest.approx(100.0 + 3 * every_s + within_s)


@requirement("model:two-clocks")
def test_content_is_a_sign_of_life_as_well_but_no_rhythm() -> None:
    clock = BytesClock(100.0)

    clock.see(101.0, content=False)
    clock.see(150.0, content=True)

    assert clock.until == pytest.approx(150.0 + MIN_SILENCE_S)


@given(gaps=st.lists(st.tuples(st.floats(0.001, 60.0), st.booleans()), min_size=1))
def test_nothing_is_called_dead_that_keeps_to_its_rhythm(gaps: list[tuple[float, bool]]) -> None:
    now = 100.0
    clock = BytesClock(now)
    signs = [gap_s for gap_s, content in gaps if not content]

    for gap_s, content in gaps:
        now += gap_s
        clock.see(now, content=content)

    longest_s = max(signs, default=math.inf)
    assert clock.until >= now + max(MIN_SILENCE_S, MISSED_COUNT * longest_s) - 1e-6
