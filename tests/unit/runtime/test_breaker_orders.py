"""Holds orders to breakers to those who may give them, to their bounds, and to the log."""

import random
from pathlib import Path

import pytest

from services.runtime.breaker_orders import BreakerOrders
from services.runtime.circuit import BreakerChange, BreakerState
from services.runtime.clock import ManualClock
from services.runtime.config import load_config
from services.runtime.durations import to_duration
from services.runtime.errors import (
    CircuitOpenError,
    InvalidArgumentError,
    NotFoundError,
    NotServedHereError,
    PermissionDeniedError,
    SixhopError,
    UnauthenticatedError,
)
from services.runtime.orders import MAX_ORDER_S, MAX_REASON_CHARS, Authority, Giver
from services.runtime.stack import ClientPolicies, client_policies
from services.runtime.telemetry import ORDER_REFUSED, ORDER_TAKEN
from sixhop.runtime.v1 import runtime_pb2
from tests.logged import logged
from tests.unit.runtime.policies.client_samples import failed, one

KEY = "open-sesame-4711"
PEER = "ipv4:10.0.0.7:4321"
SQL = "tool/sql"
OPEN, CLOSE, RESET = (
    runtime_pb2.BREAKER_ORDER_OPEN,
    runtime_pb2.BREAKER_ORDER_CLOSE,
    runtime_pb2.BREAKER_ORDER_RESET,
)


def request(
    order: int = OPEN,
    key: str = SQL,
    length_s: float = 60.0,
    reason: str = "the database moves",
    operator: str = "ada@desk",
) -> runtime_pb2.OrderBreakerRequest:
    """Return an order."""
    return runtime_pb2.OrderBreakerRequest(
        key=key,
        order=order,  # type: ignore[arg-type]
        hold_duration=to_duration(length_s),
        reason=reason,
        operator_name=operator,
    )


@pytest.fixture
def changes() -> list[BreakerChange]:
    return []


def policies(clock: ManualClock, changes: list[BreakerChange], mode: str) -> ClientPolicies:
    """Return what guards the calls of a hop."""
    config = load_config(Path("/dev/null"), {"SIXHOP_BREAKER__MODE": mode})
    return client_policies(config, clock, random.Random(1), changes.append)


async def taking(
    clock: ManualClock,
    changes: list[BreakerChange],
    *,
    key: str = KEY,
    host: str = "0.0.0.0",
    mode: str = "enforce",
) -> tuple[BreakerOrders, ClientPolicies]:
    """Return where orders arrive, and the policies of a hop that has called a tool once."""
    made = policies(clock, changes, mode)
    await one(made.breakers, clock)
    return BreakerOrders("domain", "domain-1", made, Authority(key, host, "domain")), made


async def test_a_breaker_that_is_held_open_refuses_until_its_time_is_up_and_then_probes(
    manual: ManualClock, changes: list[BreakerChange]
) -> None:
    orders, made = await taking(manual, changes)

    answer = orders.order(request(OPEN, length_s=60.0), Giver(KEY, PEER))
    with pytest.raises(CircuitOpenError) as caught:
        await one(made.breakers, manual)
    manual.advance(59.0)
    held = made.breakers.state(SQL)
    manual.advance(1.5)

    assert (answer.pod, answer.dependency.key) == ("domain-1", SQL)
    assert answer.dependency.breaker_state == runtime_pb2.BREAKER_STATE_OPEN
    assert answer.dependency.breaker_forced
    assert caught.value.cause == "operator"
    assert (held, made.breakers.state(SQL)) == (BreakerState.OPEN, BreakerState.HALF_OPEN)


async def test_a_breaker_that_is_held_closed_lets_failures_pass_until_its_time_is_up(
    manual: ManualClock, changes: list[BreakerChange]
) -> None:
    orders, made = await taking(manual, changes)

    orders.order(request(CLOSE, length_s=60.0), Giver(KEY, PEER))
    for _ in range(20):
        await one(made.breakers, manual, 0.1, failed())
    held = made.breakers.state(SQL)
    manual.advance(60.0)
    for _ in range(20):
        if made.breakers.state(SQL) is BreakerState.CLOSED:
            await one(made.breakers, manual, 0.1, failed())

    assert (held, made.breakers.state(SQL)) == (BreakerState.CLOSED, BreakerState.OPEN)


async def test_a_reset_ends_an_order_and_needs_neither_length_nor_reason(
    manual: ManualClock, changes: list[BreakerChange]
) -> None:
    orders, made = await taking(manual, changes)
    orders.order(request(OPEN), Giver(KEY, PEER))

    answer = orders.order(request(RESET, length_s=0.0, reason=""), Giver(KEY, PEER))

    assert answer.dependency.breaker_state == runtime_pb2.BREAKER_STATE_CLOSED
    assert not answer.dependency.breaker_forced
    assert made.breakers.state(SQL) is BreakerState.CLOSED


