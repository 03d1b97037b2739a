"""Names the traffics that plans are compared with simulations for."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from gateway.planning.plan import Plan, make_plan
from gateway.planning.traffic import read_traffic
from services.runtime.call import Group
from services.runtime.config import load_config
from tests.unit.gateway.planning.simulation import Simulation

SEED = 1
UNLIMITED = 10**6


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Is one traffic, under one configuration."""

    traffic: Mapping[str, Any]
    settings: Mapping[str, str]
    warm_up_s: float
    window_s: float
    limited: bool = False
    """Whether the simulated pods have the permits that are configured; else as many as they ask
    for, which shows how many they need."""


SHAPES = {
    "a page, three times its average at noon": Shape(
        traffic={"qps": 16.2, "peak_factor": 3.0, "backup_ratio": 0.2},
        settings={},
        warm_up_s=15.0,
        window_s=120.0,
    ),
    "2500 a second with a quick provider": Shape(
        traffic={"qps": 2500.0, "llm": {"p50_s": 0.5, "p99_s": 1.5}, "backup_ratio": 0.1},
        settings={},
        warm_up_s=2.0,
        window_s=2.0,
    ),
    "an outage of the first model, and a provider of even pace": Shape(
        traffic={"qps": 60.0, "llm": {"p50_s": 1.5, "p99_s": 1.6}, "backup_ratio": 1.0},
        settings={},
        warm_up_s=10.0,
        window_s=60.0,
    ),
    "much of other people's services": Shape(
        traffic={
            "qps": 40.0,
            "llm": {"p50_s": 1.0, "p99_s": 9.0},
            "external": {"calls": 1.4, "waits": {"p50_s": 0.4, "p99_s": 2.0}},
            "data": {"calls": 3.0, "waits": {"p50_s": 0.05, "p99_s": 0.3}},
            "backup_ratio": 0.2,
        },
        settings={},
        warm_up_s=20.0,
        window_s=80.0,
    ),
}
"""Nothing waits for permits in these."""

_FEW = {"auxiliary": {"calls": 0.0}, "core": {"calls": 0.0}, "direct_model_calls": 0.1}
CROWDED = {
    "external, of twelve permits nine in use": Shape(
        traffic={
            **_FEW,
            "qps": 450.0,
            "min_pods": 30,
            "external": {"calls": 1.0, "waits": {"p50_s": 0.5, "p99_s": 1.5}},
        },
        settings={"BULKHEAD__EXTERNAL__PERMITS": "12"},
        warm_up_s=6.0,
        window_s=40.0,
        limited=True,
    ),
    "few pods, each with many runs": Shape(
        traffic={
            "qps": 45.0,
            "auxiliary": {"calls": 0.0},
            "external": {"calls": 1.0, "waits": {"p50_s": 0.5, "p99_s": 1.5}},
            "data": {"calls": 1.0, "waits": {"p50_s": 0.2, "p99_s": 1.2}},
        },
        settings={"BULKHEAD__EXTERNAL__PERMITS": "11", "BULKHEAD__DATA__PERMITS": "6"},
        warm_up_s=20.0,
        window_s=250.0,
        limited=True,
    ),
    "data of a very uneven pace": Shape(
        traffic={
            **_FEW,
            "qps": 500.0,
            "min_pods": 30,
            "data": {"calls": 1.0, "waits": {"p50_s": 0.2, "p99_s": 1.2}},
            "external": {"calls": 1.0, "waits": {"p50_s": 0.5, "p99_s": 1.5}},
        },
        settings={"BULKHEAD__DATA__PERMITS": "6", "BULKHEAD__EXTERNAL__PERMITS": "100"},
        warm_up_s=6.0,
        window_s=40.0,
        limited=True,
    ),
}
"""In these many do."""

MOSTLY_ONE_POOL = {
    "tools of which half ask the model": Shape(
        traffic={"qps": 45.0, "llm": {"p50_s": 1.0, "p99_s": 2.0}, "direct_model_calls": 0.3},
        settings={"BULKHEAD__AUXILIARY__PERMITS": "11"},
        warm_up_s=20.0,
        window_s=300.0,
        limited=True,
    ),
}
"""In this most of a run's time goes through the pool in which calls wait."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Is a plan with a simulation that has run."""

    plan: Plan
    seen: Simulation


@cache
def compared(name: str) -> Compared:
    """Return the plan and the simulation of a shape; each is made once."""
    shape = (SHAPES | CROWDED | MOSTLY_ONE_POOL)[name]
    environ = {f"SIXHOP_{key}": value for key, value in shape.settings.items()}
    plan = make_plan(read_traffic(None, shape.traffic), load_config(Path("/dev/null"), environ))
    permits = dict.fromkeys(Group, UNLIMITED)
    if shape.limited:
        permits |= {pool.group: pool.configured for pool in plan.pools}
    pods = {tier.name: tier.pods for tier in plan.tiers if tier.pods}
    seen = Simulation(plan.traffic, pods, permits, seed=SEED)
    seen.run(shape.warm_up_s, shape.window_s)
    return Compared(plan, seen)
