"""Serves `/v1/admin`: an operator's orders to the fast-fail switch and to breakers."""

from typing import Any, Literal
from urllib.parse import SplitResult, urlsplit

import orjson
from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict
from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from gateway.http.body import read_json
from gateway.http.failing import failure_of
from gateway.http.front import Front, front_of
from gateway.http.operation import BODY_ERRORS, JSON, Answer, Operation, Parameter
from gateway.state.ordering import Obeyed, order_breaker
from gateway.state.view import DependencyView, ShedOrder, dependency_view, shed_order
from services.runtime.call import Criticality
from services.runtime.durations import to_duration
from services.runtime.errors import PermissionDeniedError, SixhopError
from services.runtime.orders import (
    MAX_OPERATOR_CHARS,
    MAX_ORDER_S,
    MAX_REASON_CHARS,
    OPERATOR_KEY,
    Giver,
    giver_of,
    is_loopback,
)
from sixhop.runtime.v1 import runtime_pb2

_ORDERS = {
    "open": runtime_pb2.BREAKER_ORDER_OPEN,
    "close": runtime_pb2.BREAKER_ORDER_CLOSE,
    "reset": runtime_pb2.BREAKER_ORDER_RESET,
}
MIN_ORDER_S = 0.001
"""Less is nothing."""
_EXAMPLE: JsonDict = {"hop": "gateway", "dependency": "routing", "order": "reset"}


