"""Holds the hops to saying, with each call, which part of its callee it is for."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from services.runtime.client import open_channel
from services.runtime.telemetry import AGENTS_LEARNED, TOOLS_LEARNED
from services.runtime.topology import TOOL
from sixhop.domain.v1 import domain_pb2
from sixhop.domain.v1.domain_pb2_grpc import (
    DomainServiceServicer,
    DomainServiceStub,
    add_DomainServiceServicer_to_server,
)
from sixhop.routing.v1 import routing_pb2
from sixhop.routing.v1.routing_pb2_grpc import RoutingServiceStub
from sixhop.tool.v1 import tool_pb2
from sixhop.tool.v1.tool_pb2_grpc import ToolServiceServicer, add_ToolServiceServicer_to_server
from sixhop.type.v1 import run_pb2
from tests.e2e.edges import running_routes
from tests.e2e.mesh.manifests import production
from tests.e2e.suite import eventually
from tests.ports import free_port
from tests.processes import Child
from tests.requirements import requirement

pytestmark = pytest.mark.e2e

Context = grpc.aio.ServicerContext[Any, Any]
QUESTION = run_pb2.Question(text="Which category grew most last quarter?")
WAIT_S = 30.0


class Callees(DomainServiceServicer, ToolServiceServicer):
    """Stands for what hops call, and keeps what came with each call, by its method."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.seen: list[tuple[str, dict[str, str | bytes]]] = []

    def keep(self, method: str, context: Context) -> None:
        """Keep the metadata of one call."""
        self.seen.append((method, dict(context.invocation_metadata() or ())))

    def said(self, method: str, key: str) -> set[str | bytes | None]:
        """Return what all calls of a method have said under a key; None for those that did not."""
        return {found.get(key) for name, found in self.seen if name == method}

    async def ListAgents(  # gRPC's name
        self, request: domain_pb2.ListAgentsRequest, context: Context
    ) -> domain_pb2.ListAgentsResponse:
        """Know two agents, one by a name that no header takes."""
        self.keep("ListAgents", context)
        names = "orders", "数据"
        return domain_pb2.ListAgentsResponse(
            agents=[domain_pb2.AgentCard(name=name, examples=["What?"]) for name in names]
        )

    async def RunAgent(  # gRPC's name
        self, request: domain_pb2.RunAgentRequest, context: Context
    ) -> AsyncIterator[domain_pb2.RunAgentResponse]:
        """Answer nothing, at once."""
        self.keep(f"RunAgent {request.agent}", context)
        finished = run_pb2.RunEvent(finished=run_pb2.RunFinished())
        yield domain_pb2.RunAgentResponse(sequence=1, event=finished)

    async def ListTools(  # gRPC's name
        self, request: tool_pb2.ListToolsRequest, context: Context
    ) -> tool_pb2.ListToolsResponse:
        """Know one tool of a group."""
        self.keep("ListTools", context)
        return tool_pb2.ListToolsResponse(tools=[tool_pb2.ToolCard(name="profile", group="data")])

    async def ExecuteTool(  # gRPC's name
        self, request: tool_pb2.ExecuteToolRequest, context: Context
    ) -> tool_pb2.ExecuteToolResponse:
        """Refuse."""
        self.keep(f"ExecuteTool {request.name}", context)
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "not today")
        raise AssertionError("abort raises")


@asynccontextmanager
async def callees() -> AsyncIterator[tuple[Callees, str]]:
    """Serve what hops call; yield it with its port."""
    found, server = Callees(), grpc.aio.server()
    add_DomainServiceServicer_to_server(found, server)
    add_ToolServiceServicer_to_server(found, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield found, str(port)
    finally:
        await server.stop(None)


@asynccontextmanager
async def hop(
    name: str, folder: Path, settings: Mapping[str, str]
) -> AsyncIterator[tuple[str, Child]]:
    """Run a hop as a process; yield its address and itself."""
    port = free_port()
    own = {f"SIXHOP_{key}": value for key, value in settings.items()}
    own[f"SIXHOP_{name.upper()}__PORT"] = str(port)
    child = Child(name, ["-m", f"services.{name}"], own, folder)
    child.start()
    try:
        yield f"127.0.0.1:{port}", child
    finally:
        child.end()


@requirement("cluster:parts-named")
async def test_a_run_says_for_which_agent_it_is(tmp_path: Path) -> None:
    async with callees() as (found, port):
        async with hop("routing", tmp_path, {"DOMAIN__PORT": port}) as (address, child):
            await eventually(lambda: list(child.events(AGENTS_LEARNED)), WAIT_S, "known agents")
            async with open_channel(address) as channel:
                for agent in ("orders", "数据"):
                    request = routing_pb2.RouteRequest(question=QUESTION, agent=agent)
                    stub = RoutingServiceStub(channel)
                    call = stub.Route(request, timeout=WAIT_S, wait_for_ready=True)
                    assert [each.sequence async for each in call] == [1, 2]

    assert found.said("RunAgent orders", "x-sixhop-agent") == {"orders"}
    # A header takes no Chinese: such a run goes to the part that is the rest.
    assert found.said("RunAgent 数据", "x-sixhop-agent") == {None}
    assert found.said("ListAgents", "x-sixhop-agent") == {None}


@requirement("cluster:parts-named")
async def test_the_execution_of_a_tool_says_of_which_group_the_tool_is(tmp_path: Path) -> None:
    async with callees() as (found, port):
        async with hop("domain", tmp_path, {"TOOL__PORT": port}) as (address, child):
            await eventually(lambda: list(child.events(TOOLS_LEARNED)), WAIT_S, "known tools")
            async with open_channel(address) as channel:
                request = domain_pb2.RunAgentRequest(agent="orders", question=QUESTION)
                call = DomainServiceStub(channel).RunAgent(
                    request, timeout=WAIT_S, wait_for_ready=True
                )
                with pytest.raises(grpc.aio.AioRpcError):
                    async for _ in call:
                        pass

    assert found.said("ExecuteTool profile", "x-sixhop-tool-group") == {"data"}
    assert found.said("ListTools", "x-sixhop-tool-group") == {None}


@requirement("cluster:parts-alone")
async def test_the_mesh_leads_each_call_to_its_part_by_the_routes_that_are_shipped(
    tmp_path: Path,
) -> None:
    service = production().service(TOOL)
    async with AsyncExitStack() as stack:
        parts: dict[str, Callees] = {}
        servers: dict[str, int] = {}
        for destination in service.destinations:
            found, port = await stack.enter_async_context(callees())
            parts[destination.pool.name] = found
            servers[str(destination.cluster["name"])] = int(port)
        proxy = stack.enter_context(running_routes(service.routes, servers, tmp_path))
        settings = {"TOOL__PORT": str(proxy)}
        address, child = await stack.enter_async_context(hop("domain", tmp_path, settings))
        await eventually(lambda: list(child.events(TOOLS_LEARNED)), WAIT_S, "known tools")
        channel = await stack.enter_async_context(open_channel(address))
        request = domain_pb2.RunAgentRequest(agent="orders", question=QUESTION)
        call = DomainServiceStub(channel).RunAgent(request, timeout=WAIT_S, wait_for_ready=True)
        with pytest.raises(grpc.aio.AioRpcError):
            async for _ in call:
                pass

    came = {name: {method for method, _ in part.seen} for name, part in parts.items()}
    assert came == {
        "tool-core": {"ListTools"},
        "tool-data": {"ExecuteTool profile"},
        "tool-auxiliary": set(),
        "tool-external": set(),
    }
