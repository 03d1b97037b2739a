"""Serves `POST /v1/chat/completions`."""

from collections.abc import AsyncGenerator, Callable, Mapping

import orjson
from starlette.requests import Request
from starlette.responses import Response

from gateway.http.answer_request import AnswerRequest
from gateway.http.arriving import headers_of
from gateway.http.body import read_json
from gateway.http.chat_answer import END, Chunk, Chunks, Completion, completion, failure_event
from gateway.http.chat_fields import DELIVERIES, Delivery
from gateway.http.chat_request import ChatRequest
from gateway.http.failing import Failure
from gateway.http.front import Front, answer_headers, front_of, names_of
from gateway.http.leaving import ClientWatch
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
from gateway.http.sse import EventStream
from services.runtime.call import Inbound
from services.runtime.errors import InvalidArgumentError, SixhopError
from sixhop.gateway.v1 import gateway_pb2

DELIVERY_HEADER = "x-sixhop-delivery"


async def chat_completions(request: Request) -> Response | EventStream:
    """Answer a conversation, whole or as a stream.

    Raises:
        SixhopError: the request cannot be read, or the run failed before its answer began.
    """
    front = front_of(request)
    usual = delivery_of(headers_of(request), front.settings.http_delivery)
    longest = front.settings.max_question_chars
    asked = await read_json(front, request, ChatRequest)
    if asked.stream:
        run = asked.run_request(usual, longest)
        inbound = front.arrive(request, "Run", streaming=True)
        chunks = Chunks(asked.model, inbound, front.hop.clock, include_usage=asked.include_usage)
        events = chunks.of(front.desk.run(inbound, run))
        return event_stream(front, inbound, events, asked)
    ask = asked.ask_request(longest)
    inbound = front.arrive(request, "Ask", streaming=False)
    answer = await whole(front, inbound, ask, request, asked)
    told = completion(answer, inbound, front.hop.clock)
    headers = answer_headers(told["sixhop"], inbound)
    return Response(orjson.dumps(told), headers=headers, media_type=JSON)


def delivery_of(headers: Mapping[str, str], usual: Delivery) -> Delivery:
    """Return how the text of a stream is delivered, unless the body says it.

    Raises:
        InvalidArgumentError: the header names no delivery.
    """
    said = headers.get(DELIVERY_HEADER, usual)
    for known in ("buffered", "live"):
        if said == known:
            return known
    raise InvalidArgumentError(DELIVERY_HEADER, f"must be one of {', '.join(DELIVERIES)}")


async def whole(
    front: Front,
    inbound: Inbound,
    ask: gateway_pb2.AskRequest,
    request: Request,
    asked: AnswerRequest,
) -> gateway_pb2.AskResponse:
    """Return a whole answer, unless the client leaves.

    Raises:
        SixhopError: the run failed; names fields as the client does.
        ClientLeftError: the client is gone.
    """
    try:
        async with ClientWatch(request.scope["state"]):
            return await front.desk.ask(inbound, ask)
    except InvalidArgumentError as error:
        asked.naming.retell(error)
        raise


def event_stream(
    front: Front,
    inbound: Inbound,
    chunks: AsyncGenerator[bytes, None],
    asked: AnswerRequest,
    fail_late: Callable[[Failure], bytes] = failure_event,
) -> EventStream:
    """Return an answer that is a stream, and whose errors name fields as the client does."""

    def fail(error: SixhopError) -> Failure:
        if isinstance(error, InvalidArgumentError):
            asked.naming.retell(error)
        return front.failure(inbound, error)

    return EventStream(chunks, front.keep, names_of(inbound), fail, fail_late)


DELIVERY = Parameter(
    name=DELIVERY_HEADER,
    where="header",
    description="How a stream gives its text: `live`, as it is written, or `buffered`, once it is "
    "complete. `sixhop.delivery` in the body counts for more.",
    kind=Delivery,
)
ANSWER_HEADERS = {
    **CALL_HEADERS,
    "x-sixhop-agent": "Who answered; not in streams, which tell it at their end.",
    "x-sixhop-model": "Who wrote the text, likewise.",
    "x-sixhop-degraded": "The fallbacks that were used, with commas between them, likewise.",
}
CHAT = Operation(
    method="POST",
    path="/v1/chat/completions",
    serve=chat_completions,
    name="createChatCompletion",
    tag="openai",
    summary="Answer a conversation",
    description="Takes what OpenAI's clients send. A stream that fails after it has begun ends "
    'with `data: {"error": ...}` and without `[DONE]`.',
    body=ChatRequest,
    parameters=(DELIVERY, *CALL_PARAMETERS),
    answers=[
        Answer(description="The answer.", kind=Completion, headers=ANSWER_HEADERS),
        Answer(description="The answer, in chunks.", kind=Chunk, media_type=EVENTS, end=END),
    ],
    errors=(*BODY_ERRORS, *CALL_ERRORS),
)
