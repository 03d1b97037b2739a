"""Serves `POST /v1/chat/completions`."""

import orjson
from starlette.requests import Request
from starlette.responses import Response

from gateway.http.arriving import arrival_of
from gateway.http.body import read_json
from gateway.http.chat_answer import Chunks, completion, failure_event
from gateway.http.chat_request import ChatRequest
from gateway.http.front import Front, budget_of, failed, front_of, names_of
from gateway.http.leaving import ClientWatch
from gateway.http.sse import EventStream
from services.runtime.call import Inbound
from services.runtime.errors import SixhopError


async def chat_completions(request: Request) -> Response | EventStream:
    """Answer a conversation, whole or as a stream.

    Raises:
        SixhopError: the request cannot be read.
    """
    front = front_of(request)
    arrival = arrival_of(request.headers)
    asked = await read_json(request, ChatRequest, front.settings)
    if asked.stream:
        return _stream(front, asked, front.desk.arrive("Run", arrival, streaming=True))
    inbound = front.desk.arrive("Ask", arrival, streaming=False)
    return await _whole(front, asked, inbound, request)


async def _whole(front: Front, asked: ChatRequest, inbound: Inbound, request: Request) -> Response:
    try:
        async with ClientWatch(request.receive):
            answer = await front.desk.ask(inbound, asked.ask_request())
    except SixhopError as error:
        return failed(front.failure(inbound, error), names_of(inbound) | budget_of(inbound))
    headers = {
        **names_of(inbound),
        **budget_of(inbound),
        "x-sixhop-agent": answer.agent,
        "x-sixhop-model": answer.model,
        "x-sixhop-degraded": ",".join(each.mechanism for each in answer.degradations),
    }
    content = orjson.dumps(completion(answer, inbound, front.hop.clock))
    return Response(content, headers=headers, media_type="application/json")


def _stream(front: Front, asked: ChatRequest, inbound: Inbound) -> EventStream:
    include_usage = asked.stream_options is not None and asked.stream_options.include_usage
    chunks = Chunks(asked.model, inbound, front.hop.clock, include_usage=include_usage)
    events = front.desk.run(inbound, asked.run_request(front.settings.http_delivery))
    return EventStream(
        chunks.of(events),
        front.keep,
        names_of(inbound),
        lambda error: front.failure(inbound, error),
        failure_event,
    )
