"""Holds aging lengths to what was added lately."""

from hypothesis import given
from hypothesis import strategies as st

from services.runtime.aging import EAGER_COUNT, MIN_COUNT, WINDOW_S, AgingLengths

EVENTS = st.lists(st.tuples(st.floats(0.0, 10.0), st.floats(0.0, 30.0)), min_size=1, max_size=120)


def filled(count: int, length_s: float = 1.0, now: float = 1000.0) -> AgingLengths:
    """Return what has so many lengths."""
    lengths = AgingLengths()
    for _ in range(count):
        lengths.add(now, length_s)
    return lengths


def test_a_few_lengths_say_nothing() -> None:
    assert filled(MIN_COUNT - 1).percentile(1000.0, 0.5) is None
    assert filled(MIN_COUNT).percentile(1000.0, 0.5) == 1.0


def test_without_traffic_everything_is_forgotten() -> None:
    now = 1000.0 + 2 * WINDOW_S
    kept, gone = filled(50), filled(50)

    assert kept.percentile(now - 0.1, 0.5) == 1.0
    assert gone.percentile(now, 0.5) is None
    assert gone.count(now) == 0


def test_the_old_speak_until_there_are_enough_of_the_young() -> None:
    lengths, later = filled(50), 1000.0 + WINDOW_S
    for _ in range(MIN_COUNT - 1):
        lengths.add(later, 9.0)
    few = lengths.percentile(later, 0.5)

    lengths.add(later, 9.0)

    assert (few, lengths.percentile(later, 0.5)) == (1.0, 9.0)


@given(events=EVENTS)
def test_a_percentile_is_one_of_the_lengths_of_the_last_two_windows(
    events: list[tuple[float, float]],
) -> None:
    lengths, now = AgingLengths(), 1000.0
    seen: list[tuple[float, float]] = []
    for gap_s, length_s in events:
        now += gap_s
        lengths.add(now, length_s)
        seen.append((now, length_s))

    found = lengths.percentile(now, 0.9)

    recent = {length_s for at, length_s in seen if now - at < 2 * WINDOW_S}
    assert found is None or found in recent


def test_a_flood_is_thinned_out_and_the_beginning_is_not() -> None:
    few, many = filled(EAGER_COUNT), filled(EAGER_COUNT)
    for number in range(10_000):
        many.add(1000.0 + number / 1000, 2.0)

    assert few.count(1000.0) == EAGER_COUNT
    assert EAGER_COUNT < many.count(1010.0) <= 100
    assert many.percentile(1010.0, 0.9) == 2.0
