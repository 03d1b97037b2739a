"""Tests what a client hears when a process dies in the middle of its run, and after it is back."""

import asyncio
import signal

import grpc
import pytest

from services.runtime.topology import DOMAIN, GATEWAY, HOPS, MODEL, ROUTING, TOOL
from tests.e2e.client import IDLE_WITHIN_S, Client
from tests.requirements import requirement

FOUND_WITHIN_S = 3.0
"""How soon a hop that is ready again is used: the longest pause between two attempts to connect
is a second."""


@requirement("failure:killed-hop-is-named", "failure:nothing-left")
@requirement("failure:restarted-hop-is-found")
@pytest.mark.parametrize(
    ("killed", "agent", "behaviour", "unary"),
    [
        (MODEL, "probe_stream", "stall", False),
        (MODEL, "probe_six", "silent", True),
        (TOOL, "probe_six", "silent", False),
        (DOMAIN, "probe_stream", "silent", True),
        (DOMAIN, "probe_six", "stall", False),
        (ROUTING, "probe_stream", "stall", False),
    ],
)
async def test_a_killed_hop_is_named_and_found_again(
    client: Client, killed: str, agent: str, behaviour: str, unary: bool
) -> None:
    suite = client.suite
    suite.provider.behave(behaviour)
    running = client.run("Go.", agent=agent, unary=unary)
    await suite.provider.asked(running.seen.run_id, chunk_count=3 if behaviour == "stall" else 0)
    others = {hop: suite.child(hop).pid for hop in HOPS if hop != killed}

    suite.child(killed).send(signal.SIGKILL)
    run = await running.end()
    idle_s = await client.idle_after(run.ended, others)
    suite.child(killed).wait(5)
    await asyncio.to_thread(suite.restart, killed)
    suite.provider.behave("normal")
    again = await client.answered(agent, FOUND_WITHIN_S)

    assert (run.code, run.reason) == (grpc.StatusCode.ABORTED, "DEPENDENCY_FAILED"), run
    assert run.details["originHop"] == killed
    assert int(run.details["remainingMs"]) > 0
    assert max(idle_s.values()) <= IDLE_WITHIN_S, idle_s
    assert again.code is grpc.StatusCode.OK, again
    assert {hop: suite.child(hop).pid for hop in others} == others


@requirement("failure:killed-hop-is-named")
@pytest.mark.parametrize("killed", [ROUTING, DOMAIN, TOOL, MODEL])
async def test_a_run_that_starts_while_a_hop_is_dead_hears_so_at_once(
    client: Client, killed: str
) -> None:
    client.suite.child(killed).send(signal.SIGKILL)
    client.suite.child(killed).wait(5)

    run = await client.run("Go.", agent="probe_six", deadline_s=5.0).end()

    assert (run.code, run.reason) == (grpc.StatusCode.ABORTED, "DEPENDENCY_FAILED"), run
    assert (run.details["originHop"], run.details["cause"]) == (killed, "unreachable")
    assert run.details["originReason"] == "UNREACHABLE"


@requirement("failure:nothing-left", "failure:restarted-hop-is-found")
async def test_a_killed_gateway_leaves_nothing_behind_it_and_is_found_again(
    client: Client,
) -> None:
    suite = client.suite
    suite.provider.behave("stall")
    running = client.run("Go.", agent="probe_six")
    await suite.provider.asked(running.seen.run_id, chunk_count=3)

    suite.child(GATEWAY).send(signal.SIGKILL)
    run = await running.end()
    idle_s = await client.idle_after(run.ended, [hop for hop in HOPS if hop != GATEWAY])
    suite.child(GATEWAY).wait(5)
    await asyncio.to_thread(suite.restart, GATEWAY)
    suite.provider.behave("normal")
    again = await client.answered("probe_six", FOUND_WITHIN_S)

    # Nobody is left to say more.
    assert run.code is grpc.StatusCode.UNAVAILABLE
    assert max(idle_s.values()) <= IDLE_WITHIN_S, idle_s
    assert again.code is grpc.StatusCode.OK, again
