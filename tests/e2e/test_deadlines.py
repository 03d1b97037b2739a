"""Tests what each hop is given of a client's deadline, told by the one that was given it."""

import itertools
from typing import Any

import grpc
import pytest

from services.runtime.status import DETAILS_KEY, error_info
from services.runtime.topology import GATEWAY, LLM, MODEL, ROUTING, TOOL
from sixhop.domain.v1 import domain_pb2, domain_pb2_grpc
from sixhop.model.v1 import model_pb2, model_pb2_grpc
from sixhop.routing.v1 import routing_pb2, routing_pb2_grpc
from sixhop.tool.v1 import tool_pb2, tool_pb2_grpc
from sixhop.type.v1 import chat_pb2
from tests.e2e.budgets import TOLERANCE_RATIO, allowed_s
from tests.e2e.client import Client
from tests.e2e.suite import Suite
from tests.requirements import requirement

DOMAIN = "domain"
PATHS = {
    "probe_stream": (GATEWAY, ROUTING, DOMAIN, MODEL, LLM),
    "probe_six": (GATEWAY, ROUTING, DOMAIN, TOOL, MODEL, LLM),
}
OVERSHOOT_S = 0.05
"""How much later than its limit a wait may end: timers, and the way of the answer."""


@pytest.fixture(scope="module", autouse=True)
def _new_model(suite: Suite) -> None:
    """Start the model hop anew: it has learned how fast a provider writes that tests have slowed.

    Whatever cannot be written in the time left at that pace it refuses, as it should.
    """
    suite.child(MODEL).end()
    suite.heal()


async def given_s(client: Client, agent: str, run_id: str) -> dict[str, float]:
    """Return what each hop of a path had on arrival, as it tells itself."""
    found = {}
    for hop in PATHS[agent][:-1]:
        line = await client.suite.line(hop, run_id, "call_ended", "call_failed")
        found[hop] = line["given_ms"] / 1000
    asked = await client.suite.provider.asked(run_id)
    return {**found, LLM: asked["deadline_ms"] / 1000}


@requirement("deadline:unary-share", "deadline:stream-margin")
@pytest.mark.parametrize("unary", [False, True], ids=["run", "ask"])
@pytest.mark.parametrize("agent", PATHS)
@pytest.mark.parametrize("deadline_s", [0.8, 2.0, 5.0, 9.99, 30.0, None, 500.0])
async def test_each_hop_gives_its_callee_no_more_than_it_may(
    client: Client, deadline_s: float | None, agent: str, unary: bool
) -> None:
    run = await client.run("Go.", agent=agent, deadline_s=deadline_s, unary=unary).end()

    assert run.code is grpc.StatusCode.OK, run
    had_s = await given_s(client, agent, run.run_id)
    path = PATHS[agent]
    for caller, callee in itertools.pairwise(path):
        assert 0 < had_s[callee] <= allowed_s(caller, callee, had_s[caller]), (
            caller,
            callee,
            had_s,
        )


@requirement("deadline:missing-refused")
@pytest.mark.parametrize(("deadline_s", "expected_s"), [(None, 30.0), (500.0, 120.0)])
@pytest.mark.parametrize("unary", [False, True], ids=["run", "ask"])
async def test_the_gateway_completes_and_cuts_deadlines(
    client: Client, deadline_s: float | None, expected_s: float, unary: bool
) -> None:
    run = await client.run("Go.", agent="probe_six", deadline_s=deadline_s, unary=unary).end()

    line = await client.suite.line(GATEWAY, run.run_id, "call_ended", "call_failed")
    assert line["given_ms"] == expected_s * 1000


async def waits_above_the_share(client: Client, agent: str, deadline_s: float) -> list[object]:
    """Return each wait of a run for a silent callee that was longer than it may be."""
    run = await client.run("Go.", agent=agent, deadline_s=deadline_s).end()
    # The hops before these hear of steps and heartbeats, so theirs is more than one wait.
    waits: list[tuple[object, float, float]] = [
        (report, report.used_s, report.left_s)
        for report in run.reports
        if report.hop in (TOOL, MODEL, LLM)
    ]
    waits += [
        (line, line["used_ms"] / 1000, line["remaining_ms"] / 1000)
        for hop in (DOMAIN, TOOL, MODEL)
        for line in client.suite.logged(hop, run.run_id, "attempt_failed")
    ]
    return [
        wait
        for wait, used_s, left_s in waits
        if used_s > 0.6 * (left_s + used_s) * TOLERANCE_RATIO + OVERSHOOT_S
    ] or ([] if waits else [run])


@requirement("deadline:wait-share")
@pytest.mark.parametrize(
    ("behaviour", "deadline_s"),
    [("silent", 2.0), ("silent", 5.0), ("slow-first-chunk", 2.0), ("keep-alive-forever", 2.0)],
)
@pytest.mark.parametrize("agent", PATHS)
async def test_no_hop_waits_for_a_silent_callee_beyond_its_share(
    client: Client, agent: str, behaviour: str, deadline_s: float
) -> None:
    client.suite.provider.behave(behaviour)

    # A process that gets no CPU notices its limit late, now and then; a wrong limit is wrong
    # each time.
    for _ in range(3):
        too_long = await waits_above_the_share(client, agent, deadline_s)
        if not too_long:
            break

    assert not too_long


def inner_calls(client: Client) -> dict[str, Any]:
    """Return one call of each method of the inner hops, without a deadline."""
    routing = routing_pb2_grpc.RoutingServiceStub(client.channels[ROUTING])
    domain = domain_pb2_grpc.DomainServiceStub(client.channels[DOMAIN])
    tool = tool_pb2_grpc.ToolServiceStub(client.channels[TOOL])
    model = model_pb2_grpc.ModelServiceStub(client.channels[MODEL])
    return {
        "routing.Route": lambda: routing.Route(routing_pb2.RouteRequest(agent="probe_stream")),
        "domain.RunAgent": lambda: domain.RunAgent(
            domain_pb2.RunAgentRequest(agent="probe_stream")
        ),
        "domain.ListAgents": lambda: domain.ListAgents(domain_pb2.ListAgentsRequest()),
        "tool.ExecuteTool": lambda: tool.ExecuteTool(tool_pb2.ExecuteToolRequest(name="profile")),
        "tool.ListTools": lambda: tool.ListTools(tool_pb2.ListToolsRequest()),
        "model.Generate": lambda: model.Generate(
            model_pb2.GenerateRequest(
                messages=[chat_pb2.ChatMessage(role=chat_pb2.CHAT_ROLE_USER, content="Go.")]
            )
        ),
    }


@requirement("deadline:missing-refused")
@pytest.mark.parametrize(
    "method",
    [
        "routing.Route", "domain.RunAgent", "domain.ListAgents", "tool.ExecuteTool",
        "tool.ListTools", "model.Generate",
    ],
)  # fmt: skip
async def test_a_call_without_a_deadline_is_refused_by_an_inner_hop(
    client: Client, method: str
) -> None:
    call = inner_calls(client)[method]()

    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await (call.read() if hasattr(call, "read") else call)

    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    info = error_info(dict(caught.value.trailing_metadata() or ())[DETAILS_KEY])
    assert info is not None
    assert (info.reason, info.metadata["hop"]) == ("DEADLINE_MISSING", method.split(".")[0])
