"""Holds the door of every hop: deadlines, unknown methods, and what answers without them."""

from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import pytest
from google.protobuf.message import Message
from grpc_health.v1 import health_pb2
from grpc_health.v1.health_pb2_grpc import HealthStub
from grpc_reflection.v1alpha import reflection_pb2

from services.runtime.client import open_channel
from services.runtime.topology import HOPS
from sixhop.domain.v1 import domain_pb2
from sixhop.domain.v1.domain_pb2_grpc import DomainServiceStub
from sixhop.gateway.v1 import gateway_pb2
from sixhop.gateway.v1.gateway_pb2_grpc import GatewayServiceStub
from sixhop.model.v1 import model_pb2
from sixhop.model.v1.model_pb2_grpc import ModelServiceStub
from sixhop.routing.v1 import routing_pb2
from sixhop.routing.v1.routing_pb2_grpc import RoutingServiceStub
from sixhop.runtime.v1 import runtime_pb2
from sixhop.runtime.v1.runtime_pb2_grpc import RuntimeServiceStub
from sixhop.tool.v1 import tool_pb2
from sixhop.tool.v1.tool_pb2_grpc import ToolServiceStub
from sixhop.type.v1.run_pb2 import Question
from tests.contract.wire import infos, rich_status
from tests.integration.runtime.suite import SERVICES, running
from tests.requirements import requirement

QUESTION = Question(text="hello")
Call = Callable[[grpc.aio.Channel, float | None], Awaitable[Any]]


def unary(stub: Callable[[Any], Any], method: str, request: Message) -> Call:
    """Return a call of a unary method."""

    async def call(channel: grpc.aio.Channel, timeout_s: float | None) -> Any:
        return await getattr(stub(channel), method)(request, timeout=timeout_s)

    return call


def stream(stub: Callable[[Any], Any], method: str, request: Message) -> Call:
    """Return a call of a streaming method."""

    async def call(channel: grpc.aio.Channel, timeout_s: float | None) -> Any:
        return [event async for event in getattr(stub(channel), method)(request, timeout=timeout_s)]

    return call


async def reflected(
    channel: grpc.aio.Channel, version: str, request: reflection_pb2.ServerReflectionRequest
) -> reflection_pb2.ServerReflectionResponse:
    """Ask one question of one version of reflection."""
    call: Any = channel.stream_stream(
        f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
        request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
        response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
    )(timeout=5.0)
    await call.write(request)
    await call.done_writing()
    (answer,) = [each async for each in call]
    assert isinstance(answer, reflection_pb2.ServerReflectionResponse)
    return answer


INNER: list[tuple[str, Call]] = [
    ("routing", stream(RoutingServiceStub, "Route", routing_pb2.RouteRequest(question=QUESTION))),
    ("domain", stream(DomainServiceStub, "RunAgent", domain_pb2.RunAgentRequest(agent="chat"))),
    ("domain", unary(DomainServiceStub, "ListAgents", domain_pb2.ListAgentsRequest())),
    ("tool", unary(ToolServiceStub, "ExecuteTool", tool_pb2.ExecuteToolRequest(name="x"))),
    ("tool", unary(ToolServiceStub, "ListTools", tool_pb2.ListToolsRequest())),
    ("model", stream(ModelServiceStub, "Generate", model_pb2.GenerateRequest())),
]
EDGE: list[Call] = [
    unary(GatewayServiceStub, "Ask", gateway_pb2.AskRequest(question=QUESTION)),
    stream(GatewayServiceStub, "Run", gateway_pb2.RunRequest(question=QUESTION)),
]


@requirement("deadline:missing-refused")
@pytest.mark.parametrize(("hop", "call"), INNER)
async def test_an_inner_hop_refuses_a_call_without_a_deadline(hop: str, call: Call) -> None:
    async with running() as suite, open_channel(suite.config.address(hop)) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call(channel, None)

        assert suite.seen == []

    (info,) = infos(rich_status(caught.value))
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert (info.reason, info.domain) == ("DEADLINE_MISSING", f"{hop}.sixhop")
    assert "pass a timeout" in (caught.value.details() or "")


