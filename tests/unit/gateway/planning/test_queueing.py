"""Compares formulas with tables and with exact solutions."""

import math
import random
import statistics
from pathlib import Path

import pytest

from gateway.planning.ejection import calls_until_ejected, drawn_ratio, ejected_ratio
from gateway.planning.flows import flows
from gateway.planning.queueing import (
    Moments,
    erlang_c,
    even_variance,
    in_flight,
    longer_ratio,
    mean_wait_s,
    moments,
    p99,
    part_variance,
    pod_variance,
    shared_time,
    wait_ratio,
)
from gateway.planning.tiers import plan_tiers
from gateway.planning.traffic import EjectionRule, Spread, ToolCost, Traffic
from services.runtime.checks.tree import read_tree
from services.runtime.config import load_config
from services.runtime.places import places_for
from services.runtime.policies.bulkhead import capacity
from tests.requirements import requirement

pytestmark = requirement("plan:formulas")


def test_a_lognormal_spread_has_its_mean_and_its_variability() -> None:
    found = moments(Spread(p50_s=2.0, p99_s=6.0))

    # By numerical integration of the density.
    assert found.mean_s == pytest.approx(2.2359, abs=1e-4)
    assert found.scv == pytest.approx(0.24985, abs=1e-4)
    assert moments(None) == Moments(0.0, 0.0)
    assert moments(Spread(p50_s=3, p99_s=3)) == Moments(3.0, 0.0)


def test_one_of_a_hundred_takes_longer_than_the_99th_percentile() -> None:
    spread = Spread(p50_s=2.0, p99_s=6.0)

    assert longer_ratio(spread, 6.0) == pytest.approx(0.01, abs=1e-6)
    assert longer_ratio(spread, 2.0) == 0.5
    assert [longer_ratio(Spread(p50_s=2, p99_s=2), limit_s) for limit_s in (1.9, 2.1)] == [1, 0]


@pytest.mark.parametrize(
    ("servers", "load", "waiting"),
    # Tables of Erlang C.
    [(1, 0.5, 0.5), (2, 1.0, 0.3333), (5, 4.0, 0.5541), (10, 8.0, 0.4092), (100, 80.0, 0.0196)],
)
def test_erlang_c_is_that_of_the_tables(servers: int, load: float, waiting: float) -> None:
    assert erlang_c(servers, load) == pytest.approx(waiting, abs=1e-4)
    assert wait_ratio(servers, load) == pytest.approx(waiting, abs=1e-4)
    assert erlang_c(servers, servers) == 1.0


def test_fewer_wait_when_calls_come_evenly() -> None:
    by_chance, evenly, more_evenly = (wait_ratio(12, 9.0, each) for each in (1.0, 0.8, 0.5))

    assert by_chance > evenly > more_evenly > 0
    # Half the size, twice as many: what Hayward's approximation says.
    assert more_evenly == pytest.approx(erlang_c(24, 18.0))


def test_waits_are_exact_where_an_exact_solution_is_known() -> None:
    # Exponential times: C · W / (c − a). One server: Pollaczek–Khinchine.
    assert mean_wait_s(5, 4.0, Moments(2.0, 1.0)) == pytest.approx(0.5541 * 2.0, abs=1e-3)
    assert mean_wait_s(1, 0.5, Moments(2.0, 0.0)) == pytest.approx(1.0)
    assert mean_wait_s(1, 0.5, Moments(2.0, 1.0)) == pytest.approx(2.0)
    assert mean_wait_s(3, 3.0, Moments(1.0, 1.0)) == math.inf
    assert mean_wait_s(3, 0.0, Moments(1.0, 1.0)) == 0.0


def test_work_takes_longer_the_busier_the_core_is() -> None:
    assert shared_time(0.01, 0.0) == 0.01
    assert shared_time(0.01, 0.8) == pytest.approx(0.05)
    with pytest.raises(ValueError, match="full"):
        shared_time(0.01, 1.0)


def test_places_are_those_of_a_bulkhead() -> None:
    for qps, latency_s in ((40, 0.2), (1, 0.1), (2500, 0.013), (33.3, 1.7)):
        assert places_for(in_flight(qps, latency_s), 0.8) == capacity(qps, latency_s)


def poisson_p99(load: float) -> int:
    """Return the 99th percentile of a Poisson spread, by adding its terms up."""
    term = total = math.exp(-load)
    count = 0
    while total < 0.99:
        count += 1
        term *= load / count
        total += term
    return count


@pytest.mark.parametrize("load", [0.3, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 300.0])
def test_the_99th_percentile_of_calls_by_chance_is_exact(load: float) -> None:
    assert p99(load, load) == poisson_p99(load)
    assert p99(0.0, 0.0) == 0


