"""Asks a hop over HTTP what Prometheus asks, read by Prometheus' own parser."""

import asyncio
import socket

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from services.runtime.client import open_channel
from services.runtime.config import ConfigError
from services.runtime.process import serving
from services.runtime.telemetry import METRIC_INFLIGHT
from sixhop.model.v1 import model_pb2
from sixhop.model.v1.model_pb2_grpc import ModelServiceStub
from tests.integration.runtime.suite import CLOCK, HeldModel, configured
from tests.ports import free_port
from tests.requirements import requirement


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
    held, port = HeldModel(), free_port()
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
            await serving("model", HeldModel().open_hop, config, CLOCK).__aenter__()
