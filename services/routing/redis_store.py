"""Keeps the messages of routing processes in Redis, as keys that expire."""

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

from services.routing.sharing import StoreAwayError

T = TypeVar("T")

WAIT_S = 0.05
"""No wait for Redis is longer; one that has not come by then is of no use."""
MAX_MEMBERS = 65
"""Of so many processes at most are messages read; a set that grew larger was not ours alone."""


class RedisStore:
    """Speaks with one Redis. Each exchange is two round trips: put and list, then read."""

    def __init__(self, url: str, prefix: str, expiry_s: float) -> None:
        """Take the address, what all keys begin with, and how long a message is kept.

        Raises:
            ValueError: the address is none of a Redis.
        """
        # Ten megabytes and a tenth of a second that only those pay who share.
        from redis.asyncio import Redis
        from redis.asyncio.retry import Retry
        from redis.backoff import NoBackoff
        from redis.exceptions import RedisError

        self._prefix = prefix
        self._expiry_ms = round(expiry_s * 1000)
        self._failures: tuple[type[Exception], ...] = (RedisError, OSError, TimeoutError)
        self._client: Redis = Redis.from_url(
            url,
            socket_timeout=WAIT_S,
            socket_connect_timeout=WAIT_S,
            # Whoever shares asks again a second later; a try of its own would only double the wait.
            retry=Retry(NoBackoff(), 0),
            max_connections=1,
        )

    async def exchange(self, name: str, message: bytes) -> dict[str, bytes]:
        """Put our message there, and return those of all others by their names.

        Raises:
            StoreAwayError: Redis did not answer in time, or refused.
        """
        try:
            names = await self._put(name, message)
            return await self._read([each for each in names if each != name])
        except self._failures as error:
            # A connection on which an answer is still to come must not be used again.
            await self._drop_connection()
            what = str(error) or "no answer in time"
            raise StoreAwayError(f"{type(error).__name__}: {what}") from None

    async def close(self) -> None:
        """Let go of the connection."""
        try:
            await _bounded(self._client.aclose())
        except self._failures:
            return

    async def _put(self, name: str, message: bytes) -> list[str]:
        members = f"{self._prefix}:members"
        pipeline: Any = self._client.pipeline(transaction=False)
        pipeline.set(self._key(name), message, px=self._expiry_ms)
        pipeline.sadd(members, name)
        pipeline.pexpire(members, 10 * self._expiry_ms)
        pipeline.srandmember(members, MAX_MEMBERS)
        *_, found = await _bounded(pipeline.execute())
        return sorted(each.decode(errors="replace") for each in found)

    async def _read(self, names: list[str]) -> dict[str, bytes]:
        if not names:
            return {}
        values: list[Any] = await _bounded(self._client.mget([self._key(each) for each in names]))
        gone = [each for each, value in zip(names, values, strict=True) if value is None]
        if gone:
            await _bounded(self._client.srem(f"{self._prefix}:members", *gone))
        return {each: value for each, value in zip(names, values, strict=True) if value is not None}

    def _key(self, name: str) -> str:
        return f"{self._prefix}:of:{name}"

    async def _drop_connection(self) -> None:
        try:
            await _bounded(self._client.connection_pool.disconnect())
        except self._failures:
            return


async def _bounded(work: "Awaitable[T]") -> T:
    async with asyncio.timeout(WAIT_S):
        return await work
