"""Holds an operator's orders over HTTP to who may give them, and from where."""

import json
from typing import Any

import pytest

from services.runtime.orders import OPERATOR_KEY
from services.runtime.topology import GATEWAY, ROUTING
from tests.integration.gateway.doors import Door, open_door
from tests.logged import logged
from tests.requirements import requirement

KEY = "open-sesame-4711"
WITH_KEY = {OPERATOR_KEY: KEY}
SHED = {"reason": "the database moves", "for_s": 60}
HOLD = {"hop": GATEWAY, "dependency": ROUTING, "order": "open", "for_s": 60, "reason": "it is slow"}
ASK = {"model": "chat", "messages": [{"role": "user", "content": "hello"}]}


async def said(door: Door, method: str, path: str, **more: Any) -> tuple[int, Any]:
    """Return the status and the JSON of an answer."""
    async with door.http.request(method, path, **more) as answer:
        return answer.status, await answer.json()


async def asked(door: Door) -> tuple[int, str]:
    """Ask a question; return the status, and the reason of the error if there was one."""
    status, told = await said(door, "POST", "/v1/chat/completions", json=ASK)
    return status, told.get("error", {}).get("reason", "")


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
        inner = HOLD | {"hop": "domain", "dependency": "model"}
        unknown = await said(door, "POST", "/v1/admin/breakers", json=inner, headers=WITH_KEY)

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


@requirement("page:orders")
@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("/v1/admin/shed", SHED | {"for_s": 0}, "for_s"),
        ("/v1/admin/shed", SHED | {"for_s": 1e9}, "for_s"),
        ("/v1/admin/shed", SHED | {"for_s": "NaN"}, "for_s"),
        ("/v1/admin/shed", SHED | {"reason": " "}, "reason"),
        ("/v1/admin/shed", SHED | {"up_to": "ALL"}, "up_to"),
        ("/v1/admin/shed", SHED | {"more": 1}, "more"),
        ("/v1/admin/breakers", HOLD | {"order": "tear"}, "order"),
        ("/v1/admin/breakers", HOLD | {"for_s": None}, "hold_duration"),
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

    assert (status, told["error"]["param"]) == (400, "content-type")