def at_least(wanted: int, load: float) -> float:
    """Return how likely so many calls or more are there by chance."""
    term = total = math.exp(-load)
    for count in range(1, wanted):
        term *= load / count
        total += term
    return max(0.0, 1 - total)


def fixed_point(load: float) -> tuple[float, float]:
    """Return mean and variance of calls at a pod that balancers choose out of two.

    By letting the fractions of pods with so many calls or more move until they rest.
    """
    most = int(load + 12 * math.sqrt(load) + 25)
    parts = [1.0] + [at_least(count, load) for count in range(1, most + 1)]
    step = 0.4 / (2 * load + most)
    for _ in range(round(8 / step)):
        moved = list(parts)
        for count in range(1, most):
            comes = load * (parts[count - 1] ** 2 - parts[count] ** 2)
            moved[count] += step * (comes - count * (parts[count] - parts[count + 1]))
        parts = moved
    mean = sum(parts[1:])
    square = sum((2 * count - 1) * parts[count] for count in range(1, most))
    return mean, square - mean**2


@pytest.mark.parametrize("load", [0.1, 0.5, 2.0, 8.0])
def test_a_balancer_of_two_evens_calls_out_as_the_fixed_point_says(load: float) -> None:
    mean, variance = fixed_point(load)

    assert mean == pytest.approx(load, rel=1e-3)
    assert even_variance(load) == pytest.approx(variance, rel=0.02)


def test_a_call_that_asks_the_model_half_the_time_is_as_uneven_as_draws_say() -> None:
    llm = Spread(p50_s=1.0, p99_s=3.0)
    half = ToolCost(calls=1.0, model_calls=0.5, cpu_ms=0.1)
    traffic = Traffic(qps=10.0, llm=llm, backup_ratio=0.0, auxiliary=half)
    tree = read_tree(load_config(Path("/dev/null"), {}))
    tiers = plan_tiers(traffic, flows(traffic), tree, run_bytes=0)
    told = {tier.name: tier.time for tier in tiers}
    chance, deviation = random.Random(5), math.log(3.0) / 2.32635

    drawn = [chance.lognormvariate(0, deviation) * (chance.random() < 0.5) for _ in range(100_000)]

    assert told["tool/auxiliary"].mean_s == pytest.approx(statistics.fmean(drawn), rel=0.05)
    scv = statistics.pvariance(drawn) / statistics.fmean(drawn) ** 2
    assert told["tool/auxiliary"].scv == pytest.approx(scv, rel=0.1)


def test_one_caller_of_one_pod_sees_chance_alone() -> None:
    assert pod_variance([(4.0, 1)], 1) == 4.0
    # A hundred callers see next to nothing of each other.
    assert pod_variance([(10.0, 100)], 10) == pytest.approx(1.0, rel=0.02)
    assert part_variance(10.0, 1.0, 7.0) == 7.0
    assert part_variance(10.0, 0.5, 10.0) == 5.0


@pytest.mark.parametrize(
    ("failures", "failing", "calls"),
    [
        *((3, 0.3, 51.4), (3, 0.5, 14), (3, 0.9, 3.72), (3, 1.0, 3)),
        *((5, 0.3, 586.5), (5, 0.5, 62), (5, 0.9, 6.9), (3, 0.1, 1110)),
    ],
)
def test_the_rarer_failures_are_the_more_calls_an_ejection_takes(
    failures: int, failing: float, calls: float
) -> None:
    rule = EjectionRule(consecutive_errors=failures, failing_ratio=failing)

    assert calls_until_ejected(rule) == pytest.approx(calls, rel=0.015)


@pytest.mark.parametrize("failing", [0.5, 0.7, 0.9, 1.0])
def test_how_likely_a_pod_is_ejected_agrees_with_the_chain_of_failures(failing: float) -> None:
    rule = EjectionRule(failing_ratio=failing)
    sent = 2 * calls_until_ejected(rule)

    # Of each number of failures in a row how likely it is, in small steps of time.
    states, step = [1.0, 0.0, 0.0], sent / 20_000
    for _ in range(20_000):
        well, failed = (1 - failing) * step, failing * step
        states = [
            states[0] * (1 - failed) + well * (states[1] + states[2]),
            states[1] * (1 - step) + failed * states[0],
            states[2] * (1 - step) + failed * states[1],
        ]

    assert ejected_ratio(rule, sent) == pytest.approx(1 - sum(states), abs=1e-3)
    assert ejected_ratio(rule, 0.0) == 0.0


def test_a_pod_that_wins_every_second_time_gets_its_even_share() -> None:
    for pods in (1, 3, 100):
        assert drawn_ratio(pods, 0.5) == pytest.approx(1 / pods)
    assert drawn_ratio(3, 1.0) == pytest.approx(5 / 9)
