"""Holds the permits of a hop's calls to the life of its streams, over real gRPC."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest

from services.runtime.call import Group
from services.runtime.client import open_channel
from sixhop.gateway.v1 import gateway_pb2
from sixhop.gateway.v1.gateway_pb2_grpc import GatewayServiceStub
from sixhop.model.v1 import model_pb2
from sixhop.type.v1.run_pb2 import Question
from tests.integration.runtime.suite import Suite, finished, run_model, running, text
from tests.requirements import requirement
from tests.waiting import until

RUN = gateway_pb2.RunRequest(question=Question(text="hello"))
CALLERS = ("gateway", "routing", "domain")
"""The hops that hold a permit for a run that streams from the model."""


def in_use(suite: Suite) -> dict[str, int]:
    """Return how many permits each hop holds."""
    return {
        name: hop.policies.bulkhead.snapshot().groups[Group.CORE].inflight
        for name, hop in suite.hops.items()
        if hop.policies is not None
    }


@requirement("stream:held-until-left", "bulkhead:no-permit-lost")
@pytest.mark.parametrize("how", ["cancel", "end"])
async def test_every_hop_holds_one_permit_until_its_stream_is_left(how: str) -> None:
    go_on = asyncio.Event()

    async def generation() -> AsyncIterator[model_pb2.GenerateResponse]:
        yield text("one")
        await go_on.wait()
        yield finished()

    async with running(ENGINE__ENABLED="true") as suite:
        suite.agent = run_model
        suite.model.generation = generation
        async with open_channel(suite.config.address("gateway")) as channel:
            # Any: the types of grpc.aio do not know what a read gives.
            call: Any = GatewayServiceStub(channel).Run(RUN, timeout=30.0)
            while (await call.read()).event.WhichOneof("event") != "text_delta":
                pass
            streaming = in_use(suite)

            if how == "cancel":
                call.cancel()
            else:
                go_on.set()
                while await call.read() is not grpc.aio.EOF:
                    pass
            await until(lambda: not any(in_use(suite).values()))
            await until(suite.idle)

    assert {name for name, count in streaming.items() if count} == set(CALLERS)
    assert set(streaming.values()) == {0, 1}
