"""Tests what the verb `shed` takes for an order, and what it refuses before anything is sent."""

from typing import Any

import pytest

from gateway.cli import shed as verb
from gateway.cli.problem import RefusedError
from gateway.cli.shed import ShedOptions, length_s, level, order_view, shed
from services.runtime.call import Criticality
from services.runtime.durations import to_duration
from sixhop.runtime.v1 import runtime_pb2
from sixhop.type.v1 import criticality_pb2

Sent = list[tuple[str, Any, tuple[tuple[str, str], ...]]]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Sent:
    """Return what would be sent: address, request and metadata; every order is obeyed."""
    orders: Sent = []

    async def send(address: str, request: Any, metadata: Any) -> verb.OrderView | None:
        orders.append((address, request, metadata))
        if isinstance(request, runtime_pb2.EndShedRequest):
            return None
        order = runtime_pb2.ShedOrder(reason=request.reason, up_to=request.up_to)
        return order_view(order)

    monkeypatch.setattr(verb, "_send", send)
    return orders


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("60s", 60.0), ("90", 90.0), ("1.5m", 90.0), ("500ms", 0.5), ("2h", 7200.0), (" 5s ", 5.0)],
)
def test_lengths_are_read_as_people_write_them(text: str, seconds: float) -> None:
    assert length_s(text) == seconds


@pytest.mark.parametrize("text", ["", "s", "0s", "-5s", "5 s", "five", "5d", "1e3s", "inf", "nan"])
def test_what_is_no_length_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(RefusedError, match="such as 60s or 5m"):
        length_s(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", Criticality.CRITICAL_PLUS),
        ("SHEDDABLE", Criticality.SHEDDABLE),
        ("sheddable-plus", Criticality.SHEDDABLE_PLUS),
        ("critical_plus", Criticality.CRITICAL_PLUS),
    ],
)
def test_levels_are_found_by_name_however_it_is_written(text: str, found: Criticality) -> None:
    assert level(text) is found


def test_an_unknown_level_is_refused_with_the_known_ones() -> None:
    with pytest.raises(RefusedError, match="SHEDDABLE, SHEDDABLE_PLUS, CRITICAL, CRITICAL_PLUS"):
        level("high")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (ShedOptions(), "--reason"),
        (ShedOptions(reason="why"), "--for"),
        (ShedOptions(length="60s"), "--reason"),
        (ShedOptions(reason="  ", length="60s"), "--reason"),
        (ShedOptions(end=True, reason="why"), "leave out --reason"),
        (ShedOptions(end=True, length="60s"), "leave out --for"),
        (ShedOptions(end=True, up_to="CRITICAL"), "leave out --up-to"),
        (ShedOptions(end=True, gateway="nowhere"), "HOST:PORT"),
        (ShedOptions(reason="why", length="0s"), "--for 0s"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_an_order_that_makes_no_sense_is_not_sent(
    options: ShedOptions, says: str, sent: Sent
) -> None:
    with pytest.raises(RefusedError, match=says) as caught:
        await shed({}, options)

    assert caught.value.exit_code == 2
    assert sent == []


async def test_an_order_carries_its_reason_its_length_its_level_and_who_gives_it(
    sent: Sent,
) -> None:
    options = ShedOptions(
        reason=" too much ", length="2m", up_to="sheddable", gateway="10.0.0.7:7400"
    )

    code = await shed({"USER": "ada"}, options)

    ((address, request, metadata),) = sent
    assert (code, address, metadata) == (0, "10.0.0.7:7400", ())
    assert (request.reason, request.shed_duration) == ("too much", to_duration(120.0))
    assert request.up_to == criticality_pb2.CRITICALITY_SHEDDABLE
    assert request.operator_name.startswith("ada@")


async def test_the_key_of_the_environment_travels_with_an_order_and_is_not_shown(
    sent: Sent, capsys: pytest.CaptureFixture[str]
) -> None:
    environ = {"SIXHOP_OPERATOR__KEY": "open-sesame", "SIXHOP_GATEWAY__PORT": "7499"}

    await shed(environ, ShedOptions(end=True))

    ((address, request, metadata),) = sent
    assert isinstance(request, runtime_pb2.EndShedRequest)
    assert address == "127.0.0.1:7499"
    assert metadata == (("x-sixhop-operator-key", "open-sesame"),)
    output = capsys.readouterr()
    assert "no order was in force" in output.out
    assert "sesame" not in output.out + output.err


async def test_a_key_that_cannot_be_sent_is_refused_and_not_shown(sent: Sent) -> None:
    with pytest.raises(RefusedError, match=r"\[operator\] key = …") as caught:
        await shed({"SIXHOP_OPERATOR__KEY": "open sesame"}, ShedOptions(end=True))

    assert "sesame" not in caught.value.message
    assert sent == []


def test_an_order_is_shown_without_control_characters() -> None:
    order = runtime_pb2.ShedOrder(
        reason="the\x1b[31m database",
        up_to=criticality_pb2.CRITICALITY_SHEDDABLE_PLUS,
        remaining_duration=to_duration(12.3456),
        operator_name="ada\n@desk",
    )
    order.end_time.FromJsonString("2026-05-06T07:08:09.5Z")

    view = order_view(order)

    assert (view.reason, view.operator) == ("the[31m database", "ada @desk")
    assert (view.up_to, view.remaining_s) == ("SHEDDABLE_PLUS", 12.346)
    assert view.end_time == "2026-05-06T07:08:09+00:00"