async def test_what_an_order_changes_is_announced_like_any_other_change(
    manual: ManualClock, changes: list[BreakerChange]
) -> None:
    orders, _ = await taking(manual, changes)

    orders.order(request(OPEN), Giver(KEY, PEER))
    orders.order(request(RESET), Giver(KEY, PEER))

    assert [(each.new, each.reason) for each in changes] == [
        (BreakerState.OPEN, "operator"),
        (BreakerState.CLOSED, "operator"),
    ]


@pytest.mark.parametrize("key", [None, "", "sesame", KEY + "x"])
async def test_without_the_right_key_nothing_happens(
    manual: ManualClock, changes: list[BreakerChange], key: str | None
) -> None:
    orders, made = await taking(manual, changes, host="127.0.0.1")

    with logged() as log:
        with pytest.raises(UnauthenticatedError):
            orders.order(request(), Giver(key, PEER))
        (line,) = log.lines()

    assert made.breakers.state(SQL) is BreakerState.CLOSED
    assert (line["event"], line["order"]) == (ORDER_REFUSED, "breaker_open")
    assert not key or key not in str(line)


@pytest.mark.parametrize(("host", "obeys"), [("127.0.0.1", True), ("0.0.0.0", False)])
async def test_without_any_key_a_hop_obeys_only_where_its_machine_alone_can_reach_it(
    manual: ManualClock, changes: list[BreakerChange], host: str, obeys: bool
) -> None:
    orders, made = await taking(manual, changes, key="", host=host)

    if obeys:
        orders.order(request(), Giver(None, PEER))
    else:
        with pytest.raises(PermissionDeniedError, match="the domain listens on 0"):
            orders.order(request(), Giver("whatever", "ipv4:127.0.0.1:4321"))

    assert (made.breakers.state(SQL) is BreakerState.OPEN) is obeys


async def test_a_dependency_that_was_never_called_is_not_there_and_those_that_were_are_named(
    manual: ManualClock, changes: list[BreakerChange]
) -> None:
    orders, made = await taking(manual, changes)

    with pytest.raises(NotFoundError, match=r"known: tool/sql"):
        orders.order(request(key="tool/sqll"), Giver(KEY, PEER))

    assert list(made.breakers.snapshot()) == [SQL]


@pytest.mark.parametrize("mode", ["observe", "off"])
async def test_breakers_that_refuse_nothing_take_no_orders(
    manual: ManualClock, changes: list[BreakerChange], mode: str
) -> None:
    orders, _ = await taking(manual, changes, mode=mode)

    with pytest.raises(NotServedHereError, match="SIXHOP_BREAKER__MODE=enforce") as caught:
        orders.order(request(), Giver(KEY, PEER))

    assert caught.value.cause == "not_enforced"


def test_without_the_engine_the_answer_says_what_to_set() -> None:
    orders = BreakerOrders("domain", "domain-1", None, Authority(KEY, "0.0.0.0", "domain"))

    with pytest.raises(NotServedHereError, match="SIXHOP_ENGINE__ENABLED=true"):
        orders.order(request(), Giver(KEY, PEER))
    with pytest.raises(UnauthenticatedError):
        orders.order(request(), Giver(None, PEER))


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        (request(order=0), "order"),
        (request(order=9), "order"),
        (request(reason=" "), "reason"),
        (request(reason="x" * (MAX_REASON_CHARS + 1)), "reason"),
        (request(length_s=0.0), "hold_duration"),
        (request(CLOSE, length_s=MAX_ORDER_S + 1), "hold_duration"),
        (request(operator="x" * 101), "operator_name"),
        (request(RESET, operator="x" * 101), "operator_name"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_an_order_that_makes_no_sense_is_refused_by_its_field(
    manual: ManualClock,
    changes: list[BreakerChange],
    wrong: runtime_pb2.OrderBreakerRequest,
    field: str,
) -> None:
    orders, made = await taking(manual, changes)

    with pytest.raises(InvalidArgumentError) as caught:
        orders.order(wrong, Giver(KEY, PEER))

    assert caught.value.field == field
    assert made.breakers.state(SQL) is BreakerState.CLOSED


async def test_the_log_tells_who_ordered_what_and_why(
    manual: ManualClock, changes: list[BreakerChange]
) -> None:
    orders, _ = await taking(manual, changes)

    with logged() as log:
        orders.order(request(OPEN), Giver(KEY, PEER))
        orders.order(request(RESET, reason=""), Giver(KEY, PEER))
        with pytest.raises(SixhopError):
            orders.order(request(key="nothing"), Giver(KEY, PEER))
        lines = log.lines()

    assert [(line["event"], line["order"], line["lasts_s"]) for line in lines] == [
        (ORDER_TAKEN, "breaker_open", 60.0),
        (ORDER_TAKEN, "breaker_reset", None),
    ]
    assert {(line["dependency"], line["operator"], line["peer"]) for line in lines} == {
        (SQL, "ada@desk", PEER)
    }
    assert lines[0]["problem"] == "the database moves"
