"""Keeps runs in Redis, as keys that expire, for gateways that share one."""

import asyncio
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar
from urllib.parse import quote

from gateway.config import RunsSettings
from gateway.runs.log import EventLog
from gateway.runs.record import RunWords
from gateway.runs.run import Run
from gateway.runs.sharing import StoreAwayError
from gateway.runs.stored import (
    events_bytes,
    read_events,
    read_record,
    read_words,
    record_bytes,
    words_bytes,
)
from gateway.runs.wanted import Wanted
from services.runtime.clock import Clock

T = TypeVar("T")

READ_WAIT_S = 0.25
"""No look waits longer for Redis; what this gateway has itself is there without it."""
WRITE_WAIT_S = 2.0
GRACE_S = 10.0
"""How long after its deadline a run is still shown as running whose gateway tells no more."""
PAGE_COUNT = 200
"""How many runs are read at a time when many are looked for."""
MAX_READS = 16
"""How many looks may be at Redis at a time."""


class RedisRuns:
    """Speaks with one Redis.

    Of each run there is a record; its events without words; for `resume_s` its words with the
    events that hold them; and its files. The index of a tenant has its runs by when they came.
    """

    def __init__(self, settings: RunsSettings, clock: Clock) -> None:
        """Take the address and how much is kept, and the clock.

        Raises:
            ValueError: the address is none of a Redis.
        """
        # Ten megabytes and a tenth of a second that only those pay who share.
        from redis.exceptions import RedisError

        self._prefix = settings.redis_prefix
        self._max_count = settings.max_count
        self._age_ms = round(settings.max_age_s * 1000)
        words_s = settings.max_age_s if settings.keep_prompts else settings.resume_s
        self._words_ms = round(words_s * 1000)
        self._clock = clock
        self._failures = (RedisError, OSError, TimeoutError)
        url = settings.redis_url.get_secret_value()
        self._reads = _client(url, READ_WAIT_S, MAX_READS)
        self._writes = _client(url, WRITE_WAIT_S, 1)

    async def write(self, runs: Sequence[Run]) -> None:
        """Keep runs as they are now.

        Raises:
            StoreAwayError: Redis did not answer in time, or refused.
        """
        if not runs:
            return
        indices = sorted({self._index(run.record.tenant) for run in runs})
        pipeline = self._writes.pipeline(transaction=False)
        for run in runs:
            self._put(pipeline, run)
        oldest = self._now_ms() - 2 * self._age_ms
        for index in indices:
            pipeline.pexpire(index, 2 * self._age_ms)
            pipeline.zremrangebyscore(index, "-inf", oldest)
            pipeline.zrange(index, 0, -self._max_count - 1)
        told = await self._ask(pipeline.execute(), WRITE_WAIT_S)
        await self._drop(dict(zip(indices, told[-3 * len(indices) :][2::3], strict=True)))

    async def find(self, tenant: str, run_id: str) -> Run | None:
        """Return a tenant's run with its events; None when it is not there.

        Raises:
            StoreAwayError: Redis did not answer in time, or refused.
        """
        keys = [self._key(kind, tenant, run_id) for kind in ("run", "words", "events")]
        record, words, events = await self._ask(self._reads.mget(keys), READ_WAIT_S)
        if record is None:
            return None
        try:
            return self._read(record, words, events)
        except ValueError as error:
            raise StoreAwayError(f"what is there was not written by a gateway: {error}") from None

    async def list(self, wanted: Wanted) -> Sequence[Run]:
        """Return a tenant's runs without their events, the newest first, and one more than wanted.

        Raises:
            StoreAwayError: Redis did not answer in time, or refused.
        """
        found: list[Run] = []
        for start in range(0, self._max_count, PAGE_COUNT):
            names, runs = await self._page(wanted, start)
            found += [run for run in runs if wanted.takes(run)]
            if len(found) > wanted.limit or names < PAGE_COUNT:
                break
        return found[: wanted.limit + 1]

    async def file(self, tenant: str, run_id: str, name: str) -> bytes | None:
        """Return the bytes of a file of a run; None when it is not there.

        Raises:
            StoreAwayError: Redis did not answer in time, or refused.
        """
        key = self._key("files", tenant, run_id)
        content: bytes | None = await self._ask(self._reads.hget(key, name), WRITE_WAIT_S)
        return content

    async def close(self) -> None:
        """Let go of the connections."""
        for client in (self._reads, self._writes):
            try:
                async with asyncio.timeout(READ_WAIT_S):
                    await client.aclose()
            except self._failures:
                continue

    def _put(self, pipeline: Any, run: Run) -> None:
        record = run.told_record()
        tenant, run_id = record.tenant, record.run_id
        pipeline.zadd(self._index(tenant), {run_id: record.started_ms})
        key = self._key("run", tenant, run_id)
        if run.live:
            left_ms = round((record.budget_ms or 0) + GRACE_S * 1000)
            pipeline.set(key, record_bytes(record), px=left_ms)
            return
        pipeline.set(key, record_bytes(record), px=self._age_ms)
        kept = events_bytes(run.log.without_words())
        pipeline.set(self._key("events", tenant, run_id), kept, px=self._age_ms)
        words = run.words()
        if words is not None:
            said = words_bytes(words, run.log)
            pipeline.set(self._key("words", tenant, run_id), said, px=self._words_ms)
        if run.files:
            files = self._key("files", tenant, run_id)
            pipeline.hset(files, mapping=run.files)
            pipeline.pexpire(files, self._age_ms)

    async def _drop(self, excess: Mapping[str, Iterable[bytes]]) -> None:
        """Let the oldest runs of those tenants go that have too many."""
        keys: list[str] = []
        pipeline = self._writes.pipeline(transaction=False)
        for index, names in excess.items():
            if not names:
                continue
            pipeline.zrem(index, *names)
            base = index.removesuffix(":index")
            for name in names:
                run_id = name.decode()
                keys += [f"{base}:{kind}:{run_id}" for kind in ("run", "events", "words", "files")]
        if keys:
            pipeline.delete(*keys)
            await self._ask(pipeline.execute(), WRITE_WAIT_S)

    async def _page(self, wanted: Wanted, start: int) -> tuple[int, Sequence[Run]]:
        """Return how many runs a page of the index names, and those that are there."""
        latest = "+inf" if wanted.before is None else wanted.before[0]
        index = self._index(wanted.tenant)
        names = await self._ask(
            self._reads.zrevrangebyscore(index, latest, "-inf", start=start, num=PAGE_COUNT),
            READ_WAIT_S,
        )
        if not names:
            return 0, []
        keys = [self._key("run", wanted.tenant, name.decode()) for name in names]
        records = await self._ask(self._reads.mget(keys), READ_WAIT_S)
        runs: list[Run] = []
        for record in records:
            # One that is gone leaves its name for a while; a foreign one is nobody's run.
            with suppress(ValueError):
                runs += [self._read(record, None, None)] if record is not None else []
        return len(names), runs

    def _read(self, record: bytes, words: bytes | None, events: bytes | None) -> Run:
        """Return a run.

        Raises:
            ValueError: this was not written by a gateway.
        """
        known = read_record(record)
        said: RunWords | None = None
        log = EventLog()
        if words is not None:
            said, log = read_words(words)
        elif events is not None:
            log = read_events(events)
        return Run.read(known, log, said, self._clock)

    async def _ask(self, work: Awaitable[T], within_s: float) -> Any:
        try:
            async with asyncio.timeout(within_s):
                return await work
        except self._failures as error:
            what = str(error) or "no answer in time"
            raise StoreAwayError(f"{type(error).__name__}: {what}") from None

    def _index(self, tenant: str) -> str:
        return f"{self._prefix}:{quote(tenant, safe='')}:index"

    def _key(self, kind: str, tenant: str, run_id: str) -> str:
        return f"{self._prefix}:{quote(tenant, safe='')}:{kind}:{run_id}"

    def _now_ms(self) -> int:
        return int(self._clock.utc().timestamp() * 1000)


def _client(url: str, wait_s: float, max_connections: int) -> Any:
    # As above: only those pay who share.
    from redis.asyncio import Redis
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff

    return Redis.from_url(
        url,
        socket_timeout=wait_s,
        socket_connect_timeout=wait_s,
        # Whoever looks may look again; whoever writes does so a second later.
        retry=Retry(NoBackoff(), 0),
        max_connections=max_connections,
    )
