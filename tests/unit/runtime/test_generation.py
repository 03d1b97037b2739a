"""Holds a generation to being complete or an error."""

from collections.abc import AsyncIterator

import pytest

from services.runtime.conversation import ToolCall
from services.runtime.errors import DependencyFailedError
from services.runtime.generation import GenerationStream, Usage, _is_content
from services.runtime.output_limit import LimitedBy, OutputLimit
from sixhop.model.v1 import model_pb2
from sixhop.type.v1 import chat_pb2, usage_pb2
from tests.requirements import requirement


def text(words: str) -> model_pb2.GenerateResponse:
    """Return an event with text."""
    return model_pb2.GenerateResponse(text_delta=model_pb2.GeneratedText(text=words))


def finished(reason: str = "stop") -> model_pb2.GenerateResponse:
    """Return the last event."""
    usage = usage_pb2.Usage(input_token_count=3, output_token_count=5, estimated=True)
    return model_pb2.GenerateResponse(
        finished=model_pb2.GenerationFinished(model="m-1", finish_reason=reason, usage=usage)
    )


THINKING = model_pb2.GenerateResponse(thinking=model_pb2.GenerationWait(state="silent"))
REASONING = model_pb2.GenerateResponse(reasoning_delta=model_pb2.GeneratedText(text="hm"))
UNKNOWN = model_pb2.GenerateResponse(sequence=1)


async def stream(*events: model_pb2.GenerateResponse) -> AsyncIterator[model_pb2.GenerateResponse]:
    """Yield events as the model hop would."""
    for event in events:
        yield event


async def test_the_text_comes_piece_by_piece_and_the_result_is_whole() -> None:
    generation = GenerationStream(stream(text("one "), text("two"), finished("length")))

    pieces = [piece async for piece in generation]

    assert pieces == ["one ", "two"]
    assert generation.result.text == "one two"
    assert (generation.result.model, generation.result.finish_reason) == ("m-1", "length")
    assert generation.result.usage == Usage(3, 5, True)


@requirement("run:whose-limit")
async def test_where_a_text_was_cut_off_is_told_with_it() -> None:
    cut = finished("length")
    cut.finished.limit_token_count = 40
    cut.finished.limited_by = "time"
    generation = GenerationStream(stream(text("x"), cut))

    assert [piece async for piece in generation] == ["x"]
    assert generation.result.limit == OutputLimit(40, LimitedBy.TIME)


async def test_only_text_is_text() -> None:
    generation = GenerationStream(stream(THINKING, REASONING, UNKNOWN, text("x"), finished()))

    assert [piece async for piece in generation] == ["x"]


@requirement("run:never-truncated")
@pytest.mark.parametrize(
    "events", [[], [text("half an ans")], [text("x"), THINKING], [text("x"), finished("")]]
)
async def test_a_stream_that_ends_without_saying_so_is_an_error(
    events: list[model_pb2.GenerateResponse],
) -> None:
    generation = GenerationStream(stream(*events))

    with pytest.raises(DependencyFailedError) as caught:
        async for _ in generation:
            pass

    assert caught.value.cause == "truncated"
    assert caught.value.origin is not None
    assert (caught.value.origin.hop, caught.value.origin.reason) == ("model", "TRUNCATED")


@pytest.mark.parametrize(
    ("event", "content"),
    [(text("x"), True), (REASONING, True), (finished(), True), (THINKING, False), (UNKNOWN, False)],
)
def test_reasoning_is_progress_and_a_heartbeat_is_not(
    event: model_pb2.GenerateResponse, content: bool
) -> None:
    assert _is_content(event) is content


def test_an_estimate_in_a_sum_makes_the_sum_one() -> None:
    assert Usage(1, 2) + Usage(3, 4, True) == Usage(4, 6, True)
    assert Usage(1, 2) + Usage(3, 4) == Usage(4, 6, False)


@requirement("conversing:tools")
async def test_tool_calls_are_a_part_of_the_result_in_their_order() -> None:
    calls = [chat_pb2.ToolCall(id=each, name="look_up", arguments="{}") for each in "ba"]
    told = [model_pb2.GenerateResponse(tool_call=call) for call in calls]
    generation = GenerationStream(stream(text("So: "), *told, finished("tool_calls")))

    assert [words async for words in generation] == ["So: "]
    assert generation.result.tool_calls == tuple(ToolCall(each, "look_up", "{}") for each in "ba")
    assert generation.result.finish_reason == "tool_calls"
