"""Serves `POST /v1/responses`."""

import orjson
from starlette.requests import Request
from starlette.responses import Response

from gateway.http.arriving import headers_of
from gateway.http.body import read_json
from gateway.http.chat import ANSWER_HEADERS, DELIVERY, delivery_of, event_stream, whole
from gateway.http.front import answer_headers, front_of
from gateway.http.operation import (
    BODY_ERRORS,
    CALL_ERRORS,
    CALL_PARAMETERS,
    EVENTS,
    JSON,
    Answer,
    Operation,
)
from gateway.http.responses_answer import ResponseEvents, response
from gateway.http.responses_objects import ResponseEvent, ResponseObject
from gateway.http.responses_request import ResponsesRequest
from gateway.http.sse import EventStream


async def create_response(request: Request) -> Response | EventStream:
    """Answer a conversation, whole or as events.

    Raises:
        SixhopError: the request cannot be read, or the run failed before its answer began.
    """
    front = front_of(request)
    usual = delivery_of(headers_of(request), front.settings.http_delivery)
    longest = front.settings.max_question_chars
    asked = await read_json(front, request, ResponsesRequest)
    if asked.stream:
        run = asked.run_request(usual, longest)
        inbound = front.arrive(request, "Run", streaming=True)
        events = ResponseEvents(asked, inbound, front.hop.clock)
        running = events.of(front.desk.run(inbound, run))
        return event_stream(front, inbound, running, asked, events.fail)
    ask = asked.ask_request(longest)
    inbound = front.arrive(request, "Ask", streaming=False)
    answer = await whole(front, inbound, ask, request, asked)
    told = response(asked, answer, inbound, front.hop.clock)
    headers = answer_headers(told["sixhop"], inbound)
    return Response(orjson.dumps(told), headers=headers, media_type=JSON)


RESPONSES = Operation(
    method="POST",
    path="/v1/responses",
    serve=create_response,
    name="createResponse",
    tag="openai",
    summary="Answer a conversation, in OpenAI's newer words",
    description="Takes what OpenAI's clients send for text and for tools of the caller. Nothing is "
    "stored. A stream that fails after it has begun ends with `response.failed`.",
    body=ResponsesRequest,
    parameters=(DELIVERY, *CALL_PARAMETERS),
    answers=[
        Answer(description="The response.", kind=ResponseObject, headers=ANSWER_HEADERS),
        Answer(description="The response, as events.", kind=ResponseEvent, media_type=EVENTS),
    ],
    errors=(*BODY_ERRORS, *CALL_ERRORS),
)
