"""Asks a hop over HTTP what Prometheus asks, read by Prometheus' own parser."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from services.runtime.client import open_channel
from services.runtime.config import ConfigError
from services.runtime.process import Hop, serving
from services.runtime.telemetry import METRIC_INFLIGHT
from sixhop.model.v1 import model_pb2
from sixhop.model.v1.model_pb2_grpc import ModelServiceStub, add_ModelServiceServicer_to_server
from tests.integration.runtime.suite import CLOCK, ScriptedModel, configured, finished
from tests.ports import free_port
from tests.requirements import requirement


class Held:
    """Is a generation that is under way until the test lets it go."""

    def __init__(self) -> None:
        self.began, self.go_on = asyncio.Event(), asyncio.Event()
        self.model = ScriptedModel()
        self.model.generation = self.generation

    async def generation(self) -> AsyncIterator[model_pb2.GenerateResponse]:
        """Wait, and end well."""
        self.began.set()
        await self.go_on.wait()
        yield finished()

    @asynccontextmanager
    async def open_hop(self, hop: Hop) -> AsyncIterator[None]:
        """Open a model hop around it."""
        add_ModelServiceServicer_to_server(self.model, hop.server)
        hop.services.append("sixhop.model.v1.ModelService")
        await hop.health.set_ready()
        yield


async def told(port: int) -> dict[str, float]:
    """Return the samples without labels, by name."""
    url = f"http://127.0.0.1:{port}/metrics"
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        assert answer.status == 200
        assert answer.content_type == "text/plain"
        text = await answer.text()
    return {
        sample.name: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if not sample.labels
    }


@requirement("cluster:metrics")
async def test_a_hop_tells_how_many_calls_it_has_under_way() -> None:
    held, port = Held(), free_port()
    config = configured(MODEL__METRICS_PORT=str(port))
    async with serving("model", held.open_hop, config, CLOCK):
        before = await told(port)
        async with open_channel(config.address("model")) as channel:
            stream = ModelServiceStub(channel).Generate(model_pb2.GenerateRequest(), timeout=20.0)
            reading = asyncio.create_task(stream.read())
            await asyncio.wait_for(held.began.wait(), 5)
            during = await told(port)
            held.go_on.set()
            await asyncio.wait_for(reading, 5)

    assert (before[METRIC_INFLIGHT], during[METRIC_INFLIGHT]) == (0, 1)
    assert (before["sixhop_ready"], before["sixhop_calls_total"]) == (1, 0)


@requirement("cluster:metrics")
async def test_a_port_that_is_taken_is_named_with_its_setting() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        config = configured(MODEL__METRICS_PORT=str(port))
        with pytest.raises(ConfigError, match=f"{port} is taken; set SIXHOP_MODEL__METRICS_PORT"):
            await serving("model", Held().open_hop, config, CLOCK).__aenter__()
