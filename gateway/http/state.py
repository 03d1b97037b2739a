"""Serves `/v1/state`: how every process of the suite does, once or as it changes."""

from collections.abc import AsyncGenerator

import orjson
from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from gateway.http.chat_answer import failure_event
from gateway.http.failing import failure_of
from gateway.http.front import Front, front_of
from gateway.http.operation import EVENTS, JSON, Answer, Operation, Parameter
from gateway.http.sse import EventStream
from gateway.state.view import HopView
from services.runtime.orders import OPERATOR_KEY

MIN_INTERVAL_S = 0.1
"""The least time between two messages to one who looks; what happens in between is one change."""


class State(TypedDict):
    """Tells how the suite does."""

    hops: list[HopView]


async def get_state(request: Request) -> Response:
    """Tell how every process does now."""
    front = front_of(request)
    await _let_in(request, front)
    hops = await front.lookout.glimpse()
    return Response(orjson.dumps(State(hops=hops)), media_type=JSON)


async def watch_state(request: Request) -> EventStream:
    """Tell how every process does, and again whenever something has changed."""
    front = front_of(request)
    await _let_in(request, front)
    return EventStream(_events(front), front.keep, {}, failure_of, failure_event)


async def _let_in(request: Request, front: Front) -> None:
    """Let in whoever could ask a question, and the operator: it tells where the processes are.

    No policy stands before it, because it has to work while the door is closed.

    Raises:
        SixhopError: nobody knows who it is.
    """
    key = request.headers.get(OPERATOR_KEY)
    if key and front.hop.runtime.orders.authority.knows(key):
        return
    await front.limits_of(request)


async def _events(front: Front) -> AsyncGenerator[bytes, None]:
    lookout = front.lookout
    async with lookout.looking() as look:
        while (news := await look.next()) is not None:
            events = [orjson.dumps(lookout.views[number]) for number in news]
            yield b"".join(b"event: hop\ndata: %s\n\n" % event for event in events)
            await front.hop.clock.sleep(MIN_INTERVAL_S)


_KEY = Parameter(
    name=OPERATOR_KEY,
    where="header",
    description="The operator's key, which stands for a tenant's here.",
)
STATE_OPERATIONS = (
    Operation(
        method="GET",
        path="/v1/state",
        serve=get_state,
        name="getState",
        tag="state",
        summary="Tell how every process of the suite does",
        parameters=[_KEY],
        errors=(401, 403),
        answers=[Answer(description="Each process, from the client inwards.", kind=State)],
    ),
    Operation(
        method="GET",
        path="/v1/state/events",
        serve=watch_state,
        name="watchState",
        tag="state",
        summary="Tell how every process does, and again whenever something has changed",
        description="Each event is named `hop` and is one process. All of them come first.",
        answers=[Answer(description="The processes.", kind=HopView, media_type=EVENTS)],
        parameters=[_KEY],
        errors=(401, 403, 503),
    ),
)
