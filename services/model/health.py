"""Tells how the model hop is, and asks how its provider is, as long as it serves."""

import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from services.model.backend import Provider
from services.model.config import ModelSettings
from services.model.health_page import ALIVE, HealthPage
from services.model.provider_health import ProviderHealth, Told
from services.runtime.background import background
from services.runtime.call import Group
from services.runtime.config import PREFIX
from services.runtime.http_pools import HttpPools
from services.runtime.load_report import LoadReport, encode_load_report
from services.runtime.page_door import Pages, page_door
from services.runtime.process import Hop
from services.runtime.topology import DEFAULT_PORTS, LLM

HEALTH_PORT_DISTANCE = 10
"""How far the page's port is from the hop's own, when both are the usual ones."""


@asynccontextmanager
async def telling_health(
    hop: Hop, settings: ModelSettings, provider: Provider, pools: HttpPools
) -> AsyncIterator[None]:
    """Ask the provider, and serve the page, while the block runs.

    Raises:
        ConfigError: the page's port cannot be had.
    """
    pool, tell = pools.pool(Group.AUXILIARY), _into_loads(hop, provider)
    asked = ProviderHealth(pool, provider, hop.clock, random.Random(), tell)
    hop.runtime.state.callee_qps = asked.estimated_qps
    async with background(asked.ask_forever()):
        port = health_port(settings, hop.name, hop.config.port(hop.name))
        if not port:
            yield
            return
        pages: Pages = {"/v1/health": lambda: page(hop).as_page(), "/livez": lambda: ALIVE}
        variable = f"{PREFIX}{hop.name.upper()}__HEALTH_PORT"
        async with page_door(settings.host, port, pages, variable):
            yield


def health_port(settings: ModelSettings, deployment: str, port: int) -> int:
    """Return where the page is served; 0 is nowhere.

    Args:
        settings: those of the deployment.
        deployment: its name, `model` or `model_backup`.
        port: where it listens itself.
    """
    if settings.health_port is not None:
        return settings.health_port
    return port + HEALTH_PORT_DISTANCE if port == DEFAULT_PORTS[deployment] else 0


def page(hop: Hop) -> HealthPage:
    """Return what the page tells now."""
    state = hop.runtime.state
    average_s = state.activity.average_s()
    return HealthPage(
        ready=state.health.ready,
        detail=state.health.detail,
        estimated_qps=state.estimated_qps(),
        avg_latency_s=average_s or None,
    )


def _into_loads(hop: Hop, provider: Provider) -> Callable[[Told], None]:
    reader = hop.loads.endpoint(LLM, provider.base_url)

    def take(told: Told) -> None:
        # What an answer takes as a whole is more than its first word. It is told only while
        # nobody here has seen what that takes.
        seen = hop.estimator is not None and LLM in hop.estimator.seen_s()
        path_s = None if seen else told.avg_latency_s
        report = LoadReport(path_s=path_s, estimated_qps=told.estimated_qps)
        reader.note(encode_load_report(report))

    return take
