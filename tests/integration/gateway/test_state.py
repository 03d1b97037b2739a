"""Holds `/v1/state` and `/v1/health` to what every hop does, as it changes."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from services.runtime.orders import OPERATOR_KEY
from services.runtime.topology import GATEWAY, HOPS, MODEL_BACKUP, TOOL
from tests.e2e.tenants.asking import put_key
from tests.integration.gateway.doors import Door, open_door
from tests.requirements import requirement

BOUND_S = 10.0


async def views(door: Door) -> AsyncIterator[dict[str, Any]]:
    """Yield what the stream of states tells."""
    async with door.http.get("/v1/state/events") as answer:
        assert answer.content_type == "text/event-stream"
        async for line in answer.content:
            if line.startswith(b"data: "):
                yield orjson.loads(line[6:])


async def seen(states: AsyncIterator[dict[str, Any]], hop: str, state: str) -> dict[str, Any]:
    """Return the first view of a hop that does so."""
    async with asyncio.timeout(BOUND_S):
        async for view in states:
            if (view["hop"], view["state"]) == (hop, state):
                return view
    pytest.fail(f"the stream ended before {hop} was {state}")


async def health(door: Door) -> tuple[int, str, list[str]]:
    """Return the status of the health page, its word, and the hops that it finds not ready."""
    async with door.http.get("/v1/health") as answer:
        page = await answer.json()
        return (
            answer.status,
            page["status"],
            [hop["hop"] for hop in page["hops"] if not hop["ready"]],
        )


@requirement("page:state")
async def test_every_hop_tells_its_state_and_one_that_is_not_there_is_shown_so() -> None:
    absent = {"MODEL_BACKUP__BASE_URL": "http://127.0.0.1:1/v1", "MODEL_BACKUP__PORT": "1"}
    async with open_door(**absent) as door, door.http.get("/v1/state") as answer:
        hops = {hop["hop"]: hop for hop in (await answer.json())["hops"]}

    assert list(hops) == [*HOPS, MODEL_BACKUP]
    assert [hops[name]["state"] for name in HOPS] == ["serving"] * len(HOPS)
    assert hops[MODEL_BACKUP]["state"] == "unreachable"
    assert hops[MODEL_BACKUP]["detail"] == "nobody listens there"
    assert hops[GATEWAY]["admission"]["limit"] > 0


@requirement("page:state")
async def test_who_looks_sees_a_hop_leave_and_come_back() -> None:
    async with open_door() as door:
        states = views(door)
        first = await seen(states, TOOL, "serving")
        await door.suite.hops[TOOL].health.set_not_ready("it has no engine")
        away = await seen(states, TOOL, "not_serving")
        await door.suite.hops[TOOL].health.set_ready()
        back = await seen(states, TOOL, "serving")

    assert first["address"] == door.suite.config.address(TOOL)
    assert away["detail"] == "it has no engine"
    assert back["detail"] == ""


@requirement("page:state")
async def test_the_health_page_tells_of_every_hop() -> None:
    async with open_door() as door:
        ask = {"model": "chat", "messages": [{"role": "user", "content": "hello"}]}
        async with door.http.post("/v1/chat/completions", json=ask) as asked:
            assert asked.status == 200
        async with door.http.get("/v1/health") as answer:
            page = await answer.json()

    assert page["status"] == "ok"
    assert [hop["hop"] for hop in page["hops"]] == list(HOPS)
    assert all(hop["ready"] for hop in page["hops"])
    gateway = page["hops"][0]
    assert gateway["breakers"]["routing"] == "closed"
    assert gateway["avg_latency_ms"] > 0


@requirement("page:state")
async def test_the_health_page_is_ok_only_while_every_hop_is_ready() -> None:
    async with open_door() as door:
        states = views(door)
        await seen(states, TOOL, "serving")
        whole = await health(door)
        await door.suite.hops[TOOL].health.set_not_ready("it has no engine")
        await seen(states, TOOL, "not_serving")
        partly = await health(door)
        await door.suite.hops[GATEWAY].health.set_not_ready("it drains")
        away = await health(door)

    assert whole == (200, "ok", [])
    assert partly == (200, "degraded", [TOOL])
    assert away[:2] == (503, "it drains")


@requirement("page:state")
async def test_streams_of_states_end_when_the_gateway_drains() -> None:
    async with open_door() as door:
        states = views(door)
        await seen(states, GATEWAY, "serving")
        async with asyncio.timeout(BOUND_S):
            closing = asyncio.gather(
                *(close(BOUND_S) for close in door.suite.hops[GATEWAY].draining)
            )
            rest = [view async for view in states]
            await closing

    assert len(rest) < 100


@requirement("page:state")
async def test_where_tenants_are_known_the_state_is_theirs_and_the_operators(
    tmp_path: Path,
) -> None:
    keys, operator = tmp_path / "keys.json", "open-sesame-4711"
    key = put_key(keys, "acme")
    shown = {
        "nobody": {},
        "a stranger": {"authorization": "Bearer sk-sixhop-nothing"},
        "a wrong operator": {OPERATOR_KEY: "sesame"},
        "a tenant": {"authorization": f"Bearer {key}"},
        "the operator": {OPERATOR_KEY: operator},
    }
    statuses = {}
    async with open_door(GATEWAY__KEYS_FILE=str(keys), OPERATOR__KEY=operator) as door:
        for who, headers in shown.items():
            async with door.http.get("/v1/state", headers=headers) as once:
                async with door.http.get("/v1/state/events", headers=headers) as stream:
                    statuses[who] = (once.status, stream.status)
        async with door.http.get("/v1/health") as health:
            told = await health.text()

    assert statuses == {
        "nobody": (401, 401),
        "a stranger": (401, 401),
        "a wrong operator": (401, 401),
        "a tenant": (200, 200),
        "the operator": (200, 200),
    }
    # Whoever asks for nothing but the health is not told where anything is.
    assert "127.0.0.1" not in told
