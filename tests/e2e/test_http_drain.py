"""Tests what whoever comes over HTTP is told by a gateway that has been told to stop."""

import asyncio
import signal
from collections.abc import AsyncIterator

import aiohttp
import pytest
import pytest_asyncio

from services.runtime.topology import GATEWAY
from tests.e2e.client import POLL_S, Client, Running
from tests.e2e.suite import WAIT_S
from tests.requirements import requirement

LIMIT_S = 10.0
CHAT = "/v1/chat/completions"
BODY = {"model": "probe_stream", "messages": [{"role": "user", "content": "Go."}]}


@pytest_asyncio.fixture
async def http(client: Client) -> AsyncIterator[aiohttp.ClientSession]:
    """Return a session that keeps its connections, and that has one."""
    limit = aiohttp.ClientTimeout(total=LIMIT_S)
    async with aiohttp.ClientSession(client.suite.url, timeout=limit) as session:
        async with session.get("/readyz") as answer:
            assert answer.status == 200
        yield session


async def stopping(client: Client, http: aiohttp.ClientSession) -> Running:
    """Tell the gateway to stop while it serves a long run over gRPC; return once it drains."""
    client.suite.provider.behave("normal?token_count=1000&chunk_interval_s=0.05")
    running = client.run("Go.", agent="probe_stream", deadline_s=30.0)
    await client.suite.provider.asked(running.seen.run_id, chunk_count=2)
    client.suite.child(GATEWAY).send(signal.SIGTERM)
    async with asyncio.timeout(LIMIT_S):
        while True:
            async with http.get("/livez") as answer:
                if answer.headers.get("connection") == "close":
                    return running
            await asyncio.sleep(POLL_S)


@requirement("http:drain")
async def test_a_gateway_that_stops_tells_so_and_refuses_until_it_is_gone(
    client: Client, http: aiohttp.ClientSession
) -> None:
    running = await stopping(client, http)

    told: dict[str, tuple[int, str]] = {}
    for path in ("/livez", "/readyz", "/metrics"):
        async with http.get(path) as answer:
            told[path] = (answer.status, answer.headers["connection"])
            if path == "/readyz":
                status = (await answer.json())["status"]
    async with http.post(CHAT, json=BODY, headers={"x-request-id": "late"}) as refused:
        error = (await refused.json())["error"]
    running.call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running.call.read()
    code = client.suite.child(GATEWAY).wait(WAIT_S)
    with pytest.raises(aiohttp.ClientConnectorError):
        await http.get("/readyz")

    assert told == {"/livez": (200, "close"), "/readyz": (503, "close"), "/metrics": (200, "close")}
    assert status == "draining"
    assert (refused.status, error["reason"], error["cause"]) == (503, "LOAD_SHED", "draining")
    assert refused.headers["retry-after"] == "1"
    assert refused.headers["x-should-retry"] == "true"
    assert refused.headers["connection"] == "close"
    assert refused.headers["x-request-id"] == error["request_id"] == "late"
    assert code == 0
