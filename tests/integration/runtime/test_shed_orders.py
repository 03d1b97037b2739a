"""Holds the operator's fast-fail switch to its promises, over real connections."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import grpc
import pytest
from google.rpc import error_details_pb2, status_pb2

from services.runtime.client import open_channel
from services.runtime.durations import to_duration, to_seconds
from services.runtime.orders import OPERATOR_KEY
from services.runtime.process import serving
from services.runtime.status import DETAILS_KEY
from services.runtime.topology import GATEWAY, TOOL
from sixhop.gateway.v1 import gateway_pb2
from sixhop.gateway.v1.gateway_pb2_grpc import GatewayServiceStub
from sixhop.runtime.v1 import runtime_pb2
from sixhop.runtime.v1.runtime_pb2_grpc import RuntimeServiceStub
from sixhop.type.v1 import criticality_pb2
from sixhop.type.v1.run_pb2 import Question
from tests.integration.runtime.suite import CLOCK, configured, running
from tests.integration.runtime.test_watch_snapshots import ready
from tests.logged import logged
from tests.requirements import requirement

KEY = "open-sesame-4711"
REQUEST = runtime_pb2.GetSnapshotRequest()


@dataclass(frozen=True, slots=True)
class Refusal:
    """Is a typed error, as a client reads it."""

    code: grpc.StatusCode
    reason: str
    cause: str
    text: str
    retry_after_s: float | None


def refusal(error: grpc.aio.AioRpcError) -> Refusal:
    """Return what an error tells."""
    metadata = error.trailing_metadata()
    details = metadata[DETAILS_KEY] if metadata is not None else b""
    assert isinstance(details, bytes)
    info, retry = error_details_pb2.ErrorInfo(), error_details_pb2.RetryInfo()
    status = status_pb2.Status.FromString(details)
    found = [each.Unpack(info) or each.Unpack(retry) for each in status.details]
    assert all(found)
    after_s = to_seconds(retry.retry_delay) if retry.HasField("retry_delay") else None
    text = error.details() or ""
    return Refusal(error.code(), info.reason, info.metadata["cause"], text, after_s)


async def order(
    channel: grpc.aio.Channel,
    key: str | None = None,
    *,
    length_s: float = 60.0,
    up_to: criticality_pb2.Criticality.ValueType = criticality_pb2.CRITICALITY_UNSPECIFIED,
) -> Refusal | None:
    """Give an order to shed, without a deadline; return why it was refused, if it was."""
    request = runtime_pb2.OrderShedRequest(
        reason="the database moves",
        shed_duration=to_duration(length_s),
        up_to=up_to,
        operator_name="ada@desk",
    )
    metadata = () if key is None else ((OPERATOR_KEY, key),)
    try:
        await RuntimeServiceStub(channel).OrderShed(request, metadata=metadata)
    except grpc.aio.AioRpcError as error:
        return refusal(error)
    return None


async def asked(channel: grpc.aio.Channel, level: str = "CRITICAL") -> Refusal | None:
    """Ask a question; return why it was refused, if it was."""
    request = gateway_pb2.AskRequest(question=Question(text="hello"), agent="chat")
    metadata = (("x-sixhop-criticality", level),)
    try:
        await GatewayServiceStub(channel).Ask(request, timeout=10.0, metadata=metadata)
    except grpc.aio.AioRpcError as error:
        return refusal(error)
    return None


@asynccontextmanager
async def hop_alone(name: str = GATEWAY, **settings: str) -> AsyncIterator[grpc.aio.Channel]:
    """Run one hop that serves nothing of its own, and the way to it."""
    config = configured(**settings)
    async with (
        serving(name, ready, config, CLOCK),
        open_channel(f"127.0.0.1:{config.port(name)}") as channel,
    ):
        yield channel


@requirement("shed:by-order")
async def test_while_the_door_is_closed_calls_fail_fast_and_say_when_to_come_back() -> None:
    async with running(ENGINE__ENABLED="true") as suite:
        async with open_channel(suite.config.address(GATEWAY)) as channel:
            before = await asked(channel)
            assert await order(channel, length_s=30.0) is None
            during = await asked(channel)
            snapshot = await RuntimeServiceStub(channel).GetSnapshot(REQUEST)
            ended = await RuntimeServiceStub(channel).EndShed(runtime_pb2.EndShedRequest())
            after = await asked(channel)
            reached = [inbound for inbound in suite.seen if inbound.hop != GATEWAY]

    assert (before, after) == (None, None)
    assert during is not None
    assert (during.code, during.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "LOAD_SHED")
    assert (during.cause, "the database moves" in during.text) == ("operator", True)
    assert during.retry_after_s is not None
    assert 0 < during.retry_after_s <= 30.0
    assert snapshot.shed.order.operator_name == "ada@desk"
    assert snapshot.estimated_qps == 0.0
    assert ended.ended.reason == "the database moves"
    assert len({inbound.identity.run_id for inbound in reached}) == 2, "one was stopped at the door"


@requirement("shed:by-order")
async def test_an_order_refuses_no_higher_level_than_it_says() -> None:
    async with running(ENGINE__ENABLED="true") as suite:
        async with open_channel(suite.config.address(GATEWAY)) as channel:
            await order(channel, up_to=criticality_pb2.CRITICALITY_SHEDDABLE_PLUS)
            low, high = await asked(channel, "SHEDDABLE"), await asked(channel, "CRITICAL")
            snapshot = await RuntimeServiceStub(channel).GetSnapshot(REQUEST)

    assert low is not None
    assert (low.reason, high) == ("LOAD_SHED", None)
    assert snapshot.shed.state == runtime_pb2.DOOR_STATE_NARROWED
    assert not snapshot.HasField("estimated_qps"), "too few calls, and none of them refused"


@requirement("shed:only-by-operators")
@pytest.mark.parametrize(("key", "cause"), [(None, "no_key"), ("sesame", "wrong_key")])
async def test_without_the_right_key_the_door_stays_open(key: str | None, cause: str) -> None:
    with logged() as log:
        async with hop_alone(ENGINE__ENABLED="true", OPERATOR__KEY=KEY) as channel:
            refused = await order(channel, key)
            snapshot = await RuntimeServiceStub(channel).GetSnapshot(REQUEST)
            taken = await order(channel, KEY)
        lines = log.lines()

    assert refused is not None
    assert (refused.code, refused.cause) == (grpc.StatusCode.UNAUTHENTICATED, cause)
    assert "SIXHOP_OPERATOR__KEY" in refused.text
    assert not snapshot.shed.HasField("order")
    assert taken is None
    events = [line["event"] for line in lines]
    assert [events.count(name) for name in ("order_refused", "order_taken", "shed_changed")] == [
        1,
        1,
        1,
    ]
    assert "sesame" not in str(lines)


@requirement("shed:only-by-operators")
async def test_a_gateway_that_listens_to_all_takes_no_orders_without_a_key() -> None:
    settings = {"ENGINE__ENABLED": "true", "GATEWAY__HOST": "0.0.0.0"}
    async with hop_alone(**settings) as channel:
        refused = await order(channel, "whatever")
    async with hop_alone(OPERATOR__KEY=KEY, **settings) as channel:
        taken = await order(channel, KEY)

    assert refused is not None
    assert (refused.code, refused.cause) == (
        grpc.StatusCode.PERMISSION_DENIED,
        "no_key_configured",
    )
    assert "[operator]" in refused.text
    assert taken is None


@requirement("shed:only-by-operators")
@pytest.mark.parametrize(
    ("hop", "engine", "cause", "advice"),
    [
        (TOOL, "true", "wrong_hop", "give the order to the gateway"),
        (GATEWAY, "false", "engine_off", "SIXHOP_ENGINE__ENABLED=true"),
    ],
)
async def test_where_there_is_no_switch_the_answer_says_what_to_do(
    hop: str, engine: str, cause: str, advice: str
) -> None:
    async with hop_alone(hop, ENGINE__ENABLED=engine) as channel:
        refused = await order(channel)

    assert refused is not None
    assert (refused.code, refused.reason, refused.cause) == (
        grpc.StatusCode.FAILED_PRECONDITION,
        "NOT_SERVED_HERE",
        cause,
    )
    assert advice in refused.text
