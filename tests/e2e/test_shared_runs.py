"""Tests two gateways that share their runs through a real Redis, which then dies."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from services.runtime.topology import GATEWAY, MODEL_BACKUP, ROUTING
from tests.e2e.conftest import QUIET
from tests.e2e.suite import START_TIMEOUT_S, WAIT_S, Suite, running_suite, wait_until
from tests.e2e.watching import Watcher, watching
from tests.processes import Child
from tests.redis_server import RedisServer, running_redis
from tests.requirements import requirement

pytestmark = [requirement("runs:shared"), pytest.mark.timeout(90)]

SLOW = "normal?token_count=60&chunk_interval_s=0.05"
"""An answer that takes three seconds."""


@dataclass(frozen=True)
class Shared:
    """Is a suite with two gateways and a Redis."""

    suite: Suite
    redis: RedisServer
    other_url: str


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    """Return the suite that these tests share."""
    folder = tmp_path_factory.mktemp("shared")
    with running_redis(folder) as redis:
        store = {"SIXHOP_GATEWAY__RUNS__REDIS_URL": redis.url}
        with running_suite(folder, **QUIET, **store) as suite:
            child = _other_gateway(suite, folder, store)
            try:
                yield Shared(suite, redis, _url(child))
            finally:
                child.end()


def _other_gateway(suite: Suite, folder: Path, settings: dict[str, str]) -> Child:
    ports = {
        "SIXHOP_ROUTING__PORT": str(suite.port(ROUTING)),
        # No process has this one: the suite runs without a second model.
        "SIXHOP_GATEWAY__PORT": str(suite.port(MODEL_BACKUP)),
        "SIXHOP_GATEWAY__HTTP_PORT": "0",
    }
    child = Child("gateway-other", ["-m", "gateway"], {**settings, **ports}, folder)
    child.start()
    wait_until(lambda: _said(child, "hop_serving"), START_TIMEOUT_S, "the other gateway serves")
    return child


def _said(child: Child, event: str) -> bool:
    return event in [line["event"] for line in child.events()]


def _url(child: Child) -> str:
    (line,) = [line for line in child.events() if line["event"] == "http_serving"]
    return f"http://{line['address']}"


@pytest_asyncio.fixture
async def both(shared: Shared) -> AsyncIterator[tuple[Watcher, Watcher]]:
    """Return who looks at each of the gateways."""
    shared.suite.provider.behave("at-once")
    async with AsyncExitStack() as stack:
        yield (
            await stack.enter_async_context(watching(shared.suite.url)),
            await stack.enter_async_context(watching(shared.other_url)),
        )


async def found(watcher: Watcher, path: str, status: str) -> Any:
    """Return a run once it is there and has come to a state."""
    async with asyncio.timeout(WAIT_S):
        while True:
            code, _, told = await watcher.ask("GET", path)
            if code == 200 and told["status"] == status:
                return told
            await asyncio.sleep(0.01)


async def test_a_run_made_at_one_gateway_is_read_at_the_other(
    both: tuple[Watcher, Watcher],
) -> None:
    one, other = both
    path = await one.start("What was the revenue by region?", agent="reports", language="en")
    run = await one.ended(path)

    read = await found(other, path, run["status"])
    listed = (await other.get("/v1/runs"))["data"]
    (pdf,) = [each for each in run["artifacts"] if each["media_type"] == "application/pdf"]
    files = []
    for watcher in both:
        async with watcher.session.get(pdf["url"]) as answer:
            files.append(await answer.read())

    assert read == run
    assert read["answer"]["text"]
    assert run["id"] in [each["id"] for each in listed]
    assert await other.events(path) == await one.events(path)
    assert await other.events(path, after=3) == await one.events(path, after=3)
    assert files[0] == files[1] != b""


async def test_a_run_that_lives_elsewhere_says_so_and_gives_all_events_at_its_end(
    shared: Shared, both: tuple[Watcher, Watcher]
) -> None:
    one, other = both
    shared.suite.provider.behave(SLOW)
    path = await one.start(agent="probe_stream")
    run = await found(other, path, "running")

    status, _, refused = await other.ask("DELETE", path)
    events = await other.events(path)

    assert (status, refused["error"]["reason"]) == (409, "NOT_SERVED_HERE")
    assert refused["error"]["details"]["gateway"] == run["gateway"]
    assert (events[0].name, events[0].data) == ("elsewhere", {"gateway": run["gateway"]})
    assert events[1:] == await one.events(path)
    assert events[-1].data["status"] == "ok"


@requirement("runs:never-in-the-way")
async def test_runs_go_on_when_the_redis_dies_and_are_shared_again_when_it_is_back(
    shared: Shared, both: tuple[Watcher, Watcher]
) -> None:
    one, other = both
    shared.suite.provider.behave(SLOW)
    path = await one.start(agent="probe_stream")
    await found(other, path, "running")

    shared.redis.kill()
    run = await one.ended(path)
    lists = [await watcher.get("/v1/runs") for watcher in both]
    status, headers, refused = await other.ask("GET", path)
    wait_until(
        lambda: _said(shared.suite.child(GATEWAY), "runs_alone"), WAIT_S, "the gateway says so"
    )
    shared.redis.start()
    read = await found(other, path, "ok")

    assert run["status"] == "ok"
    assert [page["partial"] for page in lists] == [True, True]
    assert run["id"] in [each["id"] for each in lists[0]["data"]]
    assert (status, refused["error"]["cause"], headers["retry-after"]) == (503, "store_away", "1")
    assert read == run
