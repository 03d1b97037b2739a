"""Tests what HTTP clients are told while an operator keeps the door closed."""

import aiohttp
import grpc
import pytest

from services.runtime.durations import to_duration
from services.runtime.topology import GATEWAY
from sixhop.runtime.v1 import runtime_pb2
from sixhop.runtime.v1.runtime_pb2_grpc import RuntimeServiceStub
from tests.e2e.client import Client
from tests.requirements import requirement

LIMIT_S = 10.0


@requirement("http:shed")
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_a_closed_door_answers_503_at_once_and_says_when_to_come_back(
    client: Client, stream: bool
) -> None:
    suite = client.suite
    question = {"role": "user", "content": "Go."}
    body = {"model": "probe_stream", "messages": [question], "stream": stream}
    async with (
        grpc.aio.insecure_channel(suite.address(GATEWAY)) as channel,
        aiohttp.ClientSession() as session,
    ):
        runtime = RuntimeServiceStub(channel)
        order = runtime_pb2.OrderShedRequest(
            reason="the database moves", shed_duration=to_duration(60.0)
        )
        await runtime.OrderShed(order, timeout=LIMIT_S)
        async with session.post(f"{suite.url}/v1/chat/completions", json=body) as refused:
            told = (await refused.json())["error"]
        async with session.get(f"{suite.url}/readyz") as ready:
            lives = ready.status
        await runtime.EndShed(runtime_pb2.EndShedRequest(), timeout=LIMIT_S)
        async with session.post(f"{suite.url}/v1/chat/completions", json=body) as answered:
            served = answered.status
            await answered.read()

    assert (refused.status, told["reason"], told["cause"]) == (503, "LOAD_SHED", "operator")
    assert "the database moves" in told["message"]
    assert 1 <= int(refused.headers["retry-after"]) <= 60
    assert refused.headers["x-should-retry"] == "true"
    assert lives == 200
    assert served == 200
