"""Holds orders to those who may give them, to their bounds, and to the log."""

import pytest

from services.runtime.call import Criticality
from services.runtime.clock import ManualClock
from services.runtime.durations import to_duration, to_seconds
from services.runtime.errors import (
    InvalidArgumentError,
    NotServedHereError,
    PermissionDeniedError,
    SixhopError,
    UnauthenticatedError,
)
from services.runtime.orders import (
    MAX_ORDER_S,
    MAX_REASON_CHARS,
    OPERATOR_KEY,
    Authority,
    Giver,
    Orders,
    giver_of,
)
from services.runtime.policies.shed import ShedConfig, ShedSwitch
from services.runtime.telemetry import ORDER_REFUSED, ORDER_TAKEN
from sixhop.runtime.v1 import runtime_pb2
from sixhop.type.v1 import criticality_pb2
from tests.logged import logged

KEY = "open-sesame-4711"
PEER = "ipv4:10.0.0.7:4321"


def request(
    reason: str = "the database moves",
    length_s: float = 60.0,
    up_to: int = 0,
    operator: str = "ada@desk",
) -> runtime_pb2.OrderShedRequest:
    """Return an order."""
    return runtime_pb2.OrderShedRequest(
        reason=reason,
        shed_duration=to_duration(length_s),
        up_to=up_to,  # type: ignore[arg-type]
        operator_name=operator,
    )


def taking(
    clock: ManualClock,
    *,
    hop: str = "gateway",
    key: str = KEY,
    host: str = "0.0.0.0",
    engine: bool = True,
) -> tuple[Orders, ShedSwitch]:
    """Return where orders arrive, and the switch."""
    switch = ShedSwitch(ShedConfig(), clock)
    orders = Orders(hop, switch if engine else None, Authority(key, host), clock)
    return orders, switch


def test_an_order_with_the_key_closes_the_door(manual: ManualClock) -> None:
    orders, switch = taking(manual)

    answer = orders.shed(request(), Giver(KEY, PEER))

    order = switch.snapshot().order
    assert order is not None
    assert (order.reason, order.operator) == ("the database moves", "ada@desk")
    assert order.until == manual.now() + 60.0
    assert order.up_to is Criticality.CRITICAL_PLUS
    assert answer.order.up_to == criticality_pb2.CRITICALITY_CRITICAL_PLUS
    assert to_seconds(answer.order.remaining_duration) == 60.0


def test_an_order_may_spare_the_higher_levels(manual: ManualClock) -> None:
    orders, switch = taking(manual)

    orders.shed(request(up_to=criticality_pb2.CRITICALITY_SHEDDABLE_PLUS), Giver(KEY, PEER))

    assert switch.snapshot().up_to is Criticality.SHEDDABLE_PLUS


def test_an_order_is_ended_with_the_key(manual: ManualClock) -> None:
    orders, switch = taking(manual)
    orders.shed(request(), Giver(KEY, PEER))

    first = orders.end(runtime_pb2.EndShedRequest(operator_name="bob"), Giver(KEY, PEER))
    second = orders.end(runtime_pb2.EndShedRequest(operator_name="bob"), Giver(KEY, PEER))

    assert first.ended.reason == "the database moves"
    assert not second.HasField("ended")
    assert switch.snapshot().order is None


@pytest.mark.parametrize("key", [None, "", "open-sesame", KEY + "x", KEY.upper()])
def test_without_the_right_key_there_is_no_order_and_the_key_is_not_shown(
    manual: ManualClock, key: str | None
) -> None:
    orders, switch = taking(manual, host="127.0.0.1")

    with logged() as log:
        with pytest.raises(UnauthenticatedError, match="SIXHOP_OPERATOR__KEY") as caught:
            orders.shed(request(), Giver(key, PEER))
        with pytest.raises(UnauthenticatedError):
            orders.end(runtime_pb2.EndShedRequest(), Giver(key, PEER))

    assert switch.snapshot().order is None
    told = caught.value.message + str(log.lines())
    assert KEY not in told
    assert not key or key not in told


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.1.1", "localhost", "::1", "[::1]"])
def test_without_any_key_a_gateway_that_only_its_machine_can_reach_takes_orders(
    manual: ManualClock, host: str
) -> None:
    orders, switch = taking(manual, key="", host=host)

    orders.shed(request(), Giver(None, PEER))

    assert switch.snapshot().order is not None


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "[::]", "10.0.0.7", "gateway", "", "127.0.0"])
def test_without_any_key_a_gateway_that_others_can_reach_takes_none_whoever_calls(
    manual: ManualClock, host: str
) -> None:
    orders, switch = taking(manual, key="", host=host)

    with pytest.raises(PermissionDeniedError, match="SIXHOP_OPERATOR__KEY"):
        orders.shed(request(), Giver("whatever", "ipv4:127.0.0.1:4321"))

    assert switch.snapshot().order is None


