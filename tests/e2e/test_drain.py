"""Tests how a hop ends that is told to stop in the middle of a stream."""

import signal
import time

import grpc
import pytest

from services.runtime.topology import DOMAIN, GATEWAY, MODEL, ROUTING, TOOL
from tests.e2e.client import Client
from tests.requirements import requirement

DRAIN_TIMEOUT_S = 5.0
"""The default of every hop."""
LONGEST_S = 2.0
"""How much longer a process may take to be gone, on a machine that is busy."""


@requirement("drain:streams-end-well")
@pytest.mark.parametrize(
    ("hop", "agent"),
    [
        (MODEL, "probe_stream"),
        (TOOL, "probe_six"),
        (DOMAIN, "probe_stream"),
        (ROUTING, "probe_six"),
        (GATEWAY, "probe_stream"),
    ],
)
async def test_a_hop_that_is_told_to_stop_finishes_what_it_has(
    client: Client, hop: str, agent: str
) -> None:
    suite = client.suite
    suite.provider.behave("normal?token_count=20&chunk_interval_s=0.05")
    running = client.run("Go.", agent=agent)
    await suite.provider.asked(running.seen.run_id, chunk_count=2)

    suite.child(hop).send(signal.SIGTERM)
    run = await running.end()
    code = suite.child(hop).wait(DRAIN_TIMEOUT_S + LONGEST_S)

    assert run.code is grpc.StatusCode.OK, run
    assert run.kinds[-1] == "finished"
    assert code == 0


@requirement("drain:streams-end-well")
async def test_a_stream_that_outlives_the_drain_ends_by_an_error_that_names_the_hop(
    client: Client,
) -> None:
    suite = client.suite
    suite.provider.behave("normal?token_count=1000&chunk_interval_s=0.05")
    running = client.run("Go.", agent="probe_stream", deadline_s=30.0)
    await suite.provider.asked(running.seen.run_id, chunk_count=2)

    told_at = time.monotonic()
    suite.child(DOMAIN).send(signal.SIGTERM)
    run = await running.end()
    code = suite.child(DOMAIN).wait(LONGEST_S)

    assert run.ended - told_at <= DRAIN_TIMEOUT_S + LONGEST_S
    assert (run.code, run.reason) == (grpc.StatusCode.ABORTED, "DEPENDENCY_FAILED"), run
    assert run.details["originHop"] == DOMAIN
    assert code == 0
    request = await suite.provider.left(run.run_id)
    assert request["ended"] == "client_closed"
