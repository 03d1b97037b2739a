"""Holds what happened recently to a count that is made anew."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.runtime.recent import RecentCalls, RecentLengths

EVENTS = st.lists(
    st.tuples(st.floats(0.0, 5.0), st.floats(0.0, 30.0), st.booleans()), min_size=1, max_size=80
)


@settings(deadline=None)
@given(events=EVENTS, window_s=st.integers(1, 12))
def test_the_running_totals_are_those_of_the_seconds_in_the_window(
    events: list[tuple[float, float, bool]], window_s: int
) -> None:
    calls, now = RecentCalls(window_s), 1000.0
    seen: list[tuple[int, float, bool]] = []
    for gap_s, length_s, failed in events:
        now += gap_s
        calls.add(now, length_s, failed=failed)
        seen.append((int(now), length_s, failed))

    inside = [event for event in seen if event[0] > int(now) - window_s]

    assert calls.call_count == len(inside)
    assert calls.failure_count == sum(failed for _, _, failed in inside)
    assert calls.total_s == pytest.approx(math.fsum(length for _, length, _ in inside), abs=1e-9)


def test_an_empty_window_has_no_length_left_over() -> None:
    calls = RecentCalls(10)
    for _ in range(3):
        calls.add(1000.0, 0.1, failed=True)

    calls.move(1e9)

    assert (calls.call_count, calls.failure_count, calls.total_s) == (0, 0, 0.0)


def test_what_was_cleared_is_gone() -> None:
    calls = RecentCalls(10)
    calls.add(1000.0, 0.1, failed=True)

    calls.clear()
    calls.add(1001.0, 0.2, failed=False)

    assert (calls.call_count, calls.failure_count, calls.total_s) == (1, 0, 0.2)


@settings(deadline=None)
@given(
    lengths=st.lists(st.floats(0.0, 100.0), min_size=1, max_size=60),
    max_count=st.integers(1, 20),
    ratio=st.floats(0.0, 1.0),
)
def test_a_percentile_is_that_of_the_latest_lengths(
    lengths: list[float], max_count: int, ratio: float
) -> None:
    recent = RecentLengths(max_count)
    for length_s in lengths:
        recent.add(length_s)

    latest = sorted(lengths[-max_count:])

    assert len(recent) == len(latest)
    assert recent.percentile(ratio) == latest[max(0, math.ceil(ratio * len(latest)) - 1)]


def test_without_lengths_a_percentile_is_zero() -> None:
    assert RecentLengths().percentile(0.9) == 0.0


def test_a_copy_knows_the_same_and_goes_on_by_itself() -> None:
    lengths = RecentLengths(3)
    for length_s in (4.0, 1.0, 2.0, 3.0):
        lengths.add(length_s)

    copy = lengths.copy()
    copy.add(9.0)

    assert [len(each) for each in (lengths, copy)] == [3, 3]
    assert [lengths.percentile(ratio) for ratio in (0.3, 1.0)] == [1.0, 3.0]
    assert [copy.percentile(ratio) for ratio in (0.3, 1.0)] == [2.0, 9.0]
