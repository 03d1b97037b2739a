"""Keeps runs in a real Redis: keys that expire, and a Redis that freezes and dies."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from pydantic import SecretStr
from redis.asyncio import Redis

from gateway.config import RunsSettings
from gateway.runs.redis_store import PAGE_COUNT, RedisRuns
from gateway.runs.run import Run
from gateway.runs.sharing import Outbox, StoreAwayError
from gateway.runs.wanted import Wanted
from services.runtime.clock import ManualClock, MonotonicClock
from tests.logged import logged
from tests.redis_server import RedisServer, running_redis
from tests.requirements import requirement
from tests.unit.gateway.runs.made import Gateway, file, finished, kept, text
from tests.waiting import until

pytestmark = requirement("runs:shared")

PREFIX = "sixhop:test-runs"
NOW_S = 1_800_000_000.0
PATIENCE_S = 15.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """Return a Redis that runs."""
    with running_redis(tmp_path_factory.mktemp("redis")) as started:
        yield started


@pytest.fixture
def clock() -> ManualClock:
    """Return a clock that shows a date of these years."""
    return ManualClock(NOW_S)


@asynccontextmanager
async def stored(
    server: RedisServer, clock: ManualClock, **settings: Any
) -> AsyncIterator[RedisRuns]:
    """Return an empty store."""
    wanted = RunsSettings(redis_url=SecretStr(server.url), redis_prefix=PREFIX, **settings)
    async with Redis.from_url(server.url) as admin:
        await admin.flushall()
    store = RedisRuns(wanted, clock)
    try:
        yield store
    finally:
        await store.close()


async def keys(server: RedisServer) -> dict[str, int]:
    """Return all keys with how long each is kept, milliseconds."""
    async with Redis.from_url(server.url) as admin:
        found = sorted(await admin.keys("*"))
        return {os.fsdecode(key): await admin.pttl(key) for key in found}


def shown(run: Run | None) -> tuple[Any, ...]:
    """Return what is known of a run."""
    assert run is not None
    return run.told_record(), run.words(), list(run.log.told()), run.live


async def test_a_run_is_read_as_it_was_written(server: RedisServer, clock: ManualClock) -> None:
    run = Gateway(clock).ended("r1", text("Be"), text("cause."), finished(file()), tenant="a b")

    async with stored(server, clock) as store:
        await store.write([run])
        found = await store.find("a b", "r1")
        content = await store.file("a b", "r1", "report.pdf")

    assert shown(found) == shown(run)
    assert content == b"x" * 10


@requirement("runs:own-tenant")
async def test_no_tenant_finds_what_is_anothers(server: RedisServer, clock: ManualClock) -> None:
    gateway = Gateway(clock)
    run = gateway.ended("r1", finished(file()), tenant="a")

    async with stored(server, clock) as store:
        await store.write([run, gateway.ended("run:r1", tenant="a:run")])
        for tenant in ("", "b", "a:run"):
            assert await store.find(tenant, "r1") is None
            assert await store.file(tenant, "r1", "report.pdf") is None
            listed = await store.list(Wanted(tenant=tenant))
            assert [each.record.run_id for each in listed if each.record.run_id == "r1"] == []


@requirement("runs:words-go")
async def test_words_expire_long_before_the_record(server: RedisServer, clock: ManualClock) -> None:
    run = Gateway(clock).ended("r1", text("My secret."), finished(file()))

    async with stored(server, clock, resume_s=60.0, max_age_s=600.0) as store:
        await store.write([run])
        ages_ms = await keys(server)
        async with Redis.from_url(server.url) as admin:
            await admin.delete(f"{PREFIX}::words:r1")
            left = [await admin.get(f"{PREFIX}::{kind}:r1") for kind in ("run", "events")]
        found = await store.find("", "r1")

    assert 0 < ages_ms[f"{PREFIX}::words:r1"] <= 60_000
    for kind in ("run", "events", "files"):
        assert 60_000 < ages_ms[f"{PREFIX}::{kind}:r1"] <= 600_000
    assert b"secret" not in repr(left).encode()
    assert found is not None
    assert found.words() is None
    assert [told.sequence for told in found.log.told()] == [1, 2]


async def test_a_run_that_lives_is_shown_no_longer_than_its_deadline(
    server: RedisServer, clock: ManualClock
) -> None:
    run = kept(Gateway(clock).begin("r1"))

    async with stored(server, clock) as store:
        await store.write([run])
        found = await store.find("", "r1")
        ages_ms = await keys(server)

    assert found is not None
    assert found.live
    assert 0 < ages_ms[f"{PREFIX}::run:r1"] <= 20_000


@requirement("runs:bounded")
async def test_the_oldest_runs_go_with_all_that_belongs_to_them(
    server: RedisServer, clock: ManualClock
) -> None:
    gateway = Gateway(clock)

    async with stored(server, clock, max_count=3) as store:
        for number in range(6):
            await store.write([gateway.ended(f"{number}", finished(file()))])
            clock.advance(1.0)
        listed = await store.list(Wanted(tenant=""))
        left = await keys(server)

    assert [run.record.run_id for run in listed] == ["5", "4", "3"]
    assert {name.rpartition(":")[2] for name in left} == {"3", "4", "5", "index"}
    assert all(age_ms > 0 for age_ms in left.values())


async def test_many_runs_are_listed_page_by_page(server: RedisServer, clock: ManualClock) -> None:
    gateway = Gateway(clock, max_count=10_000)
    runs = []
    for number in range(2 * PAGE_COUNT + 10):
        runs.append(gateway.ended(f"{number:04}", finished(degraded=number % 100 == 0)))
        clock.advance(1.0)
    started_ms = runs[205].record.started_ms

    async with stored(server, clock) as store:
        await store.write(runs)
        async with Redis.from_url(server.url) as admin:
            await admin.delete(f"{PREFIX}::run:0300")
            await admin.set(f"{PREFIX}::run:0200", b"foreign")
        few = await store.list(Wanted(tenant="", status="degraded", limit=2))
        older = await store.list(Wanted(tenant="", before=(started_ms, "0205"), limit=2))

    assert [run.record.run_id for run in few] == ["0400", "0100", "0000"]
    assert [run.record.run_id for run in older] == ["0204", "0203", "0202"]


async def test_what_no_gateway_wrote_is_no_run(server: RedisServer, clock: ManualClock) -> None:
    async with stored(server, clock) as store, Redis.from_url(server.url) as admin:
        await admin.set(f"{PREFIX}::run:r1", b"foreign")

        with pytest.raises(StoreAwayError):
            await store.find("", "r1")


async def test_a_redis_that_freezes_is_waited_for_briefly_and_found_again(
    server: RedisServer, clock: ManualClock
) -> None:
    gateway = Gateway(clock)

    async with stored(server, clock) as store:
        await store.write([gateway.ended("before")])
        with server.stopped():
            for ask in (
                store.find("", "before"),
                store.list(Wanted(tenant="")),
                store.write([gateway.ended("during")]),
            ):
                with pytest.raises(StoreAwayError):
                    await ask
        # An answer that comes too late must not be taken for that of the next question.
        found = await store.find("", "before")
        await store.write([gateway.ended("after")])
        again = await store.find("", "after")

    assert found is not None
    assert found.record.run_id == "before"
    assert again is not None
    assert again.record.run_id == "after"


@requirement("runs:never-in-the-way")
async def test_runs_that_end_while_redis_is_dead_are_there_when_it_is_back(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    clock = MonotonicClock()
    folder = tmp_path_factory.mktemp("dying")
    with logged("gateway") as log, running_redis(folder) as server:
        settings = RunsSettings(redis_url=SecretStr(server.url), redis_prefix=PREFIX)
        store = RedisRuns(settings, clock)
        outbox = Outbox(store, clock)
        gateway = Gateway(ManualClock(NOW_S))
        async with outbox.writing(), asyncio.timeout(PATIENCE_S):
            server.kill()
            outbox.put(gateway.ended("lost-and-found"))
            await until(lambda: "runs_alone" in log.events())
            server.start()
            await until(lambda: "runs_shared" in log.events())
            found = await store.find("", "lost-and-found")
            events = log.events()

    assert found is not None
    assert events == ["runs_alone", "runs_shared"]
