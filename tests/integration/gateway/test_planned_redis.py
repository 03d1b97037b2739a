"""Compares the commands that a plan counts with those that a real Redis has counted."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping

import pytest
from pydantic import SecretStr
from redis.asyncio import Redis

from gateway.access.shared_meter import SharedMeter
from gateway.config import RunsSettings
from gateway.planning import stores
from gateway.runs.redis_store import RedisRuns
from services.routing.config import BoardSettings
from services.routing.peers import MAX_PEERS
from services.routing.redis_store import RedisStore
from services.runtime.background import background
from services.runtime.clock import ManualClock, MonotonicClock
from tests.redis_server import RedisServer, running_redis
from tests.requirements import requirement
from tests.unit.gateway.runs.made import Gateway, file, finished, kept, text
from tests.waiting import BOUND_S, POLL_S

pytestmark = requirement("plan:redis")

NOW_S = 1_800_000_000.0
SCRIPTS = ("eval", "evalsha")
OF_CONNECTIONS = ("config|resetstat", "info", "client|setinfo", "hello", "ping", "script|load")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """Return a Redis that runs."""
    with running_redis(tmp_path_factory.mktemp("redis")) as started:
        yield started


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nobody give Redis up because the machine stood still."""
    for module in ("services.routing.redis_store", "gateway.access.shared_meter"):
        monkeypatch.setattr(f"{module}.WAIT_S", BOUND_S)


async def reset(server: RedisServer) -> None:
    """Have Redis count from nothing."""
    async with Redis.from_url(server.url) as admin:
        await admin.config_resetstat()


async def counted(server: RedisServer) -> Counter[str]:
    """Return the commands since then, without those of connections."""
    async with Redis.from_url(server.url) as admin:
        stats: Mapping[str, Mapping[str, int]] = await admin.info("commandstats")
    told = {name.removeprefix("cmdstat_"): each["calls"] for name, each in stats.items()}
    return Counter({name: calls for name, calls in told.items() if name not in OF_CONNECTIONS})


def scripts_of(found: Counter[str]) -> int:
    """Return how many scripts Redis has run."""
    return sum(found[name] for name in SCRIPTS)


async def until_told(server: RedisServer, count: int) -> None:
    """Wait until Redis has run so many scripts."""
    async with asyncio.timeout(BOUND_S):
        while scripts_of(await counted(server)) < count:  # noqa: ASYNC110  # Redis tells nobody
            await asyncio.sleep(POLL_S)


async def test_a_run_is_written_by_so_many_commands(server: RedisServer) -> None:
    clock = ManualClock(NOW_S)
    gateway = Gateway(clock)
    url = SecretStr(server.url)
    store = RedisRuns(RunsSettings(redis_url=url, redis_prefix="planned", max_count=3), clock)
    begun = [kept(gateway.begin(f"begun-{number}", tenant)) for number, tenant in enumerate("aab")]
    ended = [gateway.ended("ended", text("Hello."), finished(), tenant="c")]
    with_files = [gateway.ended("files", text("Hello."), finished(file()), tenant="d")]

    try:
        found = []
        for runs in (begun, ended, with_files):
            await reset(server)
            await store.write(runs)
            found.append((await counted(server)).total())
        # A tenant that has too many: its oldest goes.
        await store.write([gateway.ended(f"more-{number}", tenant="e") for number in range(3)])
        await reset(server)
        await store.write([gateway.ended("most", tenant="e")])
        found.append((await counted(server)).total())
    finally:
        await store.close()

    assert found == [
        3 * stores.BEGIN_COMMANDS + 2 * stores.INDEX_COMMANDS,
        stores.END_COMMANDS + stores.INDEX_COMMANDS,
        stores.END_COMMANDS + stores.FILE_COMMANDS + stores.INDEX_COMMANDS,
        stores.END_COMMANDS + stores.INDEX_COMMANDS + 2,
    ]


async def test_limits_of_a_tenant_are_counted_by_so_many_commands(server: RedisServer) -> None:
    meter = SharedMeter(server.url, "planned-quota", MonotonicClock())
    # The first call teaches Redis the scripts.
    await meter.token_wait_s("acme", 1_000_000)
    await meter.take_request("acme", 1_000_000)
    await reset(server)
    count = 20

    async with background(meter.tell_forever()):
        for number in range(count):
            await meter.token_wait_s("acme", 1_000_000)
            await meter.take_request("acme", 1_000_000)
            meter.note_tokens("acme", 100)
            await until_told(server, 3 * number + 3)
    found = await counted(server)

    scripts = scripts_of(found)
    inside = found.total() - scripts
    assert scripts == stores.QUOTA_COMMANDS * count
    # At the change of a minute there is one RENAME more, and its window is looked at anew.
    expected = (2 * stores.ACQUIRE_INSIDE + stores.WINDOW_INSIDE) * count
    assert expected <= inside <= 1.15 * expected


async def test_boards_are_exchanged_by_so_many_commands(server: RedisServer) -> None:
    names = ("routing-1", "routing-2", "routing-3")
    processes = [RedisStore(server.url, "planned-board", 10.0) for _ in names]
    try:
        for name, process in zip(names, processes, strict=True):
            await process.exchange(name, b"what it knows")
        await reset(server)
        for name, process in zip(names, processes, strict=True):
            others = await process.exchange(name, b"what it knows")
            assert set(others) == set(names) - {name}
        found = await counted(server)
    finally:
        for process in processes:
            await process.close()

    assert found.total() == stores.EXCHANGE_COMMANDS * len(names)


def test_the_board_is_planned_as_it_is_configured() -> None:
    assert BoardSettings().share_interval_s == stores.SHARE_INTERVAL_S
    assert stores.MAX_PEERS == MAX_PEERS