class _Order(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
    operator: str = Field(default="", max_length=MAX_OPERATOR_CHARS)
    """Who orders, as they say themselves."""


class ShedRequest(_Order):
    """Orders the door to refuse calls."""

    reason: str = Field(min_length=1, max_length=MAX_REASON_CHARS)
    for_s: float = Field(ge=MIN_ORDER_S, le=MAX_ORDER_S, allow_inf_nan=False)
    """How long, seconds; a day at most."""
    up_to: Literal["CRITICAL_PLUS", "CRITICAL", "SHEDDABLE_PLUS", "SHEDDABLE"] = "CRITICAL_PLUS"
    """The highest level that is refused."""


class BreakerRequest(_Order):
    """Orders a breaker of a hop into a state."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    hop: str
    dependency: str
    """The key, as `/v1/state` has it."""
    order: Literal["open", "close", "reset"]
    for_s: float | None = Field(default=None, ge=MIN_ORDER_S, le=MAX_ORDER_S, allow_inf_nan=False)
    """How long it is held, seconds; a day at most, and nothing for a reset."""
    reason: str = Field(default="", max_length=MAX_REASON_CHARS)


class Permission(TypedDict):
    """Tells whether orders may be given."""

    may_order: bool
    cause: str
    """What is missing; empty when nothing is."""
    message: str


class Shed(TypedDict):
    """Tells which order is in force."""

    order: ShedOrder


class ShedEnded(TypedDict):
    """Tells which order was in force."""

    ended: ShedOrder | None


class ProcessHeld(TypedDict):
    """Tells what one process has made of an order."""

    address: str
    pod: str
    dependency: DependencyView | None
    """How the breaker stands now; null when the order was refused."""
    error: Any
    """Why it was refused, as errors are told everywhere; null when it was not."""


class Held(TypedDict):
    """Tells what the processes of a hop have made of an order."""

    hop: str
    processes: list[ProcessHeld]


async def may_order(request: Request) -> Response:
    """Tell whether who asks may give orders, and if not, what is missing."""
    front = front_of(request)
    try:
        _from_this_page(request, front)
        front.hop.runtime.orders.switch_for(_giver(request))
    except SixhopError as error:
        return _json(Permission(may_order=False, cause=error.cause, message=error.message))
    return _json(Permission(may_order=True, cause="", message=""))


async def shed(request: Request) -> Response:
    """Close the door for a while."""
    front = front_of(request)
    _from_this_page(request, front)
    asked = await read_json(front, request, ShedRequest)
    order = runtime_pb2.OrderShedRequest(
        reason=asked.reason,
        shed_duration=to_duration(asked.for_s),
        up_to=int(Criticality[asked.up_to]),  # type: ignore[arg-type]  # the same numbers
        operator_name=asked.operator,
    )
    given = front.hop.runtime.orders.shed(order, _giver(request))
    return _json(Shed(order=shed_order(given.order)))


async def end_shed(request: Request) -> Response:
    """Open the door again."""
    front = front_of(request)
    _from_this_page(request, front)
    ended = front.hop.runtime.orders.end(runtime_pb2.EndShedRequest(), _giver(request))
    order = shed_order(ended.ended) if ended.HasField("ended") else None
    return _json(ShedEnded(ended=order))


async def breaker(request: Request) -> Response:
    """Hold a breaker, or reset it, in every process of its hop."""
    front = front_of(request)
    _from_this_page(request, front)
    asked = await read_json(front, request, BreakerRequest)
    order = runtime_pb2.OrderBreakerRequest(
        key=asked.dependency,
        order=_ORDERS[asked.order],
        hold_duration=None if asked.for_s is None else to_duration(asked.for_s),
        reason=asked.reason,
        operator_name=asked.operator,
    )
    made = await order_breaker(front.hop, asked.hop, order, _giver(request))
    return _json(Held(hop=asked.hop, processes=[_obeyed(each) for each in made]))


def _obeyed(made: Obeyed) -> ProcessHeld:
    answer, error = made.answer, made.error
    return ProcessHeld(
        address=made.address,
        pod="" if answer is None else answer.pod,
        dependency=None if answer is None else dependency_view(answer.dependency),
        error=None if error is None else failure_of(error).body["error"],
    )


def _from_this_page(request: Request, front: Front) -> None:
    """Refuse what another site has a browser send.

    Without a key, orders rest on where the gateway listens, as `Authority` says; but a browser on
    that machine calls it for any page that it shows. Such a call names the page it comes from, or,
    where a name was made to point here, the other name as its host. Programs name any host.

    Raises:
        PermissionDeniedError: it is another page's.
    """
    host = request.headers.get("host", "")
    origin = request.headers.get("origin")
    if origin is not None and _address(origin).netloc != host:
        raise PermissionDeniedError(
            "orders are taken from the page of this gateway, not from another site", cause="origin"
        )
    if front.hop.config.operator.has_key:
        return
    name = _address(f"//{host}").hostname or ""
    if not is_loopback(name):
        raise PermissionDeniedError(
            f"without an operator's key orders are taken at a loopback address, and not at "
            f"{name[:100]}; set SIXHOP_OPERATOR__KEY",
            cause="host",
        )


def _address(text: str) -> SplitResult:
    try:
        return urlsplit(text)
    except ValueError:
        raise PermissionDeniedError(
            "orders are taken from the page of this gateway, and this is no address",
            cause="origin",
        ) from None


def _giver(request: Request) -> Giver:
    client = request.client
    peer = "" if client is None else f"http:{client.host}:{client.port}"
    return giver_of(request.headers.items(), peer)


def _json(document: Any) -> Response:
    return Response(orjson.dumps(document), headers={"cache-control": "no-store"}, media_type=JSON)


_KEY = Parameter(
    name=OPERATOR_KEY,
    where="header",
    description="The operator's key; without one configured, orders are taken at a loopback "
    "address alone, and only while callers need no key either.",
)
_ERRORS = (400, 401, 403, 404, 409, 502, 503)
ORDER_OPERATIONS = (
    Operation(
        method="GET",
        path="/v1/admin",
        serve=may_order,
        name="mayOrder",
        tag="orders",
        summary="Tell whether who asks may give orders",
        parameters=[_KEY],
        answers=[Answer(description="Whether, and if not, why.", kind=Permission)],
    ),
    Operation(
        method="POST",
        path="/v1/admin/shed",
        serve=shed,
        name="orderShed",
        tag="orders",
        summary="Refuse calls at the door for a while",
        body=ShedRequest,
        parameters=[_KEY],
        answers=[Answer(description="The order that is in force.", kind=Shed)],
        errors=(*BODY_ERRORS, *_ERRORS),
    ),
    Operation(
        method="DELETE",
        path="/v1/admin/shed",
        serve=end_shed,
        name="endShed",
        tag="orders",
        summary="Take calls again",
        parameters=[_KEY],
        answers=[Answer(description="The order that was in force, if any.", kind=ShedEnded)],
        errors=_ERRORS,
    ),
    Operation(
        method="POST",
        path="/v1/admin/breakers",
        serve=breaker,
        name="orderBreaker",
        tag="orders",
        summary="Hold a breaker open or closed for a while, or reset it",
        body=BreakerRequest,
        parameters=[_KEY],
        answers=[Answer(description="What each process of the hop has made of it.", kind=Held)],
        errors=(*BODY_ERRORS, *_ERRORS),
    ),
)
