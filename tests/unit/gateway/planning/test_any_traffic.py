"""Plans whatever traffic there may be: it is refused in words, or its plan holds together."""

import json
import math
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.cli.plan_report import document
from gateway.planning.fitting import PlanError
from gateway.planning.plan import make_plan
from gateway.planning.traffic import read_traffic
from services.runtime.config import ConfigError, load_config
from tests.requirements import requirement

CONFIG = load_config(Path("/dev/null"), {})

lengths = st.floats(min_value=1e-3, max_value=2.0)
spreads = st.tuples(lengths, st.floats(min_value=1.0, max_value=10.0)).map(
    lambda pair: {"p50_s": pair[0], "p99_s": pair[0] * pair[1]}
)
counts = st.floats(min_value=0.0, max_value=2.0)
costs = st.floats(min_value=0.0, max_value=100.0)
tools = st.fixed_dictionaries(
    {},
    optional={
        "calls": counts,
        "model_calls": counts,
        "cpu_ms": st.floats(min_value=1e-3, max_value=1000.0),
        "waits": spreads,
    },
)
hops = st.fixed_dictionaries(
    {},
    optional={
        "cpu_ms": costs,
        "event_cpu_ms": costs,
        "waits": spreads,
        "cores": st.floats(min_value=0.1, max_value=64.0),
    },
)
traffics = st.fixed_dictionaries(
    {"qps": st.floats(min_value=1e-4, max_value=1e6)},
    optional={
        "peak_factor": st.floats(min_value=1.0, max_value=100.0),
        "chunks": st.floats(min_value=0.0, max_value=1000.0),
        "direct_model_calls": counts,
        "backup_ratio": st.floats(min_value=0.0, max_value=1.0),
        "tenant_count": st.integers(min_value=1, max_value=1_000_000),
        "utilisation": st.floats(min_value=0.05, max_value=0.95),
        "cpu_utilisation": st.floats(min_value=0.05, max_value=0.95),
        "spare_pods": st.integers(min_value=0, max_value=5),
        "min_pods": st.integers(min_value=1, max_value=20),
        "edge_pods": st.integers(min_value=1, max_value=20),
        "llm": spreads,
        **dict.fromkeys(("core", "data", "auxiliary", "external"), tools),
        **dict.fromkeys(("gateway", "routing", "domain", "tool", "model"), hops),
        "ejection": st.fixed_dictionaries(
            {},
            optional={
                "consecutive_errors": st.integers(min_value=1, max_value=20),
                "failing_ratio": st.floats(min_value=0.05, max_value=1.0),
                "max_ejection_percent": st.integers(min_value=1, max_value=100),
            },
        ),
    },
)


@requirement("plan:refuses")
@settings(max_examples=60, deadline=None)
@given(traffics)
def test_any_traffic_is_planned_or_refused_by_a_typed_error(traffic: dict[str, Any]) -> None:
    try:
        plan = make_plan(read_traffic(None, traffic), CONFIG)
    except (ConfigError, PlanError):
        return

    json.dumps(document(plan, ""), allow_nan=False)
    for tier in plan.tiers:
        assert 0 <= tier.busy_ratio < 1
        assert tier.pods == 0 or plan.traffic.min_pods <= tier.min_pods <= tier.pods
        assert tier.pods <= tier.max_pods
    for pool in plan.pools:
        assert pool.permits >= pool.load
        assert 0 <= pool.wait_ratio <= 1
        assert pool.mean_wait_s >= 0
    for each in plan.ejections:
        assert 0 < each.failing_ratio <= 1
        assert 0 < each.caller_s < math.inf
        assert each.max_ejected <= plan.traffic.ejection.max_ejection_percent / 100 * next(
            tier.pods for tier in plan.tiers if tier.name == each.tier
        )
