"""Shares boards through a real Redis: keys that expire, and a Redis that freezes and dies."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from redis.asyncio import Redis

from services.routing.board import HealthBoard
from services.routing.config import BoardSettings
from services.routing.record import RunEnd
from services.routing.redis_store import MAX_MEMBERS, WAIT_S, RedisStore
from services.routing.sharing import MISSES, BoardSharing, StoreAwayError
from services.runtime.clock import MonotonicClock
from tests.logged import Logged, logged
from tests.redis_server import RedisServer, running_redis
from tests.requirements import requirement

CLOCK = MonotonicClock()
PREFIX = "sixhop:test"
EXPIRY_S = 1.0
A, B = "a:1", "b:1"
PATIENCE_S = 15.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """Return a Redis that runs."""
    with running_redis(tmp_path_factory.mktemp("redis")) as started:
        yield started


def board() -> HealthBoard:
    """Return a board that knows nothing."""
    return HealthBoard((A, B), BoardSettings(), CLOCK, random.Random(7))


def learn_slow(learner: HealthBoard, address: str) -> None:
    """Let a board see that runs take eight times as long as usual at a replica."""
    record, now = learner.records[address], CLOCK.now()
    ticket = record.begin("orders", now - 8.0, 1.0, 1.0, probe=False)
    record.end(ticket, RunEnd.ANSWERED, now)


@asynccontextmanager
async def sharing(server: RedisServer, name: str) -> AsyncIterator[BoardSharing]:
    """Return the sharing of one process; its connection is closed when the block is left."""
    store = RedisStore(server.url, PREFIX, EXPIRY_S)
    try:
        yield BoardSharing(board(), store, name, 0.1, CLOCK)
    finally:
        await store.close()


async def share_until(one: BoardSharing, log: Logged, event: str, count: int = 1) -> None:
    """Exchange again and again until something was logged so often."""
    async with asyncio.timeout(PATIENCE_S):
        while log.events().count(event) < count:
            await one.share()
            await asyncio.sleep(0.02)


async def heard(hearer: BoardSharing, names: set[str]) -> None:
    """Exchange until exactly these others have been heard."""
    async with asyncio.timeout(PATIENCE_S):
        while set(hearer.board.records[A].peers) | set(hearer.board.records[B].peers) != names:
            await hearer.share()
            await asyncio.sleep(0.02)


@requirement("board:shared")
async def test_what_one_process_learns_another_knows_and_forgets_when_it_ends(
    server: RedisServer,
) -> None:
    async with sharing(server, "routing-1") as first, sharing(server, "routing-2") as second:
        learn_slow(first.board, B)
        await first.share()

        await heard(second, {"routing-1"})
        slow = second.board.slowdown(second.board.records[B], CLOCK.now())
        await heard(second, set())

    assert slow > 6
    assert second.board.slowdown(second.board.records[B], CLOCK.now()) == 1.0


@requirement("board:shared")
async def test_every_key_expires_and_is_under_the_prefix(server: RedisServer) -> None:
    async with sharing(server, "routing-3") as one:
        learn_slow(one.board, B)
        await one.share()

    async with Redis.from_url(server.url, decode_responses=True) as client:
        keys = {str(key) for key in await client.keys("*")}
        lives = {key: await client.pttl(key) for key in keys}

    assert f"{PREFIX}:of:routing-3" in keys
    assert all(key.startswith(f"{PREFIX}:") for key in keys)
    # -1 says that a key lives for ever, -2 that it is gone already.
    assert all(left != -1 for left in lives.values()), lives


@requirement("board:shared-away")
async def test_a_redis_that_dies_leaves_the_boards_alone_and_is_found_again(
    server: RedisServer,
) -> None:
    async with sharing(server, "routing-4") as one, sharing(server, "routing-5") as other:
        with logged() as log:
            await share_until(one, log, "board_shared")
            server.kill()
            try:
                for _ in range(3 * MISSES):
                    await one.share()
            finally:
                server.start()
            await share_until(one, log, "board_shared", 2)

        learn_slow(other.board, B)
        await other.share()
        await heard(one, {"routing-5"})

    assert log.events() == ["board_shared", "board_alone", "board_shared"]


@requirement("board:shared-away")
async def test_a_redis_that_freezes_keeps_nobody_waiting(server: RedisServer) -> None:
    async with sharing(server, "routing-6") as one:
        with logged() as log:
            await share_until(one, log, "board_shared")
            with server.stopped():
                took_s = []
                for _ in range(2 * MISSES):
                    began = time.monotonic()
                    await one.share()
                    took_s.append(time.monotonic() - began)
            await share_until(one, log, "board_shared", 2)

    # Two waits at most: for the answer, and for the connection to close.
    assert min(took_s) < 4 * WAIT_S
    assert max(took_s) < 2.0
    assert log.events() == ["board_shared", "board_alone", "board_shared"]


@requirement("board:shared")
async def test_what_others_have_put_under_our_keys_harms_nobody(server: RedisServer) -> None:
    async with sharing(server, "routing-7") as one, Redis.from_url(server.url) as client:
        await client.sadd(f"{PREFIX}:members", "stranger", b"\xff", *range(3 * MAX_MEMBERS))
        await client.set(f"{PREFIX}:of:stranger", b"\xff\xff", px=60_000)

        with logged() as log:
            for _ in range(5):
                await one.share()
        await client.flushall()

    assert "board_alone" not in log.events()
    assert one.board.records[A].peers == {}


@requirement("board:shared-away")
async def test_a_key_of_another_kind_is_told_as_it_is(server: RedisServer) -> None:
    store = RedisStore(server.url, "sixhop:odd", EXPIRY_S)
    async with Redis.from_url(server.url) as client:
        await client.set("sixhop:odd:members", "no set", px=60_000)
        try:
            with pytest.raises(StoreAwayError, match="WRONGTYPE"):
                await store.exchange("routing-8", b"{}")
        finally:
            await store.close()
            await client.flushall()


@requirement("board:shared")
def test_an_address_that_is_none_is_refused_without_showing_it() -> None:
    with pytest.raises(ValueError, match="scheme") as caught:
        RedisStore("http://:secret@host", PREFIX, EXPIRY_S)

    assert "secret" not in str(caught.value)


@requirement("testing:says-what-to-install")
def test_without_the_binary_it_is_said_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", "")

    with pytest.raises(pytest.fail.Exception, match="apt-get install redis-server"):
        RedisServer(tmp_path)
