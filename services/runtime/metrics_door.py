"""Serves `GET /metrics` of one process at a port of its own, where one is configured."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from services.runtime.config import PREFIX, HopSettings
from services.runtime.page_door import Page, page_door

PATH = "/metrics"


@asynccontextmanager
async def metrics_door(
    hop: str, settings: HopSettings, snapshot: Callable[[], Any]
) -> AsyncIterator[None]:
    """Tell Prometheus the state while the block runs; nobody where no port is configured.

    Args:
        hop: whose state it is.
        settings: say where.
        snapshot: returns the state now.

    Raises:
        ConfigError: the port cannot be had.
    """
    if not settings.metrics_port:
        yield
        return
    # Imported here, because it costs a megabyte of every process that nobody asks.
    from services.runtime.exposition import MEDIA_TYPE, exposition

    def page() -> Page:
        return Page(exposition(snapshot()), media_type=MEDIA_TYPE)

    variable = f"{PREFIX}{hop.upper()}__METRICS_PORT"
    async with page_door(settings.host, settings.metrics_port, {PATH: page}, variable):
        yield
