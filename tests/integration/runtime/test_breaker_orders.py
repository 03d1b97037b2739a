"""Holds orders to breakers to their promises, over real connections."""

from pathlib import Path

import grpc
import pytest

from services.runtime.client import open_channel
from services.runtime.durations import to_duration
from services.runtime.orders import OPERATOR_KEY
from services.runtime.topology import DOMAIN, GATEWAY, ROUTING
from sixhop.runtime.v1 import runtime_pb2
from sixhop.runtime.v1.runtime_pb2_grpc import RuntimeServiceStub
from tests.integration.runtime.suite import running
from tests.integration.runtime.test_shed_orders import Refusal, asked, hop_alone, refusal
from tests.logged import logged
from tests.requirements import requirement

KEY = "open-sesame-4711"


async def order(
    channel: grpc.aio.Channel,
    kind: runtime_pb2.BreakerOrder.ValueType,
    callee: str,
    key: str | None = None,
) -> runtime_pb2.OrderBreakerResponse | Refusal:
    """Give an order, without a deadline; return what came of it."""
    request = runtime_pb2.OrderBreakerRequest(
        key=callee,
        order=kind,
        hold_duration=to_duration(60.0),
        reason="the database moves",
        operator_name="ada@desk",
    )
    metadata = () if key is None else ((OPERATOR_KEY, key),)
    try:
        return await RuntimeServiceStub(channel).OrderBreaker(request, metadata=metadata)
    except grpc.aio.AioRpcError as error:
        return refusal(error)


@requirement("breaker:by-order")
async def test_a_dependency_whose_breaker_is_held_open_is_not_called_until_it_is_reset() -> None:
    with logged() as log:
        async with running(ENGINE__ENABLED="true") as suite:
            async with open_channel(suite.config.address(GATEWAY)) as channel:
                before = await asked(channel)
                held = await order(channel, runtime_pb2.BREAKER_ORDER_OPEN, ROUTING)
                during = await asked(channel)
                reached = sum(inbound.hop == ROUTING for inbound in suite.seen)
                reset = await order(channel, runtime_pb2.BREAKER_ORDER_RESET, ROUTING)
                after = await asked(channel)
        lines = log.lines()

    assert (before, after) == (None, None)
    assert isinstance(held, runtime_pb2.OrderBreakerResponse)
    assert isinstance(reset, runtime_pb2.OrderBreakerResponse)
    assert during is not None
    assert (during.code, during.reason) == (grpc.StatusCode.ABORTED, "CIRCUIT_OPEN")
    assert (during.cause, reached) == ("operator", 1)
    assert (held.dependency.breaker_forced, reset.dependency.breaker_forced) == (True, False)
    told = [(line["event"], line.get("order")) for line in lines if "order" in line]
    assert told == [("order_taken", "breaker_open"), ("order_taken", "breaker_reset")]
    assert [line["reason"] for line in lines if line["event"] == "breaker_changed"] == [
        "operator",
        "operator",
    ]


@requirement("breaker:only-by-operators")
@pytest.mark.parametrize(
    ("settings", "key", "cause"),
    [
        ({"OPERATOR__KEY": KEY}, None, "no_key"),
        ({"OPERATOR__KEY": KEY}, "sesame", "wrong_key"),
        ({"DOMAIN__HOST": "0.0.0.0"}, "whatever", "no_key_configured"),
        ({"OPERATOR__KEY_FILE": "/nowhere/key"}, "whatever", "no_key_configured"),
    ],
    ids=["no key", "a wrong key", "open to all", "no file"],
)
async def test_an_inner_hop_refuses_who_may_not_order(
    settings: dict[str, str], key: str | None, cause: str
) -> None:
    async with hop_alone(DOMAIN, ENGINE__ENABLED="true", **settings) as channel:
        refused = await order(channel, runtime_pb2.BREAKER_ORDER_OPEN, "model", key)

    assert isinstance(refused, Refusal)
    assert refused.cause == cause
    assert "SIXHOP_OPERATOR__KEY" in refused.text


@requirement("breaker:only-by-operators")
async def test_who_has_the_key_is_let_in_by_an_inner_hop(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(KEY)
    settings = {"OPERATOR__KEY_FILE": str(tmp_path / "key"), "DOMAIN__HOST": "0.0.0.0"}
    async with hop_alone(DOMAIN, ENGINE__ENABLED="true", **settings) as channel:
        answer = await order(channel, runtime_pb2.BREAKER_ORDER_OPEN, "model", KEY)

    # It has called nobody yet, which it tells only to those who may order.
    assert isinstance(answer, Refusal)
    assert (answer.code, answer.reason) == (grpc.StatusCode.NOT_FOUND, "NOT_FOUND")
