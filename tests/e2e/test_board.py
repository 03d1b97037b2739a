"""Tests the health board in real processes: two of the domain hop, of which one goes wrong."""

import asyncio
import json
import shutil
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import pytest
import pytest_asyncio
from redis.asyncio import Redis

from gateway.cli.health import health
from services.runtime.topology import DOMAIN, HOPS, ROUTING
from tests.e2e.client import Client, Ended, Running, open_client
from tests.e2e.suite import HERE, WAIT_S, Suite, eventually, running_suite
from tests.redis_server import RedisServer, running_redis
from tests.requirements import requirement

FIRST, OTHER = "first", "other"
OTHER_DOMAIN = "domain-other"
INTERVAL_S = 0.05
"""How far apart the runs begin."""
LOOK_INTERVAL_S = 0.5
LOOKED_AT_S = 2.0
MOVED_WITHIN_S = 2.0
"""What the project promises: so long after a replica became slow, new runs go elsewhere."""
WATCHED_S = 4.0
BACK_WITHIN_S = 40.0
BOARD = {
    "SIXHOP_ROUTING__BOARD__PROBE_INTERVAL_S": "2",
    "SIXHOP_ROUTING__BOARD__POLL_INTERVAL_S": "5",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return where each domain process has its own agents."""
    folder = tmp_path_factory.mktemp("replicas")
    for name in (FIRST, OTHER):
        (folder / name).mkdir()
        shutil.copy(HERE / "gates" / "probe_gate.py", folder / name)
    return folder


@pytest.fixture(scope="module")
def redis(folder: Path) -> Iterator[RedisServer]:
    """Return where routing shares its board."""
    with running_redis(folder) as started:
        yield started


@pytest.fixture(scope="module")
def suite(folder: Path, redis: RedisServer) -> Iterator[Suite]:
    """Return a suite with two domain processes."""

    def agents(name: str) -> dict[str, str]:
        folders = [str(HERE / "agents"), str(folder / name)]
        return {"SIXHOP_DOMAIN__AGENT_DIRS": json.dumps(folders)}

    others = {OTHER_DOMAIN: agents(OTHER)}
    shared = {"SIXHOP_ROUTING__BOARD__REDIS_URL": redis.url}
    with running_suite(folder, HOPS, others, **BOARD, **shared, **agents(FIRST)) as started:
        yield started


@pytest_asyncio.fixture
async def client(suite: Suite, folder: Path) -> AsyncIterator[Client]:
    """Return a client of a suite in which all is well."""
    suite.heal()
    for name in (FIRST, OTHER):
        (folder / name / "shut").unlink(missing_ok=True)
    async with open_client(suite) as opened:
        yield opened


@dataclass(slots=True)
class Load:
    """Is a steady stream of runs."""

    client: Client
    runs: list[Running] = field(default_factory=list)
    ended: list["asyncio.Task[Ended]"] = field(default_factory=list)

    async def send(self) -> None:
        """Begin runs, for ever."""
        while True:
            running = self.client.run("Go.", agent="probe_gate", deadline_s=60.0)
            self.runs.append(running)
            self.ended.append(asyncio.create_task(running.end()))
            await asyncio.sleep(INTERVAL_S)

    def routed(self, since: float, until: float) -> Counter[str]:
        """Return to which replica the runs went that began in a time."""
        addresses = {
            self.client.suite.address(DOMAIN): FIRST,
            self.client.suite.address(OTHER_DOMAIN): OTHER,
        }
        lines = {
            line["run_id"]: addresses[line["replica"]]
            for line in self.client.suite.child(ROUTING).events('"agent_chosen"')
        }
        began = [each.seen for each in self.runs if since <= each.seen.began < until]
        return Counter(lines[run.run_id] for run in began if run.run_id in lines)

    async def until(self, condition: Callable[[Counter[str]], bool], within_s: float) -> None:
        """Wait until a condition holds of the runs of the last two seconds."""
        async with asyncio.timeout(within_s):
            now = time.monotonic()
            while not condition(self.routed(now - LOOKED_AT_S, now)):
                await asyncio.sleep(LOOK_INTERVAL_S)
                now = time.monotonic()


@asynccontextmanager
async def steady(client: Client) -> AsyncIterator[Load]:
    """Send runs while the block runs, and wait for all of them."""
    load = Load(client)
    sending = asyncio.create_task(load.send())
    try:
        yield load
    finally:
        sending.cancel()
        await asyncio.wait({sending})
        await asyncio.gather(*load.ended)


def shared(counts: Counter[str]) -> bool:
    """Tell whether both get their part."""
    return min(counts[FIRST], counts[OTHER]) >= 0.2 * counts.total() > 0


async def moved(load: Load, since: float) -> Counter[str]:
    """Return where runs went from two seconds after an instant on."""
    await asyncio.sleep(MOVED_WITHIN_S + WATCHED_S)
    # Lines are written with a delay of some 50 ms.
    await asyncio.sleep(0.5)
    return load.routed(since + MOVED_WITHIN_S, since + MOVED_WITHIN_S + WATCHED_S)


def told(suite: Suite) -> Counter[str]:
    """Return how often routing has told that the other replica went away or came back."""
    lines = suite.child(ROUTING).events(suite.address(OTHER_DOMAIN))
    return Counter(line["event"] for line in lines if line["event"].startswith("replica_"))


@requirement("board:leaves-the-slow", "board:comes-back")
async def test_new_runs_leave_a_replica_that_has_become_slow_and_come_back(
    client: Client, folder: Path
) -> None:
    async with steady(client) as load:
        await load.until(shared, BACK_WITHIN_S)

        (folder / OTHER / "shut").touch()
        counts = await moved(load, time.monotonic())
        (folder / OTHER / "shut").unlink()
        await load.until(shared, BACK_WITHIN_S)

    ended = [task.result() for task in load.ended]
    assert counts[FIRST] >= 0.9 * counts.total() > 0, counts
    assert {run.code for run in ended} == {grpc.StatusCode.OK}
    assert {run.text for run in ended} == {FIRST, OTHER}


@requirement("board:leaves-the-slow", "board:comes-back")
async def test_new_runs_leave_a_replica_that_is_frozen_and_come_back(client: Client) -> None:
    async with steady(client) as load:
        await load.until(shared, BACK_WITHIN_S)

        with client.suite.stopped(OTHER_DOMAIN):
            counts = await moved(load, time.monotonic())
        await load.until(shared, BACK_WITHIN_S)

    assert counts[FIRST] >= 0.9 * counts.total() > 0, counts


@requirement("board:sick-get-probes", "board:comes-back")
async def test_a_killed_replica_costs_a_few_runs_and_is_found_again(client: Client) -> None:
    suite = client.suite
    async with steady(client) as load:
        await load.until(shared, BACK_WITHIN_S)

        before = told(suite)
        suite.child(OTHER_DOMAIN).send(signal.SIGKILL)
        killed_at = time.monotonic()
        suite.child(OTHER_DOMAIN).wait(WAIT_S)
        counts = await moved(load, killed_at)
        await asyncio.to_thread(suite.restart, OTHER_DOMAIN)
        await load.until(shared, BACK_WITHIN_S)

    ended = [task.result() for task in load.ended]
    lost = [run for run in ended if run.code is not grpc.StatusCode.OK]
    assert counts[OTHER] == 0, counts
    assert all(run.began < killed_at + MOVED_WITHIN_S for run in lost), lost
    assert told(suite) - before == {"replica_away": 1, "replica_back": 1}


@requirement("board:decision-is-told")
async def test_what_was_decided_is_told_to_the_client_and_in_the_log(client: Client) -> None:
    run = await client.run("Go.", agent="probe_gate").end()

    routed = next(event.routed for event in run.events if event.HasField("routed"))
    line = await client.suite.line(ROUTING, run.run_id, "agent_chosen")
    assert routed.replica.startswith("domain-")
    assert routed.route_reason in ("least_expected", "probe")
    assert line["route_why"] == routed.route_reason
    assert (line["model_route"], line["context_size"]) == ("primary", "full")


@requirement("cli:health")
async def test_health_has_a_row_for_every_replica(
    client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    places = {hop: client.suite.address(hop) for hop in (*HOPS, OTHER_DOMAIN)}
    environ = {f"SIXHOP_{hop.upper()}__PORT": places[hop].rpartition(":")[2] for hop in HOPS}
    environ["SIXHOP_DOMAIN__REPLICAS"] = f"{places[DOMAIN]},{places[OTHER_DOMAIN]}"
    environ["SIXHOP_MODEL__BASE_URL"] = "http://127.0.0.1:9/v1"

    with client.suite.stopped(OTHER_DOMAIN):
        code = await health(environ, as_json=True)

    rows = json.loads(capsys.readouterr().out)["hops"]
    states = {each["address"]: each["state"] for each in rows if each["hop"] == DOMAIN}
    assert code == 1
    assert states == {places[DOMAIN]: "serving", places[OTHER_DOMAIN]: "silent"}
    assert len(rows) == len(HOPS) + 1


@requirement("board:shared-away")
async def test_runs_go_on_while_the_redis_of_the_boards_is_away(
    client: Client, redis: RedisServer
) -> None:
    def heard(event: str, count: int) -> Callable[[], list[bool]]:
        lines = client.suite.child(ROUTING).events
        return lambda: [True] if [e["event"] for e in lines()].count(event) >= count else []

    await eventually(heard("board_shared", 1), WAIT_S, "the board is shared")
    async with Redis.from_url(redis.url, decode_responses=True) as opened:
        keys = [str(key) for key in await opened.keys("sixhop:board:of:*")]
    redis.kill()
    try:
        await eventually(heard("board_alone", 1), WAIT_S, "the board is alone")
        runs = [await client.run("Go.", agent="probe_gate").end() for _ in range(5)]
    finally:
        redis.start()
    await eventually(heard("board_shared", 2), WAIT_S, "the board is shared again")

    assert keys == [f"sixhop:board:of:routing-{client.suite.child(ROUTING).pid}"]
    assert {run.code for run in runs} == {grpc.StatusCode.OK}
    assert not heard("board_alone", 2)()
