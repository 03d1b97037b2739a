"""Makes processes that can be asked how they do, without a socket."""

import random
from pathlib import Path

from services.runtime.clock import Clock
from services.runtime.config import load_config
from services.runtime.health import Health
from services.runtime.policies.self_ejection import LagConfig, LagReadiness
from services.runtime.process_state import ProcessState
from services.runtime.stack import ClientPolicies, ServerPolicies, client_policies, server_policies
from services.runtime.statistics import Activity


def process_state(
    clock: Clock, *, hop: str = "gateway", engine: bool = True, **settings: str
) -> ProcessState:
    """Return the state of a process that is ready.

    Args:
        clock: the clock.
        hop: the hop.
        engine: whether the policies are on.
        settings: those of the environment, without their prefix.
    """
    environ = {f"SIXHOP_{name}": value for name, value in settings.items()}
    config = load_config(Path("/dev/null"), environ)
    guards: ServerPolicies | None = None
    policies: ClientPolicies | None = None
    if engine:
        guards = server_policies(config, clock, lambda serving, why: None, lambda change: None)
        policies = client_policies(config, clock, random.Random(1), lambda change: None)
    health = Health()
    health.ready, health.detail = True, ""
    return ProcessState(
        hop=hop,
        pod=f"{hop}-1",
        clock=clock,
        activity=Activity(),
        health=health,
        lag=LagReadiness(LagConfig()),
        guards=guards,
        policies=policies,
    )
