"""Tests what a client hears when a process freezes in the middle of its run."""

import asyncio
import signal

import grpc
import pytest

from services.runtime.topology import DOMAIN, GATEWAY, LLM, MODEL, ROUTING, TOOL
from tests.e2e.client import IDLE_WITHIN_S, WARM_TIMEOUT_S, Client, Ended, Running
from tests.requirements import requirement

DEADLINE_S = 5.0
REVENUE = "What is the total revenue by region?"
ORDER = (GATEWAY, ROUTING, DOMAIN, TOOL, MODEL)
STREAM_PATH = (GATEWAY, ROUTING, DOMAIN, MODEL)
PATHS = {"probe_stream": STREAM_PATH, "probe_six": ORDER}

WAITING = "silent"
"""The provider has the request and says nothing: everybody waits for the first token."""
STREAMING = "stall"
"""The provider has sent three chunks and says no more: everybody waits for the next."""


async def in_the_middle(client: Client, agent: str, behaviour: str, *, unary: bool) -> Running:
    """Return a run whose request the provider has, at the place where it says no more."""
    client.suite.provider.behave(behaviour)
    run = client.run("Go.", agent=agent, deadline_s=DEADLINE_S, unary=unary)
    chunk_count = 3 if behaviour == STREAMING else 0
    await client.suite.provider.asked(run.seen.run_id, chunk_count=chunk_count)
    if behaviour == STREAMING and agent == "probe_stream" and not unary:
        await run.until(lambda event: event.HasField("text_delta"))
    return run


def names_the_fault(run: Ended, origin: str) -> bool:
    """Return whether the error says who did not answer, why, and what time is left."""
    details = run.details
    return (
        (run.code, run.reason) == (grpc.StatusCode.ABORTED, "DEPENDENCY_FAILED")
        and details["hop"] == GATEWAY
        and details["originHop"] == origin
        and details["originReason"] == "NO_ANSWER"
        and details["cause"] in ("deadline_share", "step_timeout", "read_timeout")
        and int(details["remainingMs"]) > 0
    )


@requirement("failure:stopped-hop-is-named-in-time", "failure:nothing-left")
@pytest.mark.parametrize(
    ("stopped", "agent", "behaviour", "unary"),
    [
        (MODEL, "probe_stream", WAITING, False),
        (MODEL, "probe_stream", STREAMING, False),
        (MODEL, "probe_six", WAITING, False),
        (MODEL, "probe_six", STREAMING, True),
        (TOOL, "probe_six", WAITING, False),
        (TOOL, "probe_six", WAITING, True),
        (DOMAIN, "probe_stream", STREAMING, False),
        (DOMAIN, "probe_six", WAITING, True),
        (ROUTING, "probe_stream", WAITING, False),
        (ROUTING, "probe_six", WAITING, True),
    ],
)
async def test_a_frozen_hop_is_named_in_time_and_leaves_nothing_before_it(
    client: Client, stopped: str, agent: str, behaviour: str, unary: bool
) -> None:
    running = await in_the_middle(client, agent, behaviour, unary=unary)

    with client.suite.stopped(stopped):
        run = await running.end()
        path = PATHS[agent]
        idle_s = await client.idle_after(run.ended, path[: path.index(stopped)])

    assert run.elapsed_s < DEADLINE_S
    assert names_the_fault(run, stopped), run
    assert max(idle_s.values()) <= IDLE_WITHIN_S, idle_s


@requirement("failure:stopped-hop-is-named-in-time", "failure:nothing-left")
@pytest.mark.parametrize("behaviour", [WAITING, STREAMING])
@pytest.mark.parametrize(("agent", "unary"), [("probe_stream", False), ("probe_six", True)])
async def test_a_frozen_provider_is_named_in_time_and_leaves_nothing(
    client: Client, agent: str, unary: bool, behaviour: str
) -> None:
    running = await in_the_middle(client, agent, behaviour, unary=unary)

    run = await running.end()
    idle_s = await client.idle_after(run.ended)
    request = await client.suite.provider.left(run.run_id)

    assert run.elapsed_s < DEADLINE_S
    assert names_the_fault(run, LLM), run
    assert max(idle_s.values()) <= IDLE_WITHIN_S, idle_s
    assert request["closed_ms"] / 1000 - run.ended <= IDLE_WITHIN_S


