"""Holds the name of a run to one run, at every door."""

import asyncio
from typing import Any

import grpc
import pytest
from yarl import URL

from services.domain.agent import Answer
from services.domain.run import Run
from services.runtime.client import open_channel
from services.runtime.topology import GATEWAY
from sixhop.gateway.v1 import gateway_pb2
from sixhop.gateway.v1.gateway_pb2_grpc import GatewayServiceStub
from sixhop.type.v1 import run_pb2
from tests.contract.wire import infos, rich_status
from tests.integration.gateway.doors import Door, open_door
from tests.requirements import requirement
from tests.waiting import until

NAME = "x-sixhop-run-id"
MESSAGE = {"role": "user", "content": "hello"}


async def sent(
    door: Door, path: str, body: dict[str, Any], name: str = "same"
) -> tuple[int, Any, str]:
    """Return the status and the JSON of a request that names its run, and the run."""
    async with door.http.post(path, json=body, headers={NAME: name}) as answer:
        return answer.status, await answer.json(), answer.headers[NAME]


async def shown(door: Door, method: str = "GET") -> tuple[int, str]:
    """Return what a look at the run says: its status over HTTP, and that of the run."""
    async with door.http.request(method, "/v1/runs/same") as answer:
        return answer.status, (await answer.json())["status"]


async def asked(door: Door) -> str:
    """Return with what reason gRPC refuses a run of that name."""
    request = gateway_pb2.AskRequest(question=run_pb2.Question(text="hello"))
    async with open_channel(door.suite.config.address(GATEWAY)) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await GatewayServiceStub(channel).Ask(request, timeout=5.0, metadata=((NAME, "same"),))
    assert caught.value.code() is grpc.StatusCode.ALREADY_EXISTS
    (info,) = infos(rich_status(caught.value))
    return info.reason


@requirement("runs:one-of-a-name", "runs:cancelled")
async def test_a_name_that_is_sent_again_neither_begins_a_run_nor_loses_the_first() -> None:
    begun: list[Run] = []

    async def wait_for_ever(run: Run) -> Answer:
        begun.append(run)
        await asyncio.Event().wait()
        raise AssertionError("nobody lets it go on")

    start: dict[str, Any] = {"question": "hello", "agent": "chat"}
    again: list[tuple[str, dict[str, Any]]] = [
        ("/v1/runs", start),
        ("/v1/runs", {"question": "", "agent": "chat"}),
        ("/v1/chat/completions", {"model": "chat", "messages": [MESSAGE]}),
        ("/v1/chat/completions", {"model": "chat", "messages": [MESSAGE], "stream": True}),
        ("/v1/responses", {"model": "chat", "input": "hello"}),
    ]
    async with open_door() as door:
        door.suite.agent = wait_for_ever
        first, _, _ = await sent(door, "/v1/runs", start)
        await until(lambda: len(begun) == 1)
        refused = [await sent(door, path, body) for path, body in again]
        reason = await asked(door)
        live = await shown(door)
        await shown(door, "DELETE")
        async with door.http.get("/v1/runs/same/events") as events:
            assert b"event: ended" in await events.read()
        ended = await shown(door)
        late, _, _ = await sent(door, "/v1/runs", start)

    assert first == 202
    assert [status for status, _, _ in refused] == [409] * len(again)
    assert {told["error"]["reason"] for _, told, _ in refused} == {reason} == {"ALREADY_EXISTS"}
    assert "/v1/runs/same" in refused[0][1]["error"]["message"]
    assert (live, ended, late) == ((200, "running"), (200, "cancelled"), 409)
    assert len(begun) == 1


@requirement("runs:one-of-a-name")
@pytest.mark.parametrize("name", ["a/b", ".", "..", "a?b#c%2Fd", "100%"])
async def test_every_run_is_found_at_its_address_whatever_its_client_calls_it(name: str) -> None:
    async with open_door() as door:
        status, told, _ = await sent(door, "/v1/runs", {"question": "hello", "agent": "chat"}, name)
        address = URL(told["links"]["self"], encoded=True)
        async with door.http.get(address) as answer:
            found = await answer.json()

    assert (status, answer.status, found["id"]) == (202, 200, told["id"])
    assert (told["id"] == name) is (name in ("a?b#c%2Fd", "100%"))
