"""Tests that work stops, all the way to the provider, when the client goes away."""

import asyncio
import secrets
import signal
import time
from pathlib import Path

import grpc
import pytest

from tests.e2e.client import IDLE_WITHIN_S, Client
from tests.processes import Child
from tests.requirements import requirement

pytestmark = pytest.mark.alone

PHASES = {
    "no-answer-yet": ("silent", 0),
    "no-headers-yet": ("slow-headers", 0),
    "queued": ("keep-alive-forever", 0),
    "no-token-yet": ("slow-first-chunk", 0),
    "first-token": ("stall?after_chunks=1", 2),
    "mid-stream": ("normal?token_count=1000&chunk_interval_s=0.05", 3),
    "mid-stream-silence": ("stall", 3),
    # One chunk begins the answer, ten are its words and one is its end.
    "no-end-yet": ("stall-after-finish", 12),
}
"""What the provider does, and after how many chunks the client goes."""

LONG_QUERY = (
    "SELECT count(*) FROM orders a, orders b, orders c WHERE a.revenue + b.revenue > c.revenue"
)
"""Takes minutes: it compares every order with every pair of orders."""


@requirement("cancel:reaches-the-provider", "cancel:every-phase")
@pytest.mark.parametrize("unary", [False, True], ids=["run", "ask"])
@pytest.mark.parametrize("agent", ["probe_stream", "probe_six"])
@pytest.mark.parametrize("phase", PHASES)
async def test_a_cancel_reaches_the_provider_and_empties_every_hop(
    client: Client, phase: str, agent: str, unary: bool
) -> None:
    behaviour, chunk_count = PHASES[phase]
    client.suite.provider.behave(behaviour)
    run = client.run("Go.", agent=agent, deadline_s=30.0, unary=unary)
    await client.suite.provider.asked(run.seen.run_id, chunk_count=chunk_count)

    gone_at = time.monotonic()
    run.call.cancel()
    idle_s = await client.idle_after(gone_at)
    request = await client.suite.provider.left(run.seen.run_id)

    assert max(idle_s.values()) <= IDLE_WITHIN_S, idle_s
    assert request["closed_ms"] / 1000 - gone_at <= IDLE_WITHIN_S
    assert request["ended"] == "client_closed"


@requirement("cancel:reaches-the-provider")
@pytest.mark.parametrize("agent", ["probe_stream", "probe_six"])
async def test_a_client_process_that_dies_counts_as_one_that_cancels(
    client: Client, agent: str, tmp_path: Path
) -> None:
    client.suite.provider.behave("stall")
    run_id = secrets.token_hex(8)
    asking = ["-m", "tests.e2e.asking", client.suite.address("gateway"), agent, run_id]
    child = Child("asking", asking, {}, tmp_path)
    try:
        child.start()
        await client.suite.provider.asked(run_id, chunk_count=3)

        gone_at = time.monotonic()
        child.send(signal.SIGKILL)
        idle_s = await client.idle_after(gone_at)
        request = await client.suite.provider.left(run_id)
    finally:
        child.end()

    assert max(idle_s.values()) <= IDLE_WITHIN_S, idle_s
    assert request["closed_ms"] / 1000 - gone_at <= IDLE_WITHIN_S


@requirement("cancel:reaches-the-provider")
async def test_a_client_that_goes_costs_only_its_own_run(client: Client) -> None:
    client.suite.provider.behave("normal?token_count=20&chunk_interval_s=0.05")
    runs = [client.run("Go.", agent="probe_stream") for _ in range(6)]
    for run in runs:
        await client.suite.provider.asked(run.seen.run_id, chunk_count=2)

    for run in runs[::2]:
        run.call.cancel()
    stayed = await asyncio.gather(*(run.end() for run in runs[1::2]))

    assert [run.code for run in stayed] == [grpc.StatusCode.OK] * 3
    assert all(run.kinds[-1] == "finished" for run in stayed)
    for run in runs[::2]:
        request = await client.suite.provider.left(run.seen.run_id)
        assert request["ended"] == "client_closed"


@requirement("stream:cancelled-when-left")
async def test_a_stream_that_an_agent_leaves_early_ends_at_the_provider(client: Client) -> None:
    client.suite.provider.behave("normal?token_count=1000&chunk_interval_s=0.05")

    run = await client.run("Go.", agent="probe_early", deadline_s=30.0).end()
    idle_s = await client.idle_after(run.ended)
    request = await client.suite.provider.left(run.run_id)

    assert run.code is grpc.StatusCode.OK, run
    assert max(idle_s.values()) <= IDLE_WITHIN_S, idle_s
    assert request["closed_ms"] / 1000 - run.ended <= IDLE_WITHIN_S


@requirement("cancel:reaches-the-provider")
async def test_a_client_that_has_stopped_reading_can_go_too(client: Client) -> None:
    # More than the windows between two hops hold, so that the outer hops wait to send.
    client.suite.provider.behave("flood", flood={"text": "x" * 100_000, "token_count": 200})
    run = client.run("Go.", agent="probe_stream", deadline_s=30.0)
    await client.suite.provider.done(run.seen.run_id)
    assert (await client.snapshot("gateway")).inflight_count == 1

    gone_at = time.monotonic()
    run.call.cancel()
    idle_s = await client.idle_after(gone_at)

    assert max(idle_s.values()) <= IDLE_WITHIN_S, idle_s


@requirement("cancel:reaches-the-provider")
@pytest.mark.parametrize("unary", [False, True], ids=["run", "ask"])
async def test_a_long_query_ends_with_its_client(client: Client, unary: bool) -> None:
    run = client.run(LONG_QUERY, agent="probe_sql", deadline_s=30.0, unary=unary)
    await client.busy("tool")

    gone_at = time.monotonic()
    run.call.cancel()
    idle_s = await client.idle_after(gone_at)

    assert max(idle_s.values()) <= IDLE_WITHIN_S, idle_s


@requirement("cancel:threads-come-back")
async def test_cancelled_queries_give_their_threads_back(client: Client) -> None:
    runs = [client.run(LONG_QUERY, agent="probe_sql", deadline_s=30.0) for _ in range(4)]
    await client.busy("tool", len(runs))

    for run in runs:
        run.call.cancel()
    after = await client.run("SELECT 1 AS one FROM orders LIMIT 1", agent="probe_sql").end()

    # The tool hop has four threads; with one query left in each this one would wait for minutes.
    assert after.code is grpc.StatusCode.OK, after


@requirement("cancel:reaches-the-provider")
async def test_a_thread_that_cannot_be_interrupted_does_not_hold_its_call(client: Client) -> None:
    run = client.run("stubborn", agent="probe_tool", deadline_s=30.0)
    await client.busy("tool")

    gone_at = time.monotonic()
    run.call.cancel()
    idle_s = await client.idle_after(gone_at)

    assert max(idle_s.values()) <= IDLE_WITHIN_S, idle_s


@requirement("deadline:self-deadline")
async def test_a_query_that_takes_too_long_is_the_tool_hops_own_fault(client: Client) -> None:
    run = await client.run(LONG_QUERY, agent="probe_sql", deadline_s=5.0).end()
    idle_s = await client.idle_after(run.ended)

    assert run.elapsed_s < 5.0
    assert (run.code, run.reason) == (grpc.StatusCode.ABORTED, "DEPENDENCY_FAILED"), run
    assert (run.details["originHop"], run.details["originReason"]) == ("tool", "SELF_TIMEOUT")
    assert max(idle_s.values()) <= IDLE_WITHIN_S, idle_s