@requirement("failure:stopped-hop-is-named-in-time", "failure:nothing-left")
async def test_a_frozen_model_costs_a_report_its_prose_and_nothing_else(client: Client) -> None:
    # The first question to the data loads the database, which may take its time.
    await client.run(REVENUE, agent="reports", deadline_s=30.0).end()
    client.suite.provider.behave(WAITING)
    # Writing prose is tried only with time to spare, so this deadline is longer than the others.
    deadline_s = 10.0
    running = client.run(REVENUE, agent="reports", deadline_s=deadline_s)
    await client.suite.provider.asked(running.seen.run_id)

    with client.suite.stopped(MODEL):
        run = await running.end()
        idle_s = await client.idle_after(run.ended, (GATEWAY, ROUTING, DOMAIN, TOOL))

    assert run.elapsed_s < deadline_s
    assert run.code is grpc.StatusCode.OK, run
    assert [degraded.part for degraded in run.degradations] == ["prose"]
    assert max(idle_s.values()) <= IDLE_WITHIN_S, idle_s


@requirement("failure:stopped-hop-is-named-in-time", "failure:nothing-left")
async def test_a_frozen_tool_ends_a_report_by_an_error_that_names_it(client: Client) -> None:
    running = client.run(REVENUE, agent="reports", deadline_s=DEADLINE_S)
    await running.until(lambda event: event.HasField("step_started"))

    with client.suite.stopped(TOOL):
        run = await running.end()
        idle_s = await client.idle_after(run.ended, (GATEWAY, ROUTING, DOMAIN))

    assert run.elapsed_s < DEADLINE_S
    # What was on its way when the tool froze may still arrive; the next step cannot.
    assert names_the_fault(run, TOOL) or run.degradations, run
    assert max(idle_s.values()) <= IDLE_WITHIN_S, idle_s


@requirement("failure:stopped-hop-is-named-in-time")
@pytest.mark.parametrize("stopped", [ROUTING, DOMAIN, TOOL, MODEL])
async def test_a_run_that_starts_while_a_hop_is_frozen_hears_so_in_time(
    client: Client, stopped: str
) -> None:
    with client.suite.stopped(stopped):
        run = await client.run("Go.", agent="probe_six", deadline_s=2.0).end()

    assert run.elapsed_s < 2.0
    assert names_the_fault(run, stopped), run


@requirement("failure:stopped-hop-is-named-in-time")
async def test_a_hop_that_was_frozen_before_anybody_connected_is_named_in_time(
    client: Client,
) -> None:
    await restarted(client, DOMAIN)

    with client.suite.stopped(TOOL):
        run = await client.run("Go.", agent="probe_six", deadline_s=2.0).end()

    assert run.elapsed_s < 2.0
    assert names_the_fault(run, TOOL), run


@requirement("failure:late-connection-is-none")
async def test_a_hop_that_takes_a_connection_late_is_waited_for(client: Client) -> None:
    await restarted(client, DOMAIN)

    with client.suite.stopped(TOOL):
        running = client.run("Go.", agent="probe_six")
        await running.until(lambda event: event.HasField("step_started"))
        # The length of the freeze is what is tried: a busy process does the same.
        await asyncio.sleep(0.5)
    run = await running.end()

    assert run.code is grpc.StatusCode.OK, run


async def restarted(client: Client, hop: str) -> None:
    """Start a hop again, so that it has no connections, and let its caller find it."""
    client.suite.child(hop).send(signal.SIGKILL)
    client.suite.child(hop).wait(5)
    await asyncio.to_thread(client.suite.restart, hop)
    # This agent uses no tool.
    await client.answered("probe_stream", WARM_TIMEOUT_S)


@requirement("failure:nothing-left")
@pytest.mark.parametrize("stopped", [ROUTING, DOMAIN, TOOL, MODEL])
async def test_a_hop_that_thaws_drops_what_nobody_waits_for_and_works_on(
    client: Client, stopped: str
) -> None:
    running = await in_the_middle(client, "probe_six", WAITING, unary=False)
    with client.suite.stopped(stopped):
        running.call.cancel()
        await client.suite.line(GATEWAY, running.seen.run_id, "call_failed")
    await client.suite.provider.left(running.seen.run_id)
    client.suite.provider.behave("normal")

    run = await client.run("Go.", agent="probe_six").end()

    assert run.code is grpc.StatusCode.OK, run
