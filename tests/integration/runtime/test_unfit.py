"""Tests that a process which is unfit for calls says so to whoever asks, and comes back."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2
from grpc_health.v1.health_pb2_grpc import HealthStub

from services.runtime.client import open_channel
from services.runtime.process import Hop, serving
from sixhop.model.v1 import model_pb2
from sixhop.model.v1.model_pb2_grpc import ModelServiceStub
from tests.integration.runtime.suite import CLOCK, HeldModel, configured
from tests.requirements import requirement

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
WANTS_CALLS = ("readiness", "sixhop.model.v1.ModelService")
BOUND_S = 30.0


async def defect() -> AsyncIterator[model_pb2.GenerateResponse]:
    """Fail before the first event."""
    raise RuntimeError("a defect")
    yield


class Watcher:
    """Follows one name of the health service."""

    def __init__(self, channel: grpc.aio.Channel, name: str) -> None:
        """Begin."""
        stub: Any = HealthStub(channel)
        request = health_pb2.HealthCheckRequest(service=name)
        self._call = stub.Watch(request, timeout=BOUND_S)

    async def state(self) -> int:
        """Return the next state."""
        response = await self._call.read()
        assert isinstance(response, health_pb2.HealthCheckResponse), "the watch has ended"
        return response.status


@asynccontextmanager
async def model(**settings: str) -> AsyncIterator[tuple[Hop, grpc.aio.Channel]]:
    """Run a model hop whose every stream fails by its own fault."""
    broken, config = HeldModel(), configured(**settings)
    broken.model.generation = defect
    async with serving("model", broken.open_hop, config, CLOCK) as hop:
        async with open_channel(config.address("model")) as channel:
            yield hop, channel


async def generated(channel: grpc.aio.Channel) -> list[model_pb2.GenerateResponse]:
    """Return the events of one generation."""
    stub = ModelServiceStub(channel)
    return [event async for event in stub.Generate(model_pb2.GenerateRequest(), timeout=5.0)]


async def lives(channel: grpc.aio.Channel) -> bool:
    """Return whether the process says that it lives."""
    stub: Any = HealthStub(channel)
    request = health_pb2.HealthCheckRequest(service="liveness")
    response = await stub.Check(request, timeout=BOUND_S)
    return bool(response.status == SERVING)


@requirement("fitness:wants-no-calls")
async def test_three_streams_failed_by_own_fault_end_readiness_for_a_while() -> None:
    # Long against the half second between two looks at it.
    async with model(SELF_EJECTION__EJECTION_S="2") as (_, channel):
        watchers = [Watcher(channel, name) for name in WANTS_CALLS]
        before = [await each.state() for each in watchers]
        for _ in range(3):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await generated(channel)
            assert caught.value.code() is grpc.StatusCode.INTERNAL
        away = [await each.state() for each in watchers]
        alive = await lives(channel)
        back = [await each.state() for each in watchers]

    assert (before, away, back) == ([SERVING] * 2, [NOT_SERVING] * 2, [SERVING] * 2)
    assert alive, "a new start would not mend it"


@requirement("fitness:wants-no-calls")
async def test_a_loop_that_lags_ends_readiness_until_it_is_calm() -> None:
    async with model() as (hop, channel):
        watchers = [Watcher(channel, name) for name in WANTS_CALLS]
        before = [await each.state() for each in watchers]
        lag = hop.runtime.state.lag
        for _ in range(lag.config.bad_samples):
            lag.sample(1.0)
        away = [await each.state() for each in watchers]
        detail, alive = hop.health.detail, await lives(channel)
        back = [await each.state() for each in watchers]

    assert (before, away, back) == ([SERVING] * 2, [NOT_SERVING] * 2, [SERVING] * 2)
    assert detail == "its event loop lags"
    assert alive, "a new start would not mend it"


@requirement("fitness:wants-no-calls")
async def test_what_is_unfit_is_not_made_ready_by_what_it_could_do() -> None:
    async with model() as (hop, channel):
        watcher = Watcher(channel, "readiness")
        before = await watcher.state()
        await hop.health.set_fit("its event loop lags")
        away = await watcher.state()
        await hop.health.set_ready()
        ready = hop.health.ready
        await hop.health.set_fit("")
        back = await watcher.state()

    assert (before, away, ready, back) == (SERVING, NOT_SERVING, False, SERVING)
