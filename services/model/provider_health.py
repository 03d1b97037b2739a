"""Asks the provider now and then how much it takes and how long that takes; never for tokens."""

import asyncio
import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import aiohttp
import orjson

from services.model.backend import Provider
from services.model.http import ByteStream
from services.runtime.clock import Clock
from services.runtime.errors import SixhopError
from services.runtime.http_pools import HttpPool

INTERVAL_S = 30.0
"""The longest pause between two questions."""
JITTER_RATIO = 0.2
"""The part of a pause that is left out at random, so that processes do not ask in step."""
UNKNOWN_INTERVAL_S = 3600.0
"""The pause after an answer that says that the provider has nothing to tell."""
TIMEOUT_S = 5.0
MAX_AGE_S = 90.0
"""What was told before three questions is no news."""
MAX_BODY_BYTES = 64 * 1024
MAX_NUMBER = 1e9
MEANS_NEVER = frozenset({400, 401, 403, 404, 405, 410, 501})
"""The statuses of a provider that has no such page, or none for us."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Is what a provider has told of itself; None is what it has left out."""

    estimated_qps: float | None = None
    """How many more requests per second it takes."""
    avg_latency_s: float | None = None
    """What one of its answers takes on average, from the request to its end."""


class ProviderHealth:
    """Keeps what the provider has told last. One question is under way at a time."""

    def __init__(
        self,
        pool: HttpPool,
        provider: Provider,
        clock: Clock,
        chance: random.Random,
        tell: Callable[[Told], None] = lambda told: None,
    ) -> None:
        """Take the way to the provider, and who is told of every answer that says something."""
        self._pool = pool
        self._provider = provider
        self._clock = clock
        self._chance = chance
        self._tell = tell
        self._told: Told | None = None
        self._told_at = -math.inf

    @property
    def told(self) -> Told | None:
        """Return what was told last; None when there is nothing, or it is too old."""
        return self._told if self._clock.now() - self._told_at <= MAX_AGE_S else None

    def estimated_qps(self) -> float | None:
        """Return how many more requests per second the provider takes; None is not said."""
        told = self.told
        return None if told is None else told.estimated_qps

    async def ask_forever(self) -> None:
        """Ask again and again."""
        while True:
            pause_s = await self.ask()
            await self._clock.sleep(pause_s * self._chance.uniform(1 - JITTER_RATIO, 1.0))

    async def ask(self) -> float:
        """Ask once, and return after how long it is worth asking again, seconds."""
        try:
            async with asyncio.timeout(TIMEOUT_S):
                status, body = await self._get()
        except (TimeoutError, aiohttp.ClientError, SixhopError):
            # What was told before ages; that nobody answers is what calls will find out.
            return INTERVAL_S
        told = read_health(body) if status == 200 else None
        if told is not None:
            self._told, self._told_at = told, self._clock.now()
            self._tell(told)
            return INTERVAL_S
        # A page that tells no numbers, such as a bare `ok`, will not tell any in a minute.
        return UNKNOWN_INTERVAL_S if status == 200 or status in MEANS_NEVER else INTERVAL_S

    async def _get(self) -> tuple[int, bytes]:
        sent = await self._pool.send(
            "GET",
            health_url(self._provider.base_url),
            headers=self._headers(),
            connect_timeout_s=self._provider.connect_timeout_s,
        )
        stream, body = ByteStream(sent, self._provider), b""
        try:
            while len(body) < MAX_BODY_BYTES and (chunk := await stream.read()):
                body += chunk
        finally:
            stream.abort()
        return sent.response.status, body

    def _headers(self) -> Mapping[str, str]:
        key = self._provider.api_key
        return {"Accept": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})


def health_url(base_url: str) -> str:
    """Return the page beside the API: `/v1/health`, whether or not the API's path ends with v1."""
    return f"{base_url.removesuffix('/v1')}/v1/health"


def read_health(body: bytes) -> Told | None:
    """Return what a page tells; None when that is nothing."""
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(found, dict):
        return None
    latency_ms = _number(found.get("avg_latency_ms"))
    told = Told(
        estimated_qps=_number(found.get("estimated_qps")),
        avg_latency_s=None if latency_ms is None else latency_ms / 1000,
    )
    return None if told == Told() else told


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < MAX_NUMBER else None
