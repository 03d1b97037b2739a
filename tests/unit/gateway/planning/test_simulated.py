"""Compares plans with simulations that know nothing of their arithmetic, within 15 %."""

import math
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any

import pytest

from gateway.planning.flows import flows
from gateway.planning.plan import Plan, make_plan
from gateway.planning.tiers import callers_of
from gateway.planning.traffic import Spread, read_traffic
from services.runtime.config import Config, load_config
from tests.requirements import requirement
from tests.unit.gateway.planning.shapes import CROWDED, MOSTLY_ONE_POOL, SHAPES, compared
from tests.unit.gateway.planning.sickness import Found, Sickness, Ward
from tests.unit.gateway.planning.writing import Writers

WITHIN = 0.15
CONFIG = load_config(Path("/dev/null"), {})
HANG_S = 15.66
"""How long a tool that hangs keeps its callers, with the default configuration."""


def close(planned: float, seen: float) -> bool:
    """Tell whether a plan is within 15 % of what was seen."""
    return abs(planned - seen) <= WITHIN * seen


@requirement("plan:in-flight")
@pytest.mark.parametrize("name", SHAPES)
def test_so_many_calls_are_in_flight_in_each_tier(name: str) -> None:
    both = compared(name)

    seen = {tier.name: both.seen.in_flight(tier.name) for tier in both.plan.tiers}

    assert {
        tier.name: (tier.in_flight, seen[tier.name])
        for tier in both.plan.tiers
        if not close(tier.in_flight, seen[tier.name])
    } == {}


@requirement("plan:permits")
@pytest.mark.parametrize("name", SHAPES)
def test_so_many_permits_are_enough_in_all_but_one_of_a_hundred_moments(name: str) -> None:
    both = compared(name)

    # The provider of the backup is not told apart from that of the first model.
    pools = [pool for pool in both.plan.pools if pool.caller != "model_backup"]
    seen = [both.seen.needed(pool.caller, pool.group) for pool in pools]

    # Permits are whole: one more or less is as near as they come.
    assert [
        (pool.caller, pool.group, pool.p99, needed)
        for pool, needed in zip(pools, seen, strict=True)
        if not (close(pool.p99, needed) or abs(pool.p99 - needed) <= 1)
    ] == []
    assert all(pool.permits >= pool.p99 for pool in pools)


@requirement("plan:waits")
@pytest.mark.parametrize("name", CROWDED)
def test_so_many_calls_wait_for_permits_and_so_long(name: str) -> None:
    both = compared(name)

    crowded = [pool for pool in both.plan.pools if pool.wait_ratio > 0.05]
    assert crowded
    for pool in crowded:
        seen = both.seen.waits[pool.caller, pool.group]
        assert close(pool.wait_ratio, seen.ratio), (pool, seen)
        assert close(pool.mean_wait_s, seen.mean_s), (pool, seen)


@requirement("plan:waits")
@pytest.mark.parametrize("name", MOSTLY_ONE_POOL)
def test_waits_for_what_takes_most_of_a_run_are_not_told_too_short(name: str) -> None:
    both = compared(name)

    (pool,) = (pool for pool in both.plan.pools if pool.wait_ratio > 0.05)
    seen = both.seen.waits[pool.caller, pool.group]
    assert close(pool.wait_ratio, seen.ratio), (pool, seen)
    # The fuller a pod is with them, the less balancers send there: more than the plan knows.
    assert seen.mean_s < pool.mean_wait_s < 1.35 * seen.mean_s, (pool, seen)


def planned(traffic: dict[str, Any], config: Config = CONFIG) -> Plan:
    """Return the plan for a traffic, under the default configuration if none is given."""
    return make_plan(read_traffic(None, traffic), config)


