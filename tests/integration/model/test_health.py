"""Asks the model hop how it is over HTTP, and lets it ask its provider."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import aiohttp
import pytest

from services.runtime.config import ConfigError
from services.runtime.statistics import MIN_SAMPLES
from tests.integration.model.test_hop import Chain, chain, collect
from tests.ports import free_port
from tests.provider.behaviour import Script
from tests.requirements import requirement
from tests.waiting import until


@asynccontextmanager
async def told(behaviour: str | Script = "normal") -> AsyncIterator[tuple[Chain, str]]:
    """Serve a hop with its page; yields it and where the page is."""
    port = free_port()
    async with chain(behaviour, MODEL__HEALTH_PORT=str(port)) as running:
        yield running, f"http://127.0.0.1:{port}"


async def get(url: str) -> tuple[int, Any]:
    """Return the status and the JSON of a page."""
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        return response.status, await response.json()


async def call_often(running: Chain) -> None:
    """Make one call, and count as many like it as an estimate needs."""
    await collect(running.stub)
    for _ in range(MIN_SAMPLES):
        running.hop.runtime.state.activity.record(0.1, 0.0, failed=False)


@requirement("health:page")
async def test_the_page_tells_what_a_provider_with_one_would() -> None:
    async with told() as (running, url):
        before = await get(f"{url}/v1/health")
        await call_often(running)
        status, after = await get(f"{url}/v1/health")
        alive = await get(f"{url}/livez")
        unknown, _ = await get(f"{url}/metrics")

    assert before == (200, {"status": "ok", "estimated_qps": None, "avg_latency_ms": None})
    assert (status, after["status"]) == (200, "ok")
    assert after["estimated_qps"] > 0
    # The scripted provider takes 5 ms for each of some ten words.
    assert after["avg_latency_ms"] > 20
    assert alive == (200, {"status": "ok"})
    assert unknown == 404


@requirement("health:page")
async def test_a_hop_that_takes_no_calls_says_so() -> None:
    async with told() as (running, url):
        await running.hop.health.drain()

        status, page = await get(f"{url}/v1/health")

    assert status == 503
    assert page["status"] != "ok"
    assert page["estimated_qps"] == 0


@requirement("health:page")
@pytest.mark.parametrize(
    ("said", "heard"),
    [
        (b"POST /v1/health HTTP/1.1\r\n\r\n", b"HTTP/1.1 405 "),
        (b"HEAD /livez HTTP/1.1\r\n\r\n", b"HTTP/1.1 200 "),
        (b"GET /v1/health?x=1 HTTP/1.0\r\n\r\n", b"HTTP/1.1 200 "),
        (b"\r\n\r\n", b"HTTP/1.1 404 "),
        (b"\xff\xfe\x00 nonsense\r\n\r\n", b"HTTP/1.1 404 "),
        (b"GET /livez HTTP/1.1\r\nX: " + b"y" * 20_000, b""),
        (b"GET /livez", b""),
    ],
)
async def test_nonsense_is_refused_or_cut_and_harms_nobody(said: bytes, heard: bytes) -> None:
    async with told() as (_, url):
        port = int(url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(said)
        try:
            async with asyncio.timeout(5):
                answer = await reader.read()
        except ConnectionError:
            answer = b""
        writer.close()

        assert answer[: len(heard)] == heard
        assert bool(answer) is bool(heard)
        assert await get(f"{url}/livez") == (200, {"status": "ok"})


@requirement("health:page")
async def test_a_port_that_is_taken_is_named_with_its_setting() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"{port} is taken; set SIXHOP_MODEL__HEALTH_PORT"):
            async with chain("normal", MODEL__HEALTH_PORT=str(port)):
                pass


@requirement("health:provider-is-asked")
async def test_a_provider_that_takes_little_makes_the_hop_say_so() -> None:
    script = Script(health={"estimated_qps": 0.5, "avg_latency_ms": 900})
    async with told(script) as (running, url):
        await collect(running.stub)
        await until(lambda: running.provider.health_count == 1)
        state = running.hop.runtime.state
        await until(lambda: state.callee_qps() is not None)

        _, page = await get(f"{url}/v1/health")
        snapshot = running.hop.runtime.snapshot()
        report = running.hop.loads.fresh("llm")

    assert page["estimated_qps"] == snapshot.estimated_qps == 0.5
    assert report is not None
    assert report.estimated_qps == 0.5
    assert len(running.provider.log.records) == 1


@requirement("health:provider-is-asked")
async def test_a_provider_without_a_page_is_asked_once_and_bounds_nothing() -> None:
    async with told() as (running, url):
        await call_often(running)
        await until(lambda: running.provider.health_count == 1)

        _, page = await get(f"{url}/v1/health")

    assert page["estimated_qps"] > 0.5
    assert running.provider.health_count == 1


@requirement("health:page")
async def test_a_client_that_says_nothing_does_not_outlive_the_hop() -> None:
    async with told() as (_, url):
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
        await get(f"{url}/livez")

    async with asyncio.timeout(5):
        with suppress(ConnectionError):
            assert await reader.read() == b""
    writer.close()