def test_without_any_key_nobody_orders_where_callers_need_keys_or_through_a_proxy(
    manual: ManualClock,
) -> None:
    orders, switch = taking(manual, key="", host="127.0.0.1")

    with pytest.raises(PermissionDeniedError, match=r"a proxy .* set SIXHOP_OPERATOR__KEY"):
        orders.shed(request(), giver_of([("x-forwarded-for", "10.0.0.7")], PEER))
    orders.authority.why_key = lambda: "callers need keys here"
    with pytest.raises(PermissionDeniedError, match=r"callers need .* set SIXHOP_OPERATOR__KEY"):
        orders.shed(request(), giver_of([], PEER))

    assert switch.snapshot().order is None


def test_with_the_key_an_order_may_come_through_a_proxy_to_where_callers_need_keys(
    manual: ManualClock,
) -> None:
    orders, switch = taking(manual)
    orders.authority.why_key = lambda: "callers need keys here"

    orders.shed(request(), giver_of([("via", "1.1 edge"), (OPERATOR_KEY, KEY)], PEER))

    assert switch.snapshot().order is not None


def test_another_hop_says_where_to_go(manual: ManualClock) -> None:
    orders, _ = taking(manual, hop="tool")

    with pytest.raises(NotServedHereError, match="give the order to the gateway") as caught:
        orders.shed(request(), Giver(KEY, PEER))

    assert caught.value.cause == "wrong_hop"


def test_without_the_engine_the_answer_says_what_to_set(manual: ManualClock) -> None:
    orders, _ = taking(manual, engine=False)

    with pytest.raises(NotServedHereError, match="SIXHOP_ENGINE__ENABLED=true") as caught:
        orders.shed(request(), Giver(KEY, PEER))
    with pytest.raises(UnauthenticatedError):
        orders.shed(request(), Giver(None, PEER))

    assert caught.value.cause == "engine_off"


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        (request(reason=""), "reason"),
        (request(reason="  \n"), "reason"),
        (request(reason="x" * (MAX_REASON_CHARS + 1)), "reason"),
        (request(length_s=0.0), "shed_duration"),
        (request(length_s=-1.0), "shed_duration"),
        (request(length_s=MAX_ORDER_S + 1), "shed_duration"),
        (request(up_to=5), "up_to"),
        (request(up_to=-1), "up_to"),
        (request(operator="x" * 101), "operator_name"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_order_that_makes_no_sense_is_refused_by_its_field(
    manual: ManualClock, wrong: runtime_pb2.OrderShedRequest, field: str
) -> None:
    orders, switch = taking(manual)

    with pytest.raises(InvalidArgumentError) as caught:
        orders.shed(wrong, Giver(KEY, PEER))

    assert caught.value.field == field
    assert switch.snapshot().order is None


def test_the_log_tells_who_gave_an_order_and_from_where(manual: ManualClock) -> None:
    orders, _ = taking(manual)

    with logged() as log:
        orders.shed(request(), Giver(KEY, PEER))
        orders.end(runtime_pb2.EndShedRequest(operator_name="bob"), Giver(KEY, PEER))
        lines = log.lines()

    assert [(line["event"], line["order"], line["operator"]) for line in lines] == [
        (ORDER_TAKEN, "shed", "ada@desk"),
        (ORDER_TAKEN, "end", "bob"),
    ]
    assert {line["peer"] for line in lines} == {PEER}


def test_the_log_tells_of_a_wrong_key_and_not_of_a_wrong_field(manual: ManualClock) -> None:
    orders, _ = taking(manual)

    with logged() as log:
        for key, order in (("wrong", request()), (KEY, request(operator="x" * 900))):
            with pytest.raises(SixhopError):
                orders.shed(order, Giver(key, PEER))
        lines = log.lines()

    assert [(line["event"], line["cause"]) for line in lines] == [(ORDER_REFUSED, "wrong_key")]
