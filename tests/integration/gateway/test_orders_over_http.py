"""Holds an operator's orders over HTTP to who may give them, and from where."""

import asyncio
import json
from pathlib import Path
from typing import Any

import grpc
import pytest

from services.runtime.client import open_channel
from services.runtime.durations import to_duration
from services.runtime.orders import OPERATOR_KEY
from services.runtime.topology import GATEWAY, ROUTING
from sixhop.runtime.v1 import runtime_pb2
from sixhop.runtime.v1.runtime_pb2_grpc import RuntimeServiceStub
from tests.e2e.tenants.asking import put_key
from tests.integration.gateway.doors import Door, open_door
from tests.logged import logged
from tests.requirements import requirement

KEY = "open-sesame-4711"
WITH_KEY = {OPERATOR_KEY: KEY}
SHED = {"reason": "the database moves", "for_s": 60}
HOLD = {"hop": GATEWAY, "dependency": ROUTING, "order": "open", "for_s": 60, "reason": "it is slow"}
INNER = HOLD | {"hop": "domain", "dependency": "model"}
BOUND_S = 10.0
ASK = {"model": "chat", "messages": [{"role": "user", "content": "hello"}]}


async def said(door: Door, method: str, path: str, **more: Any) -> tuple[int, Any]:
    """Return the status and the JSON of an answer."""
    async with door.http.request(method, path, **more) as answer:
        return answer.status, await answer.json()


async def asked(door: Door) -> tuple[int, str]:
    """Ask a question; return the status, and the reason of the error if there was one."""
    status, told = await said(door, "POST", "/v1/chat/completions", json=ASK)
    return status, told.get("error", {}).get("reason", "")


async def over_grpc(
    door: Door, metadata: tuple[tuple[str, str], ...] = ()
) -> tuple[grpc.StatusCode, str]:
    """Order the door closed over gRPC; return the code and what it says."""
    order = runtime_pb2.OrderShedRequest(reason="mischief", shed_duration=to_duration(60.0))
    async with open_channel(door.suite.config.address(GATEWAY)) as channel:
        try:
            await RuntimeServiceStub(channel).OrderShed(order, timeout=BOUND_S, metadata=metadata)
        except grpc.aio.AioRpcError as error:
            return error.code(), error.details() or ""
    return grpc.StatusCode.OK, ""


async def every_order(door: Door, headers: dict[str, str]) -> list[tuple[int, str]]:
    """Give every order over HTTP; return the status and the cause of each error."""
    answers = [
        await said(door, "POST", "/v1/admin/shed", json=SHED, headers=headers),
        await said(door, "DELETE", "/v1/admin/shed", headers=headers),
        await said(door, "POST", "/v1/admin/breakers", json=HOLD, headers=headers),
        await said(door, "POST", "/v1/admin/breakers", json=INNER, headers=headers),
    ]
    return [(status, told.get("error", {}).get("cause", "")) for status, told in answers]


@requirement("page:orders")
async def test_the_door_is_closed_and_opened_over_http() -> None:
    async with open_door(OPERATOR__KEY=KEY) as door:
        before = await asked(door)
        given = await said(door, "POST", "/v1/admin/shed", json=SHED, headers=WITH_KEY)
        during = await asked(door)
        _, state = await said(door, "GET", "/v1/state")
        ended = await said(door, "DELETE", "/v1/admin/shed", headers=WITH_KEY)
        again = await said(door, "DELETE", "/v1/admin/shed", headers=WITH_KEY)
        after = await asked(door)

    (gateway,) = [hop for hop in state["hops"] if hop["hop"] == GATEWAY]
    assert (before, during, after) == ((200, ""), (503, "LOAD_SHED"), (200, ""))
    assert (given[0], given[1]["order"]["reason"]) == (200, "the database moves")
    assert given[1]["order"]["up_to"] == "CRITICAL_PLUS"
    assert (gateway["door"]["state"], gateway["door"]["rejected"]) == ("closed", 1)
    assert ended[1]["ended"]["reason"] == "the database moves"
    assert again == (200, {"ended": None})


