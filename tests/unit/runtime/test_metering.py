"""Holds the count of a minute to its limit, and waits to being long enough and no longer."""

from hypothesis import given
from hypothesis import strategies as st

from services.runtime.clock import ManualClock
from services.runtime.metering import LENGTH_S, MAX_IDLE_COUNT, TOKENS, LocalMeter, Window
from tests.requirements import requirement

counts = st.integers(min_value=0, max_value=10**9)
limits = st.integers(min_value=1, max_value=10**7)
lefts = st.floats(min_value=0.001, max_value=float(LENGTH_S))


def later(window: Window, length_s: float) -> Window:
    """Return what a window is after a while in which nothing came."""
    if length_s <= window.left_s:
        return Window(window.previous, window.current, window.left_s - length_s)
    length_s -= window.left_s
    if length_s <= LENGTH_S:
        return Window(window.current, 0, LENGTH_S - length_s)
    return Window(0, 0, LENGTH_S)


@requirement("tenants:limits-named")
@given(previous=counts, current=counts, left_s=lefts, limit=limits)
def test_whoever_waits_as_told_finds_room_and_whoever_comes_much_earlier_does_not(
    previous: int, current: int, left_s: float, limit: int
) -> None:
    window = Window(previous, current, left_s)

    wait_s = window.wait_s(limit)

    assert later(window, wait_s).wait_s(limit) == 0
    assert 0 <= wait_s <= 2 * LENGTH_S + 0.01
    if wait_s > 0.01:
        assert later(window, wait_s - 0.01).wait_s(limit) > 0


@requirement("tenants:limits-named")
@given(
    limit=st.integers(1, 20),
    pauses=st.lists(st.floats(min_value=0, max_value=40), min_size=1, max_size=80),
)
async def test_no_minute_of_the_clock_lets_more_in_than_the_limit(
    limit: int, pauses: list[float]
) -> None:
    clock = ManualClock()
    meter = LocalMeter(clock)
    taken: dict[int, int] = {}

    for pause_s in pauses:
        clock.advance(pause_s)
        if await meter.take_request("acme", limit) == 0:
            minute = int(clock.now() // LENGTH_S)
            taken[minute] = taken.get(minute, 0) + 1

    assert max(taken.values()) <= limit


async def test_what_was_used_long_ago_counts_no_more() -> None:
    clock = ManualClock()
    meter = LocalMeter(clock)
    meter.note_tokens("acme", 1_000_000)

    clock.advance(2 * LENGTH_S)

    assert await meter.token_wait_s("acme", 1) == 0


async def test_tenants_that_do_nothing_any_more_are_forgotten() -> None:
    clock = ManualClock()
    meter = LocalMeter(clock)
    for number in range(MAX_IDLE_COUNT):
        meter.add(TOKENS, f"t{number}", 1)
    clock.advance(3 * LENGTH_S)

    meter.add(TOKENS, "acme", 1)

    assert len(meter._counters) == 1
