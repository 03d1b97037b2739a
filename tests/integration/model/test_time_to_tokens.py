"""Asks a slow provider for more than the time allows, once the model hop knows how slow it is."""

import asyncio

import grpc
import pytest

from services.runtime.status import DETAILS_KEY, error_info
from sixhop.model.v1 import model_pb2
from sixhop.type.v1 import chat_pb2
from tests.integration.model.test_hop import Chain, chain
from tests.requirements import requirement

SLOW = "normal?token_count=1000&chunk_interval_s=0.05&obeys_max_tokens=1"
"""Writes twenty tokens a second, and fifty seconds if nobody asks for less."""
SYSTEM = chat_pb2.ChatMessage(role=chat_pb2.CHAT_ROLE_SYSTEM, content="Be kind.")
USER = chat_pb2.ChatMessage(role=chat_pb2.CHAT_ROLE_USER, content="Tell me all.")
DEADLINE_S = 8.0


async def generate(
    running: Chain, max_tokens: int, deadline_s: float
) -> model_pb2.GenerateResponse:
    """Return the last event of one generation."""
    request = model_pb2.GenerateRequest(messages=[SYSTEM, USER], max_output_tokens=max_tokens)
    events = [event async for event in running.stub.Generate(request, timeout=deadline_s)]
    return events[-1]


async def learn(running: Chain) -> None:
    """Let the hop see enough of the provider."""
    await asyncio.gather(*(generate(running, 20, 20.0) for _ in range(6)))


@requirement("time-to-tokens:fits", "time-to-tokens:asked-for-shorter")
async def test_a_slow_provider_with_a_short_deadline_ends_its_answer_and_is_not_cut() -> None:
    async with chain(SLOW) as running:
        await learn(running)

        last = await generate(running, 1000, DEADLINE_S)
        record = running.provider.log.records[-1]

    assert last.finished.finish_reason == "length"
    assert record.max_tokens is not None
    assert 16 <= record.max_tokens < DEADLINE_S / 0.05
    assert last.finished.usage.output_token_count == record.max_tokens
    assert (last.finished.limit_token_count, last.finished.limited_by) == (
        record.max_tokens,
        "time",
    )
    system, user = record.body["messages"]
    assert system["content"].startswith("Be kind.\n\nYou have about ")
    assert "Answer in at most " in system["content"]
    assert user["content"] == "Tell me all."


@requirement("time-to-tokens:fits")
async def test_a_time_in_which_the_provider_writes_no_sentence_is_refused_and_costs_nothing() -> (
    None
):
    async with chain(SLOW) as running:
        await learn(running)
        asked = len(running.provider.log.records)

        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await generate(running, 1000, 0.5)

        assert len(running.provider.log.records) == asked
    info = error_info(dict(caught.value.trailing_metadata() or ()).get(DETAILS_KEY))
    assert info is not None
    assert caught.value.code() is grpc.StatusCode.FAILED_PRECONDITION
    assert (info.reason, info.metadata["cause"]) == ("BUDGET_TOO_SMALL", "time_to_tokens")


@requirement("time-to-tokens:measured", "time-to-tokens:nothing-cut-without-knowledge")
async def test_the_description_tells_what_was_measured_and_nothing_before() -> None:
    request = model_pb2.DescribeModelRequest()
    async with chain(SLOW) as running:
        before = await running.stub.DescribeModel(request, timeout=5)
        await learn(running)
        after = await running.stub.DescribeModel(request, timeout=5)
        asked_for = {record.max_tokens for record in running.provider.log.records}

    assert not before.HasField("first_token_duration")
    assert before.tokens_per_second == 0
    assert asked_for == {20}
    # Half a second for ten tokens, and later on a busy machine, never sooner.
    assert 0 < after.tokens_per_second <= 22
    assert after.first_token_duration.ToTimedelta().total_seconds() > 0
