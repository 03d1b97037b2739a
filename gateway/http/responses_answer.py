"""Writes responses as OpenAI's clients read them, whole or as events."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

import orjson

from gateway.http.chat_answer import finish_reason, restarted
from gateway.http.failing import Failure
from gateway.http.responses_objects import (
    FunctionCall,
    OutputItem,
    OutputMessage,
    OutputText,
    ResponseError,
    ResponseEvent,
    ResponseObject,
    ResponseUsage,
    Status,
)
from gateway.http.responses_request import ResponsesRequest
from gateway.http.telling import told
from services.runtime.call import Inbound
from services.runtime.clock import Clock
from sixhop.gateway.v1 import gateway_pb2
from sixhop.type.v1 import chat_pb2, run_pb2, usage_pb2


def response(
    asked: ResponsesRequest, answer: gateway_pb2.AskResponse, inbound: Inbound, clock: Clock
) -> ResponseObject:
    """Return a whole answer as a response."""
    output: list[OutputItem] = []
    ended = _end_of(answer.finish_reason)
    if answer.text or not answer.tool_calls:
        output.append(_message(inbound, answer.text, ended))
    output += [_call(call) for call in answer.tool_calls]
    whole = begun(asked, inbound, clock)
    _finish(whole, answer, output, answer.usage)
    whole["sixhop"] = told(answer, answer.degradations, inbound)
    return whole


def begun(asked: ResponsesRequest, inbound: Inbound, clock: Clock) -> ResponseObject:
    """Return a response that has said nothing yet."""
    form = asked.text.format if asked.text is not None else None
    choice = asked.tool_choice
    return {
        "id": f"resp_{inbound.identity.run_id}",
        "object": "response",
        "created_at": int(clock.utc().timestamp()),
        "status": "in_progress",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": asked.instructions,
        "max_output_tokens": asked.max_output_tokens,
        "metadata": asked.metadata or {},
        "model": asked.model,
        "output": [],
        "parallel_tool_calls": asked.parallel_tool_calls is not False,
        "previous_response_id": None,
        "reasoning": {"effort": None, "summary": None},
        "store": False,
        "temperature": asked.temperature,
        "text": {"format": {"type": "text"} if form is None else form.model_dump(by_alias=True)},
        "tool_choice": (
            choice or "auto" if choice is None or isinstance(choice, str) else choice.model_dump()
        ),
        "tools": [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
                "strict": tool.strict,
            }
            for tool in asked.tools or ()
        ],
        "top_p": asked.top_p,
        "truncation": "disabled",
        "usage": None,
    }


def _finish(
    whole: ResponseObject,
    finished: gateway_pb2.AskResponse | run_pb2.RunFinished,
    output: Sequence[OutputItem],
    usage: usage_pb2.Usage,
) -> None:
    whole["status"] = _end_of(finished.finish_reason)
    if whole["status"] == "incomplete":
        whole["incomplete_details"] = {"reason": "max_output_tokens"}
    whole["model"] = finished.model or whole["model"]
    whole["output"] = list(output)
    whole["usage"] = _usage(usage)


def _end_of(reason: str) -> Status:
    return "incomplete" if finish_reason(reason) == "length" else "completed"


def _usage(usage: usage_pb2.Usage) -> ResponseUsage:
    read, written = usage.input_token_count, usage.output_token_count
    return {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": read + written,
        "estimated": usage.estimated,
    }


def _message(inbound: Inbound, text: str, ended: Status) -> OutputMessage:
    return {
        "type": "message",
        "id": f"msg_{inbound.identity.run_id}",
        "status": "incomplete" if ended == "incomplete" else "completed",
        "role": "assistant",
        "content": [_text(text)],
    }


def _text(text: str) -> OutputText:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _call(call: chat_pb2.ToolCall) -> FunctionCall:
    return {
        "type": "function_call",
        "id": f"fc_{call.id}",
        "call_id": call.id,
        "name": call.name,
        "arguments": call.arguments,
        "status": "completed",
    }


class ResponseEvents:
    """Writes one streamed response.

    Nothing is written before there is something to say: until then an error has an HTTP status.
    """

    def __init__(self, asked: ResponsesRequest, inbound: Inbound, clock: Clock) -> None:
        """Take the request and the call."""
        self._inbound = inbound
        self._response = begun(asked, inbound, clock)
        self._degradations: list[run_pb2.Degraded] = []
        self._output: list[OutputItem] = []
        self._texts: list[str] = []
        self._in_text = False
        self._number = 0

    async def of(
        self, events: AsyncGenerator[run_pb2.RunEvent, None]
    ) -> AsyncGenerator[bytes, None]:
        """Yield the events of a run; its errors go on."""
        async with aclosing(events) as running:
            async for event in running:
                kind = event.WhichOneof("event")
                if kind == "text_delta":
                    yield self._say(event.text_delta.text)
                elif kind == "tool_call":
                    yield self._ask(event.tool_call)
                elif kind == "restarted" and self._number:
                    raise restarted()
                elif kind == "degraded":
                    self._degradations.append(event.degraded)
                elif kind == "finished":
                    yield self._end(event.finished)

    def fail(self, failure: Failure) -> bytes:
        """Return the last event of a response that fails after it has begun."""
        details = failure.body["error"]
        status = failure.status
        code = "server_error"
        if status == 429:
            code = "rate_limit_exceeded"
        elif status < 500:
            code = "invalid_prompt"
        error: ResponseError = {**details, "code": code}
        self._response["status"] = "failed"
        self._response["error"] = error
        self._response["output"] = list(self._output)
        return self._begin() + self._event("response.failed", response=self._response)

    def _begin(self) -> bytes:
        if self._number:
            return b""
        return self._event("response.created", response=self._response) + self._event(
            "response.in_progress", response=self._response
        )

    def _say(self, text: str) -> bytes:
        written = self._begin()
        if not self._in_text:
            self._in_text = True
            opened = _message(self._inbound, "", "in_progress")
            opened["content"], opened["status"] = [], "in_progress"
            written += self._event(
                "response.output_item.added", output_index=len(self._output), item=opened
            ) + self._part("response.content_part.added", part=_text(""))
        self._texts.append(text)
        return written + self._part("response.output_text.delta", delta=text, logprobs=[])

    def _close_text(self, ended: Status) -> bytes:
        """End the message that is open, if any: it comes before everything else."""
        if not self._in_text:
            return b""
        self._in_text = False
        text = "".join(self._texts)
        closed = _message(self._inbound, text, ended)
        written = self._part("response.output_text.done", text=text, logprobs=[])
        written += self._part("response.content_part.done", part=_text(text))
        return written + self._add(closed)

    def _ask(self, call: chat_pb2.ToolCall) -> bytes:
        written = self._begin() + self._close_text("completed")
        whole, index = _call(call), len(self._output)
        opened: FunctionCall = {**whole, "arguments": "", "status": "in_progress"}
        arguments = "response.function_call_arguments"
        where: dict[str, Any] = {"item_id": whole["id"], "output_index": index}
        written += self._event("response.output_item.added", output_index=index, item=opened)
        written += self._event(f"{arguments}.delta", **where, delta=call.arguments)
        written += self._event(
            f"{arguments}.done", **where, name=call.name, arguments=call.arguments
        )
        return written + self._add(whole)

    def _end(self, finished: run_pb2.RunFinished) -> bytes:
        ended = _end_of(finished.finish_reason)
        written = self._begin()
        if not self._output and not self._in_text:
            written += self._say("")
        written += self._close_text(ended)
        _finish(self._response, finished, self._output, finished.usage)
        self._response["sixhop"] = told(finished, self._degradations, self._inbound)
        return written + self._event(f"response.{ended}", response=self._response)

    def _add(self, item: OutputItem) -> bytes:
        index = len(self._output)
        self._output.append(item)
        return self._event("response.output_item.done", output_index=index, item=item)

    def _part(self, kind: str, **fields: Any) -> bytes:
        return self._event(
            kind,
            item_id=f"msg_{self._inbound.identity.run_id}",
            output_index=len(self._output),
            content_index=0,
            **fields,
        )

    def _event(self, kind: str, **fields: Any) -> bytes:
        event: ResponseEvent = {"type": kind, "sequence_number": self._number}
        self._number += 1
        return b"event: %b\ndata: %b\n\n" % (kind.encode(), orjson.dumps({**event, **fields}))
