"""Holds admission to what it is for: under load, the right calls are served in time."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from services.runtime.call import Mode
from services.runtime.policies.admission import Admission, AdmissionConfig
from services.runtime.policies.limit import Fixed, Gradient, GradientConfig, Limit
from tests.unit.runtime.fake_time import LoopClock, run_in_fake_time
from tests.unit.runtime.policies.simulation import Process, Result, Source, overload

PLACES, WORK_S = 32, 0.1
LENGTH_S = 8.0
CAPACITY = PLACES / WORK_S
LIMIT = 48
"""Half as many again as there are places: a short queue keeps them busy."""
EQUAL, PYRAMID = (0.25, 0.25, 0.25, 0.25), (0.4, 0.3, 0.2, 0.1)


def run(
    limit: Limit,
    *loads: list[Source],
    config: AdmissionConfig | None = None,
    seed: int = 1,
) -> list[Result]:
    """Return what became of the calls of each load, one after the other."""
    return run_in_fake_time(
        _run(Admission(config or AdmissionConfig(), limit, LoopClock()), loads, seed)
    )


async def _run(admission: Admission, loads: Sequence[Sequence[Source]], seed: int) -> list[Result]:
    process = Process(admission, PLACES, seed)
    results = []
    for load in loads:
        process.result = Result()
        results.append(await process.run(load, LENGTH_S, WORK_S))
    return results


def goodput(result: Result) -> float:
    """Return the part of the capacity that ended in time."""
    return result.in_time.total() / (CAPACITY * LENGTH_S)


@pytest.mark.parametrize("parts", [EQUAL, PYRAMID], ids=["equal", "pyramid"])
@pytest.mark.parametrize("seed", [1, 2])
def test_at_three_times_the_load_the_highest_level_is_served_and_little_is_wasted(
    parts: tuple[float, ...], seed: int
) -> None:
    [result] = run(Fixed(LIMIT), overload(3, CAPACITY, parts), seed=seed)

    assert result.in_time["CRITICAL_PLUS"] >= 0.99 * result.sent["CRITICAL_PLUS"]
    assert goodput(result) >= 0.85
    assert result.peak <= LIMIT
    served = {name: result.in_time[name] / count for name, count in result.sent.items()}
    assert served["CRITICAL_PLUS"] >= served["CRITICAL"] >= served["SHEDDABLE_PLUS"] - 0.01
    assert served["SHEDDABLE_PLUS"] >= served["SHEDDABLE"] - 0.01


def test_a_limit_that_was_found_serves_as_well_as_one_that_was_chosen() -> None:
    calm, three_times = overload(1, CAPACITY, EQUAL), overload(3, CAPACITY, EQUAL)

    *_, result = run(Gradient(GradientConfig()), calm, calm, three_times)

    assert result.in_time["CRITICAL_PLUS"] >= 0.99 * result.sent["CRITICAL_PLUS"]
    assert goodput(result) >= 0.85


def test_without_admission_three_times_the_load_serves_next_to_nobody_in_time() -> None:
    off = AdmissionConfig(limit=Mode.OFF, fair_share=Mode.OFF)

    [result] = run(Fixed(LIMIT), overload(3, CAPACITY, EQUAL), config=off)

    assert result.in_time["CRITICAL_PLUS"] < 0.6 * result.sent["CRITICAL_PLUS"]


@pytest.mark.parametrize("used", [0.3, 0.6])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_tenant_at_ten_times_its_share_costs_the_others_nothing(used: float, seed: int) -> None:
    """However much of their share the others use: what is not used is lent, and given back."""
    share = CAPACITY / 5
    others = [Source(f"tenant {number}", used * share) for number in range(4)]
    hot = Source("hot", 10 * share)

    calm, result = run(Fixed(LIMIT), others, [*others, hot], seed=seed)

    assert {name: result.refused[name] for name in result.refused if name != "hot"} == {}
    assert {name: result.late[name] for name in result.late if name != "hot"} == {}
    names = [source.name for source in others]
    assert result.p99(*names) <= 1.5 * calm.p99(*names)
    assert result.in_time["hot"] >= share * LENGTH_S
    assert goodput(result) >= 0.75


@pytest.mark.parametrize("others", [1, 4, 11])
def test_whoever_has_no_more_in_flight_than_its_share_is_never_refused(others: int) -> None:
    room = 0.8 * LIMIT
    share = int(room / (others + 1))
    steady = [Source(f"tenant {number}", at_once=share) for number in range(others)]
    hot = Source("hot", 10 * CAPACITY / (others + 1))

    [result] = run(Fixed(LIMIT), [*steady, hot])

    assert set(result.refused) == {"hot"}
    assert result.in_time["hot"] > 0
    assert result.peak <= LIMIT


def test_without_fair_shares_a_hot_tenant_is_paid_for_by_the_others() -> None:
    share = CAPACITY / 5
    others = [Source(f"tenant {number}", 0.3 * share) for number in range(4)]
    unfair = replace(AdmissionConfig(), fair_share=Mode.OFF)

    [result] = run(Fixed(LIMIT), [*others, Source("hot", 10 * share)], config=unfair)

    assert result.refused["tenant 0"] > 0.3 * result.sent["tenant 0"]


def test_when_the_flood_is_over_everybody_is_served_again() -> None:
    calm = overload(0.3, CAPACITY, EQUAL)

    *_, result = run(Fixed(LIMIT), overload(3, CAPACITY, EQUAL), calm)

    assert result.in_time.total() >= 0.99 * result.sent.total()
