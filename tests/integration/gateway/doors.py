"""Opens the real HTTP door of a gateway whose inner hops are doubles."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohttp

from gateway.service import open_hop
from services.runtime.topology import GATEWAY
from tests.integration.runtime.suite import Suite, running
from tests.ports import free_ports

LIMIT = aiohttp.ClientTimeout(total=10)


@dataclass(frozen=True)
class Door:
    """Is an open door, with the suite behind it."""

    suite: Suite
    http: aiohttp.ClientSession
    address: str
    """`host:port` of it."""


@asynccontextmanager
async def open_door(**settings: str) -> AsyncIterator[Door]:
    """Run a suite with an HTTP door while the block runs; its engine is on."""
    (port,) = free_ports(1)
    known = {"ENGINE__ENABLED": "true", "GATEWAY__HTTP_PORT": str(port), **settings}
    async with running({GATEWAY: open_hop}, **known) as suite:
        address = f"127.0.0.1:{port}"
        async with aiohttp.ClientSession(f"http://{address}", timeout=LIMIT) as http:
            yield Door(suite, http, address)
