"""Shows that times are drawn by the seed, from the distributions that the settings name."""

import math
import random
import statistics

import pytest

from services.model.sim.config import SimSettings
from services.model.sim.faults import Fault
from services.model.sim.timing import Pace, Timing

TIMING = Timing.of(
    SimSettings(
        ttft_median_s=0.4,
        ttft_sigma=0.5,
        prefill_s_per_1k=0.1,
        token_median_s=0.02,
        token_sigma=0.3,
        load_slowdown=2.0,
    )
)


def pace(seed: int = 1, fault: Fault | None = None) -> Pace:
    return Pace(TIMING, fault or Fault(), random.Random(seed))


def test_the_same_seed_draws_the_same_times() -> None:
    first, second = pace(), pace()

    assert [first.first_token_s(0), *(first.token_interval_s() for _ in range(50))] == [
        second.first_token_s(0),
        *(second.token_interval_s() for _ in range(50)),
    ]


def test_another_seed_draws_other_times() -> None:
    assert pace(1).first_token_s(0) != pace(2).first_token_s(0)


def test_times_are_lognormal_around_their_median() -> None:
    one = pace()
    logs = [math.log(one.token_interval_s()) for _ in range(4000)]

    assert statistics.fmean(logs) == pytest.approx(math.log(0.02), abs=0.02)
    assert statistics.stdev(logs) == pytest.approx(0.3, abs=0.02)


def test_a_long_prompt_takes_longer_to_its_first_token() -> None:
    assert pace().first_token_s(10_000) == pytest.approx(pace().first_token_s(0) + 1.0)


def test_a_fault_fixes_a_time_and_leaves_the_others_as_they_were() -> None:
    free, fixed = pace(), pace(fault=Fault(first_token_after_s=0.0))
    free.first_token_s(0)

    assert fixed.first_token_s(5000) == 0.0
    assert fixed.token_interval_s() == free.token_interval_s()


def test_a_slowdown_and_load_multiply() -> None:
    plain = pace().token_interval_s()

    slowed = pace(fault=Fault(slowdown=10)).token_interval_s(factor=1.5)

    assert slowed == pytest.approx(15 * plain)


@pytest.mark.parametrize(
    ("inflight", "limit", "factor"), [(0, 5, 1.0), (1, 5, 1.0), (3, 5, 2.0), (5, 5, 3.0), (1, 1, 1)]
)
def test_pace_falls_with_load_and_is_full_for_one_alone(
    inflight: int, limit: int, factor: float
) -> None:
    assert TIMING.slowdown(inflight, limit) == factor


def test_a_median_of_nothing_takes_no_time() -> None:
    timing = Timing.of(SimSettings(ttft_median_s=0, prefill_s_per_1k=0, token_median_s=0))
    one = Pace(timing, Fault(), random.Random(1))

    assert (one.first_token_s(100), one.token_interval_s()) == (0.0, 0.0)
