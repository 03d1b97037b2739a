"""Counts what tenants use in Redis, so that all gateways together hold them to their limits."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

from services.runtime.clock import Clock
from services.runtime.metering import LENGTH_S, REQUESTS, TOKENS, LocalMeter, Window
from services.runtime.telemetry import QUOTA_ALONE, QUOTA_SHARED, get_logger

T = TypeVar("T")

WAIT_S = 0.5
"""The longest wait for Redis in any call; it answers within a thousandth of a second or so."""
MISSES = 3
"""After so many in a row it is away: one may be a busy moment."""
RETRY_S = 1.0
"""How often one call tries it again while it is away."""
MAX_CONNECTIONS = 8
_UNBOUNDED = 2**53
"""Tokens are noted after the fact, however many they are; the script counts in doubles."""


class SharedMeter:
    """Counts in Redis; while that is away, each gateway counts for itself, from nothing."""

    def __init__(self, url: str, prefix: str, clock: Clock) -> None:
        """Take the address, and what all keys begin with.

        Raises:
            ValueError: the address is none of a Redis.
        """
        # Ten megabytes and a tenth of a second that only those pay who share.
        from limits.aio.storage import RedisStorage
        from redis.asyncio import BlockingConnectionPool
        from redis.asyncio.retry import Retry
        from redis.backoff import NoBackoff
        from redis.exceptions import RedisError

        pool = BlockingConnectionPool.from_url(
            url,
            max_connections=MAX_CONNECTIONS,
            timeout=WAIT_S,
            socket_timeout=WAIT_S,
            socket_connect_timeout=WAIT_S,
            # Once: a connection that Redis has closed meanwhile is no Redis that is away.
            retry=Retry(NoBackoff(), 1),
        )
        self._pool = pool
        self._storage = RedisStorage(
            "async+redis://",
            implementation="redispy",
            key_prefix=prefix,
            connection_pool=pool,  # type: ignore[arg-type] # declared for texts and numbers only
        )
        self._failures: tuple[type[Exception], ...] = (RedisError, OSError, TimeoutError)
        self._clock = clock
        self._local = LocalMeter(clock)
        self._pending: dict[str, int] = {}
        """Tokens that Redis has not been told of yet, by tenant."""
        self._noted = asyncio.Event()
        self._misses = 0
        self._away_until = 0.0

    async def take_request(self, tenant: str, limit: int) -> float:
        """Count one call unless that exceeds the limit; as the policy says."""
        taken = await self._ask(lambda: self._add(REQUESTS, tenant, 1, limit))
        if taken is None:
            return await self._local.take_request(tenant, limit)
        if taken:
            return 0.0
        window = await self._ask(lambda: self._window(REQUESTS, tenant))
        # Whatever it says by now: the call was refused.
        return max(RETRY_S if window is None else window.wait_s(limit), 1e-3)

    async def token_wait_s(self, tenant: str, limit: int) -> float:
        """Return how long until fewer tokens than the limit count, seconds."""
        # Taken before Redis is asked: it may be told of them after it has answered us, and before
        # we hear the answer. For as long as that takes, they may count twice.
        untold = self._pending.get(tenant, 0)
        window = await self._ask(lambda: self._window(TOKENS, tenant))
        if window is None:
            return await self._local.token_wait_s(tenant, limit)
        current = window.current + max(untold, self._pending.get(tenant, 0))
        return Window(window.previous, current, window.left_s).wait_s(limit)

    def note_tokens(self, tenant: str, count: int) -> None:
        """Count tokens that were used; Redis hears of it a moment later."""
        self._pending[tenant] = self._pending.get(tenant, 0) + count
        self._noted.set()

    async def tell_forever(self) -> None:
        """Tell Redis what was noted, again and again; once more at the end."""
        try:
            while True:
                await self._noted.wait()
                self._noted.clear()
                await self._tell()
        finally:
            await self._tell()
            await self._close()

    async def _tell(self) -> None:
        for tenant in list(self._pending):
            count = self._pending[tenant]
            adding = partial(self._add, TOKENS, tenant, count, _UNBOUNDED)
            if await self._ask(adding) is None:
                self._local.note_tokens(tenant, count)
            left = self._pending.pop(tenant) - count
            if left:
                self.note_tokens(tenant, left)

    async def _ask(self, work: Callable[[], Awaitable[T]]) -> T | None:
        """Return what Redis says; None while it is away."""
        now = self._clock.now()
        if now < self._away_until:
            return None
        if self._misses >= MISSES:
            # This call tries it; those that come meanwhile do not wait for that.
            self._away_until = now + RETRY_S
        try:
            async with asyncio.timeout(WAIT_S):
                answer = await work()
        except self._failures as error:
            self._miss(f"{type(error).__name__}: {error}")
            return None
        if self._misses >= MISSES:
            get_logger().info(QUOTA_SHARED)
        self._misses, self._away_until = 0, 0.0
        return answer

    def _miss(self, problem: str) -> None:
        self._misses += 1
        if self._misses >= MISSES:
            self._away_until = self._clock.now() + RETRY_S
        if self._misses == MISSES:
            # Once: whoever reads it knows that each gateway now counts for itself.
            get_logger().warning(QUOTA_ALONE, problem=problem)

    async def _add(self, kind: str, tenant: str, count: int, limit: int) -> bool:
        key = f"{kind}/{tenant}"
        return await self._storage.acquire_sliding_window_entry(key, limit, LENGTH_S, count)

    async def _window(self, kind: str, tenant: str) -> Window:
        found = await self._storage.get_sliding_window(f"{kind}/{tenant}", LENGTH_S)
        previous, _, current, current_ttl_s = found
        # A counter is kept for two minutes, so that it can be the one before.
        left_s = current_ttl_s - LENGTH_S if current_ttl_s > 0 else float(LENGTH_S)
        return Window(previous, current, left_s)

    async def _close(self) -> None:
        try:
            async with asyncio.timeout(WAIT_S):
                await self._pool.disconnect()
        except self._failures:
            return