@requirement("page:orders", "breaker:by-order")
async def test_a_breaker_of_the_gateway_and_one_of_another_hop_are_held_over_http() -> None:
    async with open_door(OPERATOR__KEY=KEY) as door:
        await asked(door)
        held = await said(door, "POST", "/v1/admin/breakers", json=HOLD, headers=WITH_KEY)
        during = await asked(door)
        reset = {"hop": GATEWAY, "dependency": ROUTING, "order": "reset"}
        await said(door, "POST", "/v1/admin/breakers", json=reset, headers=WITH_KEY)
        after = await asked(door)
        unknown = await said(door, "POST", "/v1/admin/breakers", json=INNER, headers=WITH_KEY)

    (process,) = held[1]["processes"]
    assert held[0] == 200
    assert (process["dependency"]["breaker"], process["dependency"]["forced"]) == ("open", True)
    assert (during, after) == ((503, "CIRCUIT_OPEN"), (200, ""))
    # The order has reached the other hop, which has called nobody.
    assert (unknown[0], unknown[1]["error"]["code"]) == (404, "not_found")
    assert "domain has called" in unknown[1]["error"]["message"]


@requirement("page:orders")
@pytest.mark.parametrize(
    ("headers", "status", "cause"),
    [
        ({}, 401, "no_key"),
        ({OPERATOR_KEY: "sesame"}, 401, "wrong_key"),
        (WITH_KEY | {"origin": "http://evil.example"}, 403, "origin"),
        (WITH_KEY | {"origin": "null"}, 403, "origin"),
        (WITH_KEY | {"origin": "http://[::1"}, 403, "origin"),
    ],
    ids=["no key", "a wrong key", "another site", "a sandboxed site", "no-address"],
)
async def test_who_may_not_order_is_refused_whatever_the_order(
    headers: dict[str, str], status: int, cause: str
) -> None:
    with logged() as log:
        async with open_door(OPERATOR__KEY=KEY) as door:
            answers = [
                await said(door, "POST", "/v1/admin/shed", json=SHED, headers=headers),
                await said(door, "DELETE", "/v1/admin/shed", headers=headers),
                await said(door, "POST", "/v1/admin/breakers", json=HOLD, headers=headers),
            ]
            told = await said(door, "GET", "/v1/admin", headers=headers)
            still = await asked(door)
        lines = log.lines()

    assert [(each[0], each[1]["error"]["cause"]) for each in answers] == [(status, cause)] * 3
    assert (told[0], told[1]["may_order"], told[1]["cause"]) == (200, False, cause)
    assert still == (200, "")
    assert "sesame" not in json.dumps([answers, lines])


@requirement("page:orders")
async def test_without_a_key_only_the_machine_itself_orders_and_under_its_own_name() -> None:
    async with open_door() as door:
        own = await said(door, "GET", "/v1/admin", headers={"origin": f"http://{door.address}"})
        # A page that was loaded from a name which was then made to point here.
        rebound = await said(door, "GET", "/v1/admin", headers={"host": "evil.example"})
        refused = await said(
            door, "POST", "/v1/admin/shed", json=SHED, headers={"host": "evil.example"}
        )

    assert own == (200, {"may_order": True, "cause": "", "message": ""})
    assert (rebound[1]["may_order"], rebound[1]["cause"]) == (False, "host")
    assert (refused[0], refused[1]["error"]["cause"]) == (403, "host")


@requirement("page:orders", "shed:only-by-operators", "breaker:only-by-operators")
async def test_where_callers_need_keys_nobody_orders_without_the_operators(tmp_path: Path) -> None:
    key = put_key(tmp_path / "keys.json", "acme")
    tenant = {"authorization": f"Bearer {key}"}
    async with open_door(GATEWAY__KEYS_FILE=str(tmp_path / "keys.json")) as door:
        orders = [await every_order(door, headers) for headers in ({}, tenant)]
        _, told = await said(door, "GET", "/v1/admin", headers=tenant)
        code, text = await over_grpc(door, tuple(tenant.items()))
        async with door.http.post("/v1/chat/completions", json=ASK, headers=tenant) as answer:
            still = answer.status

    assert orders == [[(403, "no_key_configured")] * 4] * 2
    assert (told["may_order"], told["cause"]) == (False, "no_key_configured")
    assert "set SIXHOP_OPERATOR__KEY" in told["message"]
    assert (code, "set SIXHOP_OPERATOR__KEY" in text) == (grpc.StatusCode.PERMISSION_DENIED, True)
    assert still == 200


@requirement("page:orders", "shed:only-by-operators")
async def test_the_first_key_of_a_tenant_ends_orders_without_a_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Where keys are when no setting says where: the doors ask nobody until the file is there.
    path = tmp_path / "keys.json"
    monkeypatch.setattr("gateway.access.entrance.keys_path", lambda *_: path)
    async with open_door() as door:
        _, before = await said(door, "GET", "/v1/admin")
        put_key(path, "acme")
        async with asyncio.timeout(BOUND_S):
            while (await said(door, "GET", "/v1/admin"))[1]["may_order"]:
                pass
        orders = await every_order(door, {})

    assert before["may_order"]
    assert orders == [(403, "no_key_configured")] * 4


