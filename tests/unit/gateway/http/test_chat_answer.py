"""Tests how answers are written for OpenAI's clients."""

from collections.abc import AsyncGenerator, Sequence
from typing import Any

import orjson
import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from gateway.http.chat_answer import DONE, Chunks, completion
from services.runtime.call import Identity, Inbound
from services.runtime.clock import ManualClock
from services.runtime.errors import DependencyFailedError
from sixhop.gateway.v1 import gateway_pb2
from sixhop.type.v1 import chat_pb2, run_pb2, usage_pb2
from tests.requirements import requirement

CALL = chat_pb2.ToolCall(id="c1", name="weather", arguments='{"city": "Rome"}')
OTHER = chat_pb2.ToolCall(id="c2", name="time", arguments="{}")
USAGE = usage_pb2.Usage(input_token_count=3, output_token_count=4)
LESSER = run_pb2.Degraded(mechanism="backup", part="prose", reason="slow")


def inbound() -> Inbound:
    """Return a call as it has arrived."""
    return Inbound("gateway", "Run", True, 0.0, 10.0, Identity(run_id="r", request_id="q"))


def text(piece: str) -> run_pb2.RunEvent:
    """Return an event of text."""
    return run_pb2.RunEvent(text_delta=run_pb2.TextDelta(text=piece))


def finished(reason: str = "stop") -> run_pb2.RunEvent:
    """Return the last event of a run."""
    end = run_pb2.RunFinished(agent="chat", model="m", usage=USAGE, finish_reason=reason)
    return run_pb2.RunEvent(finished=end)


async def streamed(
    clock: ManualClock, *events: run_pb2.RunEvent, include_usage: bool = False
) -> list[dict[str, Any]]:
    """Return the chunks of a stream that ends as it should."""

    async def responses() -> AsyncGenerator[run_pb2.RunEvent, None]:
        for event in events:
            yield event

    chunks = Chunks("auto", inbound(), clock, include_usage=include_usage)
    written = b"".join([part async for part in chunks.of(responses())])
    assert written.endswith(DONE)
    lines = written.removesuffix(DONE).decode().split("\n\n")[:-1]
    return [orjson.loads(line.removeprefix("data: ")) for line in lines]


def deltas(chunks: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what the chunks add, and hold each to what OpenAI's client takes for a chunk."""
    for chunk in chunks:
        ChatCompletionChunk.model_validate(chunk, strict=True)
    return [choice["delta"] for chunk in chunks for choice in chunk["choices"]]


async def test_a_stream_begins_with_who_speaks_and_ends_with_why(clock: ManualClock) -> None:
    chunks = await streamed(clock, text("Hel"), text("lo"), finished())

    assert deltas(chunks) == [{"role": "assistant", "content": "Hel"}, {"content": "lo"}, {}]
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None, None, "stop"]
    assert [chunk["model"] for chunk in chunks] == ["auto", "auto", "m"]
    assert {chunk["id"] for chunk in chunks} == {"chatcmpl-r"}
    assert "usage" not in chunks[-1]
    assert chunks[-1]["sixhop"]["agent"] == "chat"


async def test_tool_calls_come_whole_and_are_counted(clock: ManualClock) -> None:
    events = [run_pb2.RunEvent(tool_call=call) for call in (CALL, OTHER)]
    chunks = await streamed(clock, *events, finished("tool_calls"))

    assert deltas(chunks) == [
        {
            "role": "assistant",
            "tool_calls": [
                {
                    "index": 0,
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "weather", "arguments": '{"city": "Rome"}'},
                }
            ],
        },
        {
            "tool_calls": [
                {
                    "index": 1,
                    "id": "c2",
                    "type": "function",
                    "function": {"name": "time", "arguments": "{}"},
                }
            ]
        },
        {},
    ]
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"


async def test_usage_comes_last_and_alone_where_it_is_asked_for(clock: ManualClock) -> None:
    chunks = await streamed(clock, text("x"), finished("length"), include_usage=True)

    deltas(chunks)
    assert [chunk["usage"] for chunk in chunks[:-1]] == [None, None]
    assert chunks[-2]["choices"][0]["finish_reason"] == "length"
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"] == {
        "prompt_tokens": 3,
        "completion_tokens": 4,
        "total_tokens": 7,
        "estimated": False,
    }


async def test_fallbacks_are_told_at_the_end(clock: ManualClock) -> None:
    chunks = await streamed(clock, run_pb2.RunEvent(degraded=LESSER), text("x"), finished())

    assert [each["mechanism"] for each in chunks[-1]["sixhop"]["degraded"]] == ["backup"]


async def test_events_that_are_nobodys_business_make_no_chunks(clock: ManualClock) -> None:
    thinking = run_pb2.RunEvent(thinking=run_pb2.Thinking(state="silent"))
    routed = run_pb2.RunEvent(routed=run_pb2.RunRouted(agent="chat"))

    assert len(await streamed(clock, routed, thinking, text("x"), thinking, finished())) == 2


@pytest.mark.parametrize("sent", [text("x"), run_pb2.RunEvent(tool_call=CALL)])
@requirement("http:never-two-texts")
async def test_text_that_is_begun_anew_never_follows_what_was_sent(
    clock: ManualClock, sent: run_pb2.RunEvent
) -> None:
    again = run_pb2.RunEvent(restarted=run_pb2.Restarted(reason="r"))

    with pytest.raises(DependencyFailedError, match="cannot be taken back"):
        await streamed(clock, sent, again, text("y"), finished())
    # What nobody has seen may be begun anew.
    chunks = await streamed(clock, again, text("y"), finished())
    assert deltas(chunks)[0]["content"] == "y"


def test_a_whole_answer_is_a_completion(clock: ManualClock) -> None:
    answer = gateway_pb2.AskResponse(
        run_id="r",
        text="Hello",
        agent="chat",
        model="m",
        usage=USAGE,
        degradations=[LESSER],
        finish_reason="length",
    )

    written = completion(answer, inbound(), clock)

    ChatCompletion.model_validate(written, strict=True)
    assert written["choices"][0]["message"] == {
        "role": "assistant",
        "content": "Hello",
        "refusal": None,
    }
    assert written["choices"][0]["finish_reason"] == "length"
    assert written["usage"]["total_tokens"] == 7
    assert [each["mechanism"] for each in written["sixhop"]["degraded"]] == ["backup"]


def test_an_answer_of_tool_calls_alone_has_no_content(clock: ManualClock) -> None:
    answer = gateway_pb2.AskResponse(
        run_id="r", tool_calls=[CALL, OTHER], finish_reason="tool_calls"
    )

    written = completion(answer, inbound(), clock)

    ChatCompletion.model_validate(written, strict=True)
    message = written["choices"][0]["message"]
    assert message["content"] is None
    assert [call["id"] for call in message["tool_calls"]] == ["c1", "c2"]


def test_an_agent_that_says_nothing_of_its_end_has_come_to_it(clock: ManualClock) -> None:
    written = completion(gateway_pb2.AskResponse(text="x"), inbound(), clock)

    assert written["choices"][0]["finish_reason"] == "stop"
