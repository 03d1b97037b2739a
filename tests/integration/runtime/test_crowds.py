"""Tests that whoever is refused in a crowd is told why, however large the crowd is."""

import asyncio

import grpc

from services.runtime.client import open_channel
from services.runtime.process import serving
from services.runtime.status import DETAILS_KEY, error_info
from sixhop.model.v1 import model_pb2
from sixhop.model.v1.model_pb2_grpc import ModelServiceStub
from tests.integration.runtime.suite import CLOCK, HeldModel, configured
from tests.requirements import requirement

CROWD = 1500
"""More than gRPC lets wait by default."""
LIMIT = 4
BOUND_S = 60.0


def reason(error: grpc.aio.AioRpcError) -> str:
    """Return the reason that an error carries, or only its code when it carries none."""
    trailers = dict(error.trailing_metadata() or ())
    info = error_info(trailers.get(DETAILS_KEY))
    return error.code().name if info is None else info.reason


@requirement("errors:table")
async def test_nobody_in_a_crowd_is_dropped_without_a_reason() -> None:
    held, config = HeldModel(), configured(LIMIT__MAX_INFLIGHT=str(LIMIT))
    told: list[str] = []
    async with (
        serving("model", held.open_hop, config, CLOCK),
        open_channel(config.address("model")) as channel,
    ):
        stub = ModelServiceStub(channel)

        async def ask() -> None:
            try:
                async for _ in stub.Generate(model_pb2.GenerateRequest(), timeout=BOUND_S):
                    pass
            except grpc.aio.AioRpcError as error:
                told.append(reason(error))
            else:
                told.append("OK")
            if len(told) >= CROWD - LIMIT:
                held.go_on.set()

        await asyncio.gather(*(ask() for _ in range(CROWD)))

    assert set(told) == {"OK", "LOAD_SHED"}
    assert told.count("OK") <= LIMIT
