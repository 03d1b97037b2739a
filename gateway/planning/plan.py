"""Puts the parts of a plan together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gateway.config import GatewaySettings
from gateway.planning.ejection import Ejection, plan_ejections
from gateway.planning.fitting import cut_ratios, require_run_fits, require_tools_fit
from gateway.planning.flows import flows
from gateway.planning.pools import Connections, Pool, plan_connections, plan_pools
from gateway.planning.stores import StorePlan, plan_stores
from gateway.planning.tiers import Tier, plan_tiers
from gateway.planning.traffic import Traffic
from services.runtime.checks.tree import read_tree
from services.runtime.config import Config
from services.runtime.topology import GATEWAY


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Is what a traffic takes, at its busiest minute."""

    traffic: Traffic
    tiers: Sequence[Tier]
    pools: Sequence[Pool]
    connections: Sequence[Connections]
    ejections: Sequence[Ejection]
    stores: StorePlan
    cut_ratios: Mapping[str, float]
    """The part of the provider's answers that outlives its path, 0–1, by path."""


def make_plan(traffic: Traffic, config: Config) -> Plan:
    """Return the plan for a traffic under a configuration.

    Raises:
        ConfigError: a section of the configuration is wrong.
        PlanError: its deadlines cannot hold the traffic.
    """
    tree = read_tree(config)
    found = flows(traffic)
    cut = cut_ratios(traffic, found, config)
    require_tools_fit(traffic, config)
    kept = config.section(GATEWAY, GatewaySettings).runs.max_bytes
    tiers = plan_tiers(traffic, found, tree, run_bytes=kept)
    require_run_fits(tiers, config)
    pools = plan_pools(traffic, found, tiers, tree)
    return Plan(
        traffic=traffic,
        tiers=tiers,
        pools=pools,
        connections=plan_connections(traffic, found, tiers, tree),
        ejections=plan_ejections(traffic, found, tiers, tree),
        stores=plan_stores(traffic, tiers, config),
        cut_ratios=cut,
    )
