"""Tests what the gateway tells Prometheus, read by Prometheus' own parser."""

from typing import Any

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from tests.e2e.client import Client
from tests.requirements import requirement


async def told(client: Client) -> dict[str, Any]:
    """Return every sample by its name and labels."""
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{client.suite.url}/metrics") as answer,
    ):
        assert answer.status == 200
        text = await answer.text()
    return {
        " ".join([sample.name, *sample.labels.values()]): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@requirement("http:metrics")
async def test_prometheus_is_told_of_calls_and_of_the_breakers_of_dependencies(
    client: Client,
) -> None:
    before = await told(client)

    ended = await client.run("Go.", agent="probe_stream").end()
    refused = await client.run("", agent="probe_stream").end()

    after = await told(client)
    assert (ended.reason, refused.reason) == ("", "INVALID_ARGUMENT")
    assert after["sixhop_calls_total"] - before["sixhop_calls_total"] == 2
    assert after["sixhop_call_errors_total"] - before["sixhop_call_errors_total"] == 1
    assert after["sixhop_inflight_calls"] == 0
    assert after["sixhop_breaker_state routing"] == 0
    assert after["sixhop_call_latency_seconds 0.5"] > 0
