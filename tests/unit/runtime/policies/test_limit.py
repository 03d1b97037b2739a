"""Holds the search for a limit to what it may learn from, and to the failures of others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.runtime.policies.limit import Fixed, Gradient, GradientConfig
from tests.unit.runtime.fake_time import START

CALM_S = 0.1


class Server:
    """Has ten places and is always asked for as much as the limit lets in."""

    def __init__(self, limit: Gradient, places: int = 10, work_s: float = CALM_S) -> None:
        self.limit = limit
        self.places = places
        self.work_s = work_s
        self.now = START

    def window(self, inflight: int | None = None, *, overloads: int = 0) -> float:
        """Serve twenty calls at once over a second; return the latency they saw."""
        busy = self.limit.value if inflight is None else inflight
        latency_s = self.work_s * max(1.0, busy / self.places)
        for number in range(20):
            self.now += 0.053
            if number < overloads:
                self.limit.record_overload(self.now, busy)
            else:
                self.limit.record(self.now, latency_s, busy)
        return latency_s

    def windows(self, count: int, inflight: int | None = None, *, overloads: int = 0) -> None:
        """Serve many windows."""
        for _ in range(count):
            self.window(inflight, overloads=overloads)


def settled(config: GradientConfig | None = None) -> Server:
    """Return a server whose search knows the normal latency and has found its place."""
    server = Server(Gradient(config or GradientConfig(initial_limit=8)))
    server.windows(100)
    return server


def test_a_fixed_limit_learns_nothing() -> None:
    limit = Fixed(7)

    for now in range(50):
        limit.record(now, 9.0, 7)
        limit.record_overload(now, 7)

    assert limit.value == 7


def test_a_limit_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="nobody"):
        Fixed(0)


@pytest.mark.parametrize(
    "wrong",
    [
        {"min_limit": 0},
        {"min_limit": 30},
        {"max_limit": 10},
        {"tolerance": 0.9},
        {"smoothing": 0.0},
        {"growth": 0},
        {"window_s": -1.0},
        {"min_samples": 0},
        {"floor_windows": 0},
    ],
)
def test_a_search_that_cannot_work_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"\w+ = .*: write"):
        GradientConfig(**wrong)  # type: ignore[arg-type]


def test_the_search_stops_where_calls_begin_to_queue() -> None:
    server = settled()

    assert 10 <= server.limit.value <= 20
    assert server.window() <= 2 * CALM_S


def test_the_limit_comes_down_when_the_server_slows_down() -> None:
    server = settled()
    before = server.limit.value

    server.places = 3
    server.windows(30)

    assert server.limit.value <= 0.5 * before


def test_the_limit_goes_up_when_the_server_has_grown() -> None:
    server = settled()

    server.places = 40
    server.windows(100)

    assert 40 <= server.limit.value <= 80


def test_one_step_is_the_published_formula() -> None:
    server = Server(Gradient(GradientConfig(initial_limit=20)))
    server.window(20)

    first = server.limit.snapshot()

    assert first.limit == pytest.approx(20 + 0.2 * 0.25 * 20)
    assert (first.gradient, first.window_count) == (1.0, 1)


def test_a_small_limit_grows_by_whole_calls() -> None:
    server = Server(Gradient(GradientConfig(initial_limit=8)))

    server.window(8)

    assert server.limit.snapshot().limit == pytest.approx(8 + 0.2 * 4)


def test_the_brake_is_at_most_one_half() -> None:
    server = settled()
    before = server.limit.snapshot().limit

    server.work_s = 100.0
    server.window()

    assert server.limit.snapshot().gradient == 0.5
    assert server.limit.snapshot().limit == pytest.approx(0.9 * before)


def test_a_limit_that_is_not_half_used_does_not_grow() -> None:
    server = settled()
    before = server.limit.value

    server.windows(50, inflight=before // 2 - 1)

    assert server.limit.value == before


def test_a_limit_that_is_half_used_grows() -> None:
    server = Server(Gradient(GradientConfig(initial_limit=20)))

    server.windows(5, inflight=14)

    assert server.limit.value > 20


def test_calls_that_all_take_the_timeout_never_raise_the_limit() -> None:
    """concurrency-limits#137: the gradient is 1 when every call takes exactly the timeout."""
    server = settled()

    limits = []
    for _ in range(60):
        server.window(overloads=20)
        limits.append(server.limit.value)

    assert limits == sorted(limits, reverse=True)
    assert limits[-1] == GradientConfig().min_limit


