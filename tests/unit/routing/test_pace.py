"""Holds what is usual, and what is late, to the runs that were seen."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.routing.pace import FLOOR_S, Underway, Usual, ratio_of

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["begin", "leave", "arrive"]), st.floats(0, 5), st.integers(0, 10**6)
    ),
    max_size=60,
)


def test_nothing_is_usual_before_something_was_seen() -> None:
    usual = Usual()
    unknown = usual.length_s
    usual.add(2.0)

    assert unknown is None
    assert usual.length_s == pytest.approx(2.0)


def test_a_rare_long_run_moves_what_is_usual_a_little() -> None:
    usual = Usual()
    for _ in range(20):
        usual.add(1.0)

    usual.add(100.0)

    assert usual.length_s is not None
    assert 1.2 < usual.length_s < 1.3


def test_what_is_usual_follows_when_everything_becomes_slower() -> None:
    usual = Usual()
    for length_s in [0.1] * 50 + [2.0] * 100:
        usual.add(length_s)

    assert usual.length_s == pytest.approx(2.0, rel=0.05)


def test_differences_below_the_floor_are_none() -> None:
    assert ratio_of(FLOOR_S, 0.001) == 1.0
    assert ratio_of(0.0, 0.0) == 1.0
    assert ratio_of(10 * FLOOR_S, 0.001) == 10.0


def test_runs_under_way_are_as_late_as_their_mean_age() -> None:
    underway = Underway()
    underway.begin(1, 1000.0, 1.0)
    underway.begin(2, 1001.0, 0.5)

    assert underway.ratio(1002.0) == pytest.approx((2 / 1 + 1 / 0.5) / 2)


def test_one_that_was_overtaken_accuses_nobody() -> None:
    underway = Underway()
    underway.begin(1, 1000.0, 1.0)
    underway.begin(2, 1050.0, 1.0)
    underway.begin(3, 1060.0, 1.0)

    underway.arrive(2, 1050.0)

    assert underway.ratio(1060.5) == pytest.approx(0.5)


def test_one_that_ends_without_coming_to_it_overtakes_nobody() -> None:
    underway = Underway()
    underway.begin(1, 1000.0, 1.0)
    underway.begin(2, 1050.0, 1.0)

    underway.leave(2)
    underway.leave(2)

    assert underway.ratio(1060.0) == pytest.approx(60.0)


@given(steps=STEPS)
def test_the_sums_are_those_of_the_runs_that_nobody_has_overtaken(
    steps: list[tuple[str, float, int]],
) -> None:
    underway, now = Underway(), 1000.0
    begun: dict[int, tuple[float, float]] = {}
    overtaken_at = 0.0
    for number, (step, gap_s, chosen) in enumerate(steps):
        now += gap_s
        if step == "begin":
            usual_s = 0.1 + chosen % 7
            underway.begin(number, now, usual_s)
            begun[number] = (now, usual_s)
        elif begun:
            key = sorted(begun)[chosen % len(begun)]
            began_at, _ = begun.pop(key)
            if step == "arrive":
                underway.arrive(key, began_at)
                overtaken_at = max(overtaken_at, began_at)
            else:
                underway.leave(key)
    ages = [(now - at) / usual_s for at, usual_s in begun.values() if at > overtaken_at]

    expected = sum(ages) / len(ages) if ages else 0.0

    assert underway.ratio(now) == pytest.approx(expected, abs=1e-6)