@requirement("deadline:missing-refused")
@pytest.mark.parametrize(("hop", "call"), INNER)
async def test_an_inner_hop_takes_a_call_with_a_deadline(hop: str, call: Call) -> None:
    async with running() as suite, open_channel(suite.config.address(hop)) as channel:
        await call(channel, 5.0)

        assert suite.seen[0].hop == hop


@requirement("deadline:missing-refused")
@pytest.mark.parametrize("call", EDGE)
@pytest.mark.parametrize(("timeout_s", "expected"), [(None, 30.0), (300.0, 120.0)])
async def test_the_gateway_gives_what_is_missing_and_cuts_what_is_too_long(
    call: Call, timeout_s: float | None, expected: float
) -> None:
    async with running() as suite, open_channel(suite.config.address("gateway")) as channel:
        await call(channel, timeout_s)

        arrived = suite.arrived("gateway")

    assert arrived.deadline - arrived.arrived_at == pytest.approx(expected)


@requirement("deadline:missing-refused")
async def test_the_gateways_deadlines_are_settings() -> None:
    settings = {"DEADLINE__DEFAULT_DEADLINE_S": "7", "DEADLINE__MAX_DEADLINE_S": "9"}
    async with running({}, **settings) as suite:
        async with open_channel(suite.config.address("gateway")) as channel:
            for timeout_s, expected in ((None, 7.0), (60.0, 9.0)):
                await EDGE[0](channel, timeout_s)

                arrived = suite.arrived("gateway")
                assert arrived.deadline - arrived.arrived_at == pytest.approx(expected)


@requirement("server:unknown-methods")
@pytest.mark.parametrize("hop", HOPS)
async def test_an_unknown_method_is_unimplemented(hop: str) -> None:
    async with running() as suite, open_channel(suite.config.address(hop)) as channel:
        for path in (f"/{SERVICES[hop]}/Nothing", "/no.such.v1.Service/Nothing"):
            method: Any = channel.unary_unary(path)
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await method(b"", timeout=5.0)

            assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


@requirement("health:names")
@pytest.mark.parametrize("hop", HOPS)
async def test_health_and_the_snapshot_answer_without_a_deadline(hop: str) -> None:
    async with running() as suite, open_channel(suite.config.address(hop)) as channel:
        stub: Any = HealthStub(channel)
        for name in ("liveness", "readiness", "", SERVICES[hop]):
            answer = await stub.Check(health_pb2.HealthCheckRequest(service=name))
            assert answer.status == health_pb2.HealthCheckResponse.SERVING, name
        snapshot = await RuntimeServiceStub(channel).GetSnapshot(runtime_pb2.GetSnapshotRequest())

        assert suite.seen == []

    assert (snapshot.hop, snapshot.inflight_count, snapshot.call_count) == (hop, 0, 0)


@requirement("health:names")
async def test_an_unknown_service_has_no_health() -> None:
    async with running() as suite, open_channel(suite.config.address("tool")) as channel:
        stub: Any = HealthStub(channel)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.Check(health_pb2.HealthCheckRequest(service="nothing"))

    assert caught.value.code() is grpc.StatusCode.NOT_FOUND


@requirement("server:reflection")
@pytest.mark.parametrize("version", ["v1", "v1alpha"])
@pytest.mark.parametrize("hop", HOPS)
async def test_reflection_lists_and_describes_what_a_hop_serves(hop: str, version: str) -> None:
    async with running() as suite, open_channel(suite.config.address(hop)) as channel:
        listed = await reflected(
            channel, version, reflection_pb2.ServerReflectionRequest(list_services="")
        )
        names = {service.name for service in listed.list_services_response.service}
        asked = [
            reflection_pb2.ServerReflectionRequest(file_containing_symbol=name) for name in names
        ]
        described = [await reflected(channel, version, request) for request in asked]

    assert names >= {SERVICES[hop], "grpc.health.v1.Health", "sixhop.runtime.v1.RuntimeService"}
    assert all(each.file_descriptor_response.file_descriptor_proto for each in described)
