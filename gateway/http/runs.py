"""Serves `/v1/runs`: starts runs, shows them, and ends them."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from functools import partial
from typing import Annotated, Any, TypeVar

import orjson
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from gateway.http.arriving import arrival_of, credential_of, headers_of
from gateway.http.body import read_json
from gateway.http.chat_answer import failure_event
from gateway.http.failing import Failure, failure_of
from gateway.http.front import Front, failed, front_of, names_of
from gateway.http.operation import (
    BODY_ERRORS,
    CALL_ERRORS,
    CALL_HEADERS,
    CALL_PARAMETERS,
    EVENTS,
    JSON,
    Answer,
    Operation,
    Parameter,
)
from gateway.http.run_answer import event_chunks, file_headers, page, started, summary, whole
from gateway.http.run_request import (
    CURSOR,
    LAST_EVENT_ID,
    MAX_EVENT_ID,
    MAX_LIMIT,
    RunStart,
    last_seen,
    wanted_of,
    without_proxy_timeout,
)
from gateway.http.run_told import (
    EventTold,
    MissingTold,
    RunPage,
    RunStarted,
    RunSummary,
    RunWhole,
)
from gateway.http.sse import EventStream
from gateway.runs.record import Status
from gateway.runs.run import Run
from gateway.runs.starting import cancel
from services.runtime.call import Inbound
from services.runtime.errors import PermissionDeniedError, SixhopError
from services.runtime.orders import OPERATOR_KEY

T = TypeVar("T")


async def start_run(request: Request) -> Response:
    """Start a run that goes on by itself, and say where it is."""
    front = front_of(request)
    arrival = arrival_of(without_proxy_timeout(headers_of(request)), credential_of(request))
    asked = await read_json(front, request, RunStart)
    wanted = asked.run_request()
    inbound = front.desk.arrive("Run", arrival, streaming=True)
    try:
        await front.starter.start(inbound, wanted)
    except SixhopError as error:
        return failed(front.failure(inbound, error), names_of(inbound))
    told = started(inbound)
    return _json(told, 202, {**names_of(inbound), "location": told["links"]["self"]})


async def list_runs(request: Request) -> Response:
    """List the tenant's runs, the newest first."""

    async def serve(front: Front, inbound: Inbound) -> Response:
        wanted = wanted_of(request.query_params, _tenant_of(front, inbound, request))
        return _json(page(await front.reader.list(wanted), wanted.limit))

    return await _look(request, "ListRuns", serve)


async def get_run(request: Request) -> Response:
    """Show a run, with its answer once it has one."""

    async def serve(front: Front, inbound: Inbound) -> Response:
        return _json(whole(await _find(front, inbound, request)))

    return await _look(request, "GetRun", serve)


async def cancel_run(request: Request) -> Response:
    """End a run."""

    async def serve(front: Front, inbound: Inbound) -> Response:
        run = await front.reader.own(inbound.identity.tenant, request.path_params["run_id"])
        cancel(run)
        return _json(summary(run), 202 if run.live else 200)

    return await _look(request, "CancelRun", serve)


async def get_artifact(request: Request) -> Response:
    """Give a file of a run."""

    async def serve(front: Front, inbound: Inbound) -> Response:
        run, name = await _find(front, inbound, request), request.path_params["name"]
        content = await front.reader.file(run, name)
        kinds = {each["name"]: each["media_type"] for each in run.record.artifacts}
        return Response(content, headers=file_headers(name, kinds[name]))

    return await _look(request, "GetArtifact", serve)


async def watch_run(request: Request) -> Response | EventStream:
    """Give the events of a run, from any of them on, until it has ended."""

    async def serve(front: Front, inbound: Inbound) -> Response | EventStream:
        after = last_seen(headers_of(request), request.query_params)
        run = await _find(front, inbound, request)
        if not run.live and after > run.log.sequence:
            # It has been told that this was the end: a browser comes again unless it is told so.
            return Response(status_code=204)
        return EventStream(
            _read(front, run, after, inbound.identity.tenant),
            front.keep,
            _name_of(inbound),
            partial(_failure, inbound),
            failure_event,
        )

    return await _look(request, "WatchRun", serve)


async def _read(front: Front, run: Run, after: int, tenant: str) -> AsyncGenerator[bytes, None]:
    with front.readers.held(tenant):
        async with aclosing(event_chunks(run, after, front.reader)) as chunks:
            async for chunk in chunks:
                yield chunk


async def _find(front: Front, inbound: Inbound, request: Request) -> Run:
    tenant = _tenant_of(front, inbound, request)
    return await front.reader.find(tenant, request.path_params["run_id"])


def _tenant_of(front: Front, inbound: Inbound, request: Request) -> str:
    """Return whose runs are looked at: the caller's own, or those that an operator names.

    Raises:
        PermissionDeniedError: another tenant's are asked for by who is no operator.
    """
    own = inbound.identity.tenant
    named = request.query_params.get("tenant", own)
    if named != own and not _is_operator(front, request):
        raise PermissionDeniedError(
            "other tenants' runs are shown to who has the operator's key; leave `tenant` out"
        )
    return named