def sicknesses(plan: Plan, name: str, count: int, *, hang_s: float = 0.0) -> Sequence[Found]:
    """Let one pod of a tier be sick, so many times."""
    tier = next(each for each in plan.tiers if each.name == name)
    found = flows(plan.traffic)
    callers = [
        (pods, rate / pods) for rate, pods in callers_of(name, found, plan.tiers, plan.traffic)
    ]
    deviation = 0.35
    p50_s = tier.time.mean_s / math.exp(deviation**2 / 2)
    sickness = Sickness(
        pods=tier.pods,
        held=Spread(p50_s=p50_s, p99_s=p50_s * math.exp(2.32635 * deviation)),
        failing=plan.traffic.ejection.failing_ratio,
        hang_s=hang_s,
    )
    warm_up_s = 4 * tier.time.mean_s + 0.5
    return [Ward(sickness, callers, seed).run(warm_up_s, 400.0) for seed in range(count)]


@requirement("plan:ejection")
@pytest.mark.parametrize(
    ("traffic", "tier", "count"),
    [
        ({"qps": 50.0}, "model", 60),
        ({"qps": 50.0}, "domain", 60),
        ({"qps": 300.0}, "tool/auxiliary", 20),
        ({"qps": 2500.0}, "tool/data", 16),
        ({"qps": 50.0, "ejection": {"failing_ratio": 0.5}}, "tool/data", 60),
        ({"qps": 50.0, "ejection": {"failing_ratio": 0.9}}, "tool/data", 60),
    ],
)
def test_a_pod_that_fails_at_once_costs_so_many_calls(
    traffic: dict[str, Any], tier: str, count: int
) -> None:
    plan = planned(traffic)
    told = next(each for each in plan.ejections if each.tier == tier)

    seen = sicknesses(plan, tier, count)

    assert close(told.failing_calls, fmean(each.lost for each in seen))
    assert close(told.failing_ratio, sum(e.lost for e in seen) / sum(e.made for e in seen))
    assert close(told.caller_s, fmean(after_s for each in seen for after_s in each.ejected_s))
    assert close(told.all_s, median(max(each.ejected_s) for each in seen))


@requirement("plan:ejection")
@pytest.mark.parametrize(
    ("qps", "tier", "count"), [(50.0, "tool/auxiliary", 10), (300.0, "tool/data", 2)]
)
def test_a_pod_that_answers_nothing_in_time_costs_so_many_calls(
    qps: float, tier: str, count: int
) -> None:
    plan = planned({"qps": qps})
    told = next(each for each in plan.ejections if each.tier == tier)
    assert told.slow_calls is not None
    assert told.slow_s is not None

    seen = sicknesses(plan, tier, count, hang_s=HANG_S)

    assert close(told.slow_calls, fmean(each.lost for each in seen))
    assert close(told.slow_s, fmean(after_s for each in seen for after_s in each.ejected_s))


@requirement("plan:redis")
@pytest.mark.parametrize(
    ("traffic", "indexed", "window_s"),
    [
        ({"qps": 50.0}, 1000, 40.0),
        ({"qps": 300.0, "tenant_count": 5}, 1000, 20.0),
        ({"qps": 2500.0}, 1000, 4.0),
        ({"qps": 5.0, "tenant_count": 1000}, 0, 60.0),
    ],
)
def test_gateways_send_redis_so_many_commands(
    traffic: dict[str, Any], indexed: int, window_s: float
) -> None:
    plan = planned(traffic)
    told = next(load for load in plan.stores.loads if load.use == "runs")
    gateways, run_s = plan.tiers[0].pods, plan.tiers[0].time.mean_s
    writers = Writers(plan.traffic, gateways, run_s, indexed=indexed, most=1000, seed=3)

    seen = writers.run(2 * run_s, window_s)

    assert close(told.commands_per_s, seen)


@requirement("plan:redis")
def test_tenants_that_have_as_many_runs_as_they_may_take_so_many_commands_more() -> None:
    roomy = load_config(Path("/dev/null"), {"SIXHOP_GATEWAY__RUNS__MAX_COUNT": "100000"})
    full, room = (planned({"qps": 200.0}, config) for config in (CONFIG, roomy))
    more = full.stores.loads[0].commands_per_s - room.stores.loads[0].commands_per_s

    seen = [
        Writers(full.traffic, full.tiers[0].pods, 2.0, indexed=1000, most=most, seed=3)
        for most in (1000, 100_000)
    ]
    with_full, with_room = (writers.run(4.0, 20.0) for writers in seen)

    assert close(more, with_full - with_room)
