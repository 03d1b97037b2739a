"""Holds a plan to what `sixhop k8s render` ships for the same configuration."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.manifests.rendering import render
from gateway.manifests.rendering.render import SETTINGS
from gateway.planning.plan import Plan, make_plan
from gateway.planning.traffic import Traffic
from services.runtime.config import Config, load_config
from services.runtime.topology import GATEWAY, LLM
from tests.requirements import requirement

pytestmark = requirement("plan:shipped")

K8S = Path(__file__).resolve().parents[4] / "k8s"
MANY = Traffic.model_validate({"qps": 16.2, "peak_factor": 3})
"""1.4 million runs a day."""
EVERY_TOOL = Traffic.model_validate({"qps": 50, "external": {"calls": 0.2}})
CONFIGURATIONS: list[Mapping[str, str]] = [
    {},
    {"LIMIT__MAX_INFLIGHT": "100", "BULKHEAD__DATA__PERMITS": "50"},
    {"LIMIT__ALGORITHM": "gradient", "LIMIT__GRADIENT__INITIAL_LIMIT": "50"},
    {"ADMISSION__LEVELS__SHEDDABLE_RATIO": "0.3", "BULKHEAD__CORE__PERMITS": "101"},
    {"ADMISSION__LIMIT": "off"},
]


def configured(variables: Mapping[str, str]) -> Config:
    """Return the configuration that ships, with some settings over it."""
    return load_config(K8S / SETTINGS, {f"SIXHOP_{name}": text for name, text in variables.items()})


def planned(variables: Mapping[str, str]) -> Plan:
    """Return the plan for it."""
    return make_plan(EVERY_TOOL, configured(variables))


def service_of(tier: str) -> str:
    """Return the service, and the deployment, of a tier where tools are split by group."""
    return tier.replace("/", "-").replace("_", "-")


def shipped(variables: Mapping[str, str]) -> dict[tuple[str, str], Mapping[str, Any]]:
    """Return the specifications of what is rendered, by kind and name."""
    files = render.objects(configured(variables), K8S)
    return {
        (body["kind"], body["metadata"]["name"]): body["spec"]
        for path, bodies in files.items()
        for body in bodies
        if "spec" in body and path.name != "patches.yaml"
    }


@pytest.mark.parametrize("variables", CONFIGURATIONS)
def test_pods_are_added_at_the_calls_and_the_cpu_that_are_planned_for(
    variables: Mapping[str, str],
) -> None:
    objects, plan = shipped(variables), planned(variables)

    for tier in plan.tiers:
        if tier.name == LLM:
            continue
        hop = service_of(tier.name.partition("/")[0])
        cpu, *inflight = objects["HorizontalPodAutoscaler", hop]["metrics"]
        assert cpu["containerResource"]["target"] == {
            "type": "AverageValue",
            "averageValue": f"{math.floor(1000 * plan.traffic.cpu_utilisation)}m",
        }
        targets = [each["pods"]["target"]["averageValue"] for each in inflight]
        assert targets == ([str(tier.inflight_target)] if tier.inflight_target else [])


@pytest.mark.parametrize("variables", CONFIGURATIONS)
def test_sidecars_let_pass_what_is_planned(variables: Mapping[str, str]) -> None:
    objects, plan = shipped(variables), planned(variables)

    pools = {
        each.callee: objects["DestinationRule", service_of(each.callee)]["trafficPolicy"][
            "connectionPool"
        ].get("http", {})
        for each in plan.connections
    }

    assert [(each.callee, each.max_requests) for each in plan.connections] == [
        (each.callee, pools[each.callee].get("http2MaxRequests", 0)) for each in plan.connections
    ]
    assert pools[GATEWAY] == {}


def test_the_cluster_is_large_enough_for_a_million_runs_a_day() -> None:
    plan = make_plan(MANY, configured({}))
    bodies = yaml.safe_load_all((K8S / "components/redis/redis.yaml").read_text(encoding="utf-8"))
    (pod,) = (b["spec"]["template"]["spec"] for b in bodies if b["kind"] == "Deployment")
    (redis,) = pod["containers"]
    most_mib = int(redis["args"][redis["args"].index("--maxmemory") + 1].removesuffix("mb"))
    memory = redis["resources"]["limits"]["memory"]

    assert [pool for pool in plan.pools if pool.too_small] == []
    assert most_mib == MANY.redis.maxmemory_mib
    assert plan.stores.memory_mib <= most_mib
    # Redis takes more than its keys: fragments, and buffers of clients.
    assert memory == redis["resources"]["requests"]["memory"] == "2Gi"
    assert most_mib <= 0.75 * 2048
    assert {tier.max_pods for tier in plan.tiers if tier.max_pods > 6} == set()