def _is_operator(front: Front, request: Request) -> bool:
    return front.hop.runtime.orders.authority.knows(request.headers.get(OPERATOR_KEY, ""))


async def _look(
    request: Request, method: str, serve: Callable[[Front, Inbound], Awaitable[T]]
) -> T | Response:
    front = front_of(request)
    arrival = arrival_of(headers_of(request), credential_of(request))
    inbound = front.desk.arrive(method, arrival, streaming=False)
    try:
        return await front.desk.look(inbound, partial(serve, front, inbound))
    except SixhopError as error:
        return failed(_failure(inbound, error), _name_of(inbound))


def _failure(inbound: Inbound, error: SixhopError) -> Failure:
    # A look at runs is none: it has no name of one.
    return failure_of(error, request_id=inbound.identity.request_id)


def _name_of(inbound: Inbound) -> dict[str, str]:
    return {"x-request-id": inbound.identity.request_id}


def _json(told: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(orjson.dumps(told), status, headers, media_type=JSON)


_TENANT = Parameter(
    name="tenant",
    where="query",
    description="Whose runs; with the operator's key in `x-sixhop-operator-key` another's than the "
    "caller's own.",
)
_RUN = Parameter(name="run_id", where="path", description="The run.")
_AFTER = "The id of the last event that the reader has; only later ones come."
_EVENT_ID = Annotated[int, Field(ge=0, le=MAX_EVENT_ID)]
_ID = {"run_id": "$response.body#/id"}
_NEXT = {"getRun": _ID, "watchRun": _ID, "cancelRun": _ID}
RUN_OPERATIONS = (
    Operation(
        method="POST",
        path="/v1/runs",
        serve=start_run,
        name="startRun",
        tag="runs",
        summary="Start a run that goes on by itself",
        body=RunStart,
        parameters=CALL_PARAMETERS,
        answers=[
            Answer(
                status=202,
                description="It runs, and where.",
                kind=RunStarted,
                headers={"location": "Where the run is.", **CALL_HEADERS},
                links=_NEXT,
            )
        ],
        errors=(*BODY_ERRORS, *CALL_ERRORS),
    ),
    Operation(
        method="GET",
        path="/v1/runs",
        serve=list_runs,
        name="listRuns",
        tag="runs",
        summary="List the tenant's recent runs, the newest first",
        parameters=(
            Parameter(name="status", where="query", description="Only these.", kind=Status),
            Parameter(name="agent", where="query", description="Only those that it answered."),
            _TENANT,
            Parameter(
                name="before",
                where="query",
                description="The `next` of an earlier list.",
                kind=Annotated[str, Field(pattern=CURSOR)],
            ),
            Parameter(
                name="limit",
                where="query",
                description="How many.",
                kind=Annotated[int, Field(ge=1, le=MAX_LIMIT)],
            ),
            *CALL_PARAMETERS,
        ),
        answers=[Answer(description="The runs.", kind=RunPage)],
        errors=CALL_ERRORS,
    ),
    Operation(
        method="GET",
        path="/v1/runs/{run_id}",
        serve=get_run,
        name="getRun",
        tag="runs",
        summary="Show a run, with its answer once it has one",
        parameters=(_RUN, _TENANT, *CALL_PARAMETERS),
        answers=[Answer(description="The run.", kind=RunWhole)],
        errors=CALL_ERRORS,
    ),
    Operation(
        method="DELETE",
        path="/v1/runs/{run_id}",
        serve=cancel_run,
        name="cancelRun",
        tag="runs",
        summary="End a run",
        parameters=(_RUN, *CALL_PARAMETERS),
        answers=[
            Answer(description="It had ended already.", kind=RunSummary),
            Answer(status=202, description="It is told to end.", kind=RunSummary),
        ],
        errors=CALL_ERRORS,
    ),
    Operation(
        method="GET",
        path="/v1/runs/{run_id}/events",
        serve=watch_run,
        name="watchRun",
        tag="runs",
        summary="Read the events of a run, from any of them on, until it has ended",
        parameters=(
            _RUN,
            _TENANT,
            Parameter(name=LAST_EVENT_ID, where="header", description=_AFTER, kind=_EVENT_ID),
            Parameter(name="after", where="query", description=_AFTER, kind=_EVENT_ID),
            *CALL_PARAMETERS,
        ),
        answers=[
            Answer(
                description="The events.",
                kind=EventTold | RunWhole | MissingTold,
                media_type=EVENTS,
            ),
            Answer(status=204, description="It has ended, and the reader has all of its events."),
        ],
        errors=CALL_ERRORS,
    ),
    Operation(
        method="GET",
        path="/v1/runs/{run_id}/artifacts/{name}",
        serve=get_artifact,
        name="getRunArtifact",
        tag="runs",
        summary="Read a file of a run",
        parameters=(
            _RUN,
            _TENANT,
            Parameter(name="name", where="path", description="The file."),
            *CALL_PARAMETERS,
        ),
        answers=[Answer(description="The file.", media_type="*/*")],
        errors=CALL_ERRORS,
    ),
)
