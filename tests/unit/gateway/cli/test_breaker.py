"""Tests what the verb `breaker` takes for an order, and what it refuses before it is sent."""

from typing import Any

import pytest

from gateway.cli import breaker as verb
from gateway.cli.breaker import BreakerOptions, HeldView, breaker
from gateway.cli.problem import RefusedError
from services.runtime.durations import to_duration
from sixhop.runtime.v1 import runtime_pb2

Sent = list[tuple[str, str, runtime_pb2.OrderBreakerRequest, tuple[tuple[str, str], ...]]]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Sent:
    """Return what would be sent; every order is obeyed."""
    orders: Sent = []

    async def send(hop: str, address: str, request: Any, metadata: Any) -> HeldView:
        orders.append((hop, address, request, metadata))
        return HeldView(
            hop=hop, address=address, pod="", key=request.key, state="open", forced=True
        )

    monkeypatch.setattr(verb, "_send", send)
    return orders


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (BreakerOptions(order="open", key="model", hop="domain", reason="why"), "--for"),
        (BreakerOptions(order="close", key="model", hop="domain", length="60s"), "--reason"),
        (BreakerOptions(order="reset", key="model", hop="domain", length="60s"), "leave out --for"),
        (BreakerOptions(order="reset", key="model", hop="moon"), "known: gateway, routing"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_an_order_that_makes_no_sense_is_not_sent(
    options: BreakerOptions, says: str, sent: Sent
) -> None:
    with pytest.raises(RefusedError, match=says) as caught:
        await breaker({}, options)

    assert caught.value.exit_code == 2
    assert sent == []


async def test_an_order_goes_to_every_process_of_the_hop_with_the_key(
    sent: Sent, capsys: pytest.CaptureFixture[str]
) -> None:
    environ = {
        "USER": "ada",
        "SIXHOP_OPERATOR__KEY": "open-sesame",
        "SIXHOP_DOMAIN__REPLICAS": '["127.0.0.1:7402", "127.0.0.1:7502"]',
    }
    options = BreakerOptions(
        order="open", key="tool/sql", hop="domain", reason=" too slow ", length="2m"
    )

    code = await breaker(environ, options)

    output = capsys.readouterr().out
    assert code == 0
    assert [(hop, address) for hop, address, *_ in sent] == [
        ("domain", "127.0.0.1:7402"),
        ("domain", "127.0.0.1:7502"),
    ]
    request, metadata = sent[0][2:]
    assert (request.order, request.hold_duration) == (
        runtime_pb2.BREAKER_ORDER_OPEN,
        to_duration(120.0),
    )
    assert (request.reason, request.operator_name[:4]) == ("too slow", "ada@")
    assert metadata == (("x-sixhop-operator-key", "open-sesame"),)
    assert (
        "refuses every call to tool/sql for 2.0 min" in output
        or "2:00" in output
        or "120" in output
    )
    assert "sesame" not in output