@requirement("tenants:key-file", "shed:only-by-operators")
async def test_keys_that_make_no_sense_from_the_start_on_let_nobody_in_and_nobody_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "keys.json"
    path.write_text("{")
    monkeypatch.setattr("gateway.access.entrance.keys_path", lambda *_: path)
    async with open_door() as door:
        status, reason = await asked(door)
        orders = await every_order(door, {})

    assert (status, reason) == (401, "UNAUTHENTICATED")
    assert orders == [(403, "no_key_configured")] * 4


@requirement("page:orders", "shed:only-by-operators", "breaker:only-by-operators")
@pytest.mark.parametrize(
    "name",
    [
        "forwarded",
        "via",
        "x-envoy-external-address",
        "x-forwarded-for",
        "x-forwarded-host",
        "x-real-ip",
    ],
)
async def test_what_a_proxy_has_passed_on_is_no_order_without_a_key(name: str) -> None:
    async with open_door() as door:
        orders = await every_order(door, {name: "10.0.0.7"})
        _, told = await said(door, "GET", "/v1/admin", headers={name: "10.0.0.7"})
        code, text = await over_grpc(door, ((name, "10.0.0.7"),))
        still = await asked(door)

    assert orders == [(403, "no_key_configured")] * 4
    assert (told["may_order"], told["cause"]) == (False, "no_key_configured")
    assert (code, "a proxy" in text) == (grpc.StatusCode.PERMISSION_DENIED, True)
    assert still == (200, "")


@requirement("page:orders")
async def test_a_door_that_others_can_reach_by_http_takes_no_orders_without_a_key() -> None:
    async with open_door(GATEWAY__HTTP_HOST="0.0.0.0", GATEWAY__OPEN="true") as door:
        orders = await every_order(door, {})
        _, told = await said(door, "GET", "/v1/admin")

    assert orders == [(403, "no_key_configured")] * 4
    assert (told["may_order"], "listens on 0.0.0.0" in told["message"]) == (False, True)


@requirement("page:orders")
async def test_where_no_order_is_taken_nobody_is_told_that_they_may_give_one() -> None:
    async with open_door(OPERATOR__KEY=KEY, ENGINE__ENABLED="false") as door:
        _, told = await said(door, "GET", "/v1/admin", headers=WITH_KEY)
        refused = await said(door, "POST", "/v1/admin/shed", json=SHED, headers=WITH_KEY)

    assert (told["may_order"], told["cause"]) == (False, "engine_off")
    assert (refused[0], refused[1]["error"]["cause"]) == (409, "engine_off")


@requirement("page:orders")
@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("/v1/admin/shed", SHED | {"for_s": 0}, "for_s"),
        ("/v1/admin/shed", SHED | {"for_s": 86_400.001}, "for_s"),
        # More than a duration can hold.
        ("/v1/admin/shed", SHED | {"for_s": 1e308}, "for_s"),
        ("/v1/admin/shed", SHED | {"for_s": "NaN"}, "for_s"),
        ("/v1/admin/shed", SHED | {"reason": " "}, "reason"),
        ("/v1/admin/shed", SHED | {"up_to": "ALL"}, "up_to"),
        ("/v1/admin/shed", SHED | {"more": 1}, "more"),
        ("/v1/admin/breakers", HOLD | {"order": "tear"}, "order"),
        ("/v1/admin/breakers", HOLD | {"for_s": None}, "hold_duration"),
        ("/v1/admin/breakers", HOLD | {"for_s": 1e308}, "for_s"),
        ("/v1/admin/breakers", HOLD | {"reason": "x" * 201}, "reason"),
    ],
)
async def test_an_order_that_makes_no_sense_is_refused_by_its_field(
    path: str, body: dict[str, Any], param: str
) -> None:
    async with open_door(OPERATOR__KEY=KEY) as door:
        await asked(door)
        status, told = await said(door, "POST", path, json=body, headers=WITH_KEY)

    assert (status, told["error"]["param"]) == (400, param)


@requirement("page:orders")
async def test_a_form_that_any_page_could_send_is_no_order() -> None:
    async with open_door(OPERATOR__KEY=KEY) as door:
        headers = WITH_KEY | {"content-type": "text/plain"}
        status, told = await said(
            door, "POST", "/v1/admin/shed", data=json.dumps(SHED), headers=headers
        )

    assert (status, told["error"]["param"]) == (415, "content-type")