def test_one_timeout_in_a_window_is_enough_to_stop_growth() -> None:
    server = Server(Gradient(GradientConfig(initial_limit=8)))
    server.windows(5)
    before = server.limit.snapshot().limit

    server.window(overloads=1)

    assert server.limit.snapshot().limit == pytest.approx(before * (1 - 0.2 * 0.05))


def test_the_latency_of_a_timeout_does_not_become_the_normal_one() -> None:
    server = settled()
    before = server.limit.snapshot().normal_s

    server.windows(50, overloads=20)

    assert server.limit.snapshot().normal_s == before


def test_modest_overload_does_not_let_the_limit_drift_up() -> None:
    """concurrency-limits#134: the queue term outweighs a gradient of 0.8 at every window."""
    server = settled()

    peak = 0
    for _ in range(1000):
        server.window()
        peak = max(peak, server.limit.value)

    assert peak <= 20


def test_a_gradient_under_one_never_grows_the_limit() -> None:
    """concurrency-limits#134, at its formula: 20 · 0.8 + 4 is 20 again, and below that it grows."""
    server = Server(Gradient(GradientConfig(initial_limit=8)))
    server.window(2)
    server.work_s = CALM_S * 1.5 / 0.8
    before = server.limit.snapshot().limit

    server.window(8)

    assert server.limit.snapshot().gradient == pytest.approx(0.8)
    assert server.limit.snapshot().limit < before


def test_queueing_never_becomes_the_norm() -> None:
    """Uber's latency target drifted up with the queueing that it was to prevent."""
    server = settled()

    server.windows(500)

    assert server.limit.snapshot().normal_s == pytest.approx(CALM_S, rel=0.05)


def test_calm_windows_teach_a_slower_norm() -> None:
    server = settled()

    server.work_s = 3 * CALM_S
    server.windows(40, inflight=2)

    assert server.limit.snapshot().normal_s == pytest.approx(3 * CALM_S, rel=0.01)


def test_a_server_that_is_slower_for_good_gets_its_limit_back_under_full_load() -> None:
    server = settled()
    before = server.limit.value

    server.work_s = 5 * CALM_S
    lowest = before
    for _ in range(150):
        server.window()
        lowest = min(lowest, server.limit.value)

    assert lowest == GradientConfig().min_limit
    assert server.limit.value >= 10


def test_a_short_window_waits_for_its_samples() -> None:
    limit = Gradient(GradientConfig())

    for second in range(9):
        limit.record(START + 10 * second, CALM_S, 20)

    assert limit.snapshot().window_count == 0


def test_many_samples_wait_for_their_window() -> None:
    limit = Gradient(GradientConfig())

    for _ in range(500):
        limit.record(START, CALM_S, 20)

    assert limit.snapshot().window_count == 0


SAMPLES = st.lists(
    st.tuples(st.floats(0, 2), st.none() | st.floats(0, 100), st.integers(1, 500)), max_size=400
)


@given(SAMPLES, st.integers(1, 20), st.integers(0, 50), st.integers(0, 200))
def test_the_limit_stays_between_its_bounds_and_the_same_samples_give_the_same_limit(
    samples: list[tuple[float, float | None, int]], low: int, above: int, room: int
) -> None:
    config = GradientConfig(
        min_limit=low, initial_limit=low + above, max_limit=low + above + room, min_samples=3
    )
    searches = [Gradient(config), Gradient(config)]

    now = START
    for step_s, latency_s, inflight in samples:
        now += step_s
        for search in searches:
            if latency_s is None:
                search.record_overload(now, inflight)
            else:
                search.record(now, latency_s, inflight)
        assert config.min_limit <= searches[0].value <= config.max_limit

    assert searches[0].snapshot() == searches[1].snapshot()
