"""Runs the suite in a mesh of real sidecars, as the objects of the production overlay say."""

import asyncio
import itertools
import secrets
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import grpc
import pytest
import pytest_asyncio

from services.runtime.topology import DOMAIN, EDGES, GATEWAY, HOPS, ROUTING, TOOL
from sixhop.tool.v1 import tool_pb2
from sixhop.tool.v1.tool_pb2_grpc import ToolServiceStub
from tests.e2e.budgets import TOLERANCE_RATIO, TOLERANCE_S, allowed_s
from tests.e2e.mesh.calls import Clients, clients_of, tally
from tests.e2e.mesh.cases import CASES, DEADLINE_S, PLACES, SETTINGS, run
from tests.e2e.mesh.house import House, running_house
from tests.e2e.mesh.kubelet import looking_after, seconds_until
from tests.e2e.mesh.manifests import production
from tests.e2e.mesh.mending import mend
from tests.e2e.mesh.rollout import kill, restart_all, under_load
from tests.e2e.mesh.sidecars import LOOPBACK
from tests.e2e.mesh.visitors import EDGE, visiting
from tests.e2e.suite import WAIT_S, eventually
from tests.requirements import requirement
from tests.waiting import until

RUN_COUNT = 2
"""How often each case is run here; `python -m tests.e2e.mesh --runs 5` runs them more often."""
CALLS_PER_KILL, KILLED_WIDTH = 400, 3
"""How many calls there are for each pod that is killed, and how many at a time."""
DENIED = grpc.StatusCode.PERMISSION_DENIED
# A sick pod is told from a well one by the time that they take: nobody else may take it.
pytestmark = [pytest.mark.alone, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """Return the mesh that all tests share."""
    with running_house(tmp_path_factory.mktemp("mesh"), production(), SETTINGS) as running:
        yield running


@pytest.fixture(scope="module")
def visitors(house: House) -> Iterator[Mapping[tuple[str, str], str]]:
    """Return where each workload finds each hop."""
    with visiting(house) as addresses:
        yield addresses


@pytest_asyncio.fixture
async def clients(house: House) -> AsyncIterator[Clients]:
    """Return who asks through the edge."""
    async with clients_of(house.door) as opened:
        yield opened


@requirement("mesh:sick-pod-goes", "mesh:well-pods-stay")
@pytest.mark.parametrize("number", range(RUN_COUNT))
@pytest.mark.parametrize("name", CASES)
async def test_the_sick_pod_goes_and_the_well_ones_stay(
    house: House, clients: Clients, name: str, number: int
) -> None:
    await run(CASES[name], house, clients)


@requirement("mesh:edges-alone")
async def test_a_sidecar_lets_those_in_that_the_call_graph_lets_call(
    house: House, visitors: Mapping[tuple[str, str], str]
) -> None:
    refused = {pair: await refusals(address, pair[1]) for pair, address in visitors.items()}

    edges = {(edge.caller, edge.callee) for edge in EDGES} | {(EDGE, GATEWAY)}
    for (caller, callee), (call, state) in refused.items():
        assert call is ((caller, callee) not in edges), (caller, callee)
        # The gateway looks at everybody, and who chooses among agents at those that run them.
        looks = (caller == GATEWAY and callee != GATEWAY) or (caller, callee) == (ROUTING, DOMAIN)
        assert state is not looks, (caller, callee)


async def refusals(address: str, callee: str) -> tuple[bool, bool]:
    """Return whether a caller may not call a hop, and may not look at it."""
    service = f"sixhop.{callee}.v1.{callee.capitalize()}Service"
    paths = (f"/{service}/Nothing", "/sixhop.runtime.v1.RuntimeService/GetSnapshot")
    async with grpc.aio.insecure_channel(address) as channel:
        codes = [await code_of(channel, path) for path in paths]
    assert codes[0] is not grpc.StatusCode.OK
    return codes[0] is DENIED, codes[1] is DENIED


async def code_of(channel: grpc.aio.Channel, path: str) -> grpc.StatusCode:
    """Return how a call with an empty message ends."""
    empty: Any = b""
    call: Any = channel.unary_unary(path)(empty, timeout=DEADLINE_S)
    code: grpc.StatusCode = await call.code()
    return code


@requirement("mesh:edges-alone")
async def test_who_shows_no_certificate_is_not_heard(house: House) -> None:
    async with grpc.aio.insecure_channel(f"{LOOPBACK}:{house.pods[TOOL][0].port}") as channel:
        code = await code_of(channel, "/sixhop.tool.v1.ToolService/ListTools")

    assert code is grpc.StatusCode.UNAVAILABLE


@requirement("mesh:parts-apart")
async def test_a_group_of_tools_is_executed_by_pods_of_its_own(
    house: House, clients: Clients
) -> None:
    *others, apart = house.pods[TOOL]
    before = [pod.arrival_count for pod in (*others, apart)]
    # It stands for the pods of the other Deployment, whose account is the same.
    house.publish_pool("tool-data", [apart.port])
    callers = house.callers(TOOL)
    await until(lambda: all(each.endpoints("outbound|7403||tool-data") for each in callers))

    told = await clients.ask_often("store", 12, DEADLINE_S, width=PLACES // 2)

    after = [pod.arrival_count for pod in (*others, apart)]
    assert all(each.served for each in told), tally(told)
    assert [now - then for now, then in zip(after, before, strict=True)] == [0, 0, 12]


@requirement("mesh:deadlines-intact")
@pytest.mark.parametrize("deadline_s", [1.0, 2.0, 5.0, 9.99, 19.0, 60.0, None])
async def test_a_deadline_does_not_grow_and_a_missing_one_is_the_routes(
    house: House, deadline_s: float | None
) -> None:
    run_id = secrets.token_hex(8)
    (caller, *_) = house.pods[DOMAIN]
    async with grpc.aio.insecure_channel(f"{LOOPBACK}:{caller.outbound[TOOL]}") as channel:
        await ToolServiceStub(channel).ExecuteTool(
            tool_pb2.ExecuteToolRequest(name="leaf"),
            timeout=deadline_s,
            metadata=(("x-sixhop-run-id", run_id), ("x-sixhop-tool-group", "core")),
        )

    route_s = float(house.services[TOOL].routes[-1]["route"]["timeout"].rstrip("s"))
    wanted_s = min(deadline_s or route_s, route_s)
    given_s = await given(house, TOOL, run_id)
    assert 0.9 * wanted_s < given_s <= wanted_s * TOLERANCE_RATIO + TOLERANCE_S


@requirement("mesh:deadlines-intact", "deadline:unary-share", "deadline:stream-margin")
@pytest.mark.parametrize("deadline_s", [2.0, 5.0, 30.0, None])
async def test_each_hop_gives_its_callee_no_more_than_it_may_through_all_sidecars(
    house: House, clients: Clients, deadline_s: float | None
) -> None:
    run_id = secrets.token_hex(8)

    told = await clients.ask("writer", deadline_s, run_id=run_id)

    assert told.served, told
    had_s = {hop: await given(house, hop, run_id) for hop in HOPS}
    assert had_s[GATEWAY] <= (deadline_s or 30.0) * TOLERANCE_RATIO
    for caller, callee in itertools.pairwise(HOPS):
        assert 0 < had_s[callee] <= allowed_s(caller, callee, had_s[caller]), had_s


async def given(house: House, hop: str, run_id: str) -> float:
    """Return what a hop had on arrival of a call, in seconds, as whichever pod had it tells."""
    line = await eventually(
        lambda: [
            line
            for pod in house.pods[hop]
            for line in pod.child.events(run_id)
            if line["event"] in ("call_ended", "call_failed")
        ],
        WAIT_S,
        f"a pod of {hop} logs the call {run_id}",
    )
    return float(line["given_ms"]) / 1000


@requirement("mesh:restarts-unnoticed")
async def test_a_rolling_restart_of_every_tier_fails_no_call(
    house: House, clients: Clients
) -> None:
    async with looking_after(house, *HOPS) as kubelets:
        told = await under_load(
            clients,
            ("heavy", "heavy", "writer", "leaf"),
            lambda: asyncio.ensure_future(restart_all(house, kubelets)),
        )

    assert len(told) > 40
    assert all(each.served for each in told), tally(told)


@requirement("mesh:restarts-unnoticed")
async def test_pods_that_are_killed_cost_one_call_in_a_hundred_at_most(
    house: House, clients: Clients
) -> None:
    await mend(house, clients, "leaf")
    async with looking_after(house, *HOPS) as kubelets:
        told = []
        for hop, kubelet in zip(HOPS, kubelets, strict=True):
            killing = asyncio.ensure_future(kill(house.pods[hop][0], kubelet))
            told += await clients.ask_often("leaf", CALLS_PER_KILL, DEADLINE_S, width=KILLED_WIDTH)
            await killing

    lost = [each for each in told if not each.served]
    assert len(lost) <= 0.01 * len(told), tally(told)


@requirement("mesh:dying-streams-leave")
async def test_a_pod_whose_streams_die_by_its_own_fault_leaves_and_comes_back(
    house: House, clients: Clients
) -> None:
    await mend(house, clients, "leaf")
    sick = house.pods[DOMAIN][0]
    house.publish(DOMAIN, [sick.port])
    house.wait_seen(DOMAIN, [sick.port])
    sick.feel(fails=True)
    told = [await clients.ask("leaf", DEADLINE_S) for _ in range(3)]
    left_s = await seconds_until(sick, serving=False)
    sick.feel()
    await seconds_until(sick, serving=True)
    house.publish_all(DOMAIN)

    assert [(each.origin, each.served) for each in told] == [(DOMAIN, False)] * 3
    assert not any(house.ejected(DOMAIN).values())
    assert left_s <= 1.0
