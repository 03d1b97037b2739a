"""Reads good answers of a provider over loopback."""

from dataclasses import replace

import pytest

from services.model.backend import Finish, Provider, Reasoning, Text
from services.runtime.call import CallLimits
from services.runtime.errors import DependencyFailedError
from services.runtime.generation import Usage
from tests.integration.model.calls import KEY, PROMPT, Answer, calling
from tests.provider.behaviour import Behaviour
from tests.requirements import requirement

TEXT = Behaviour().text
WHOLE = ["normal", "at-once", "no-done", "stall-after-finish", "close-after-finish"]


@requirement("model:no-finish-reason-no-success")
@pytest.mark.parametrize("behaviour", WHOLE)
async def test_a_whole_answer_arrives_with_its_finish_reason(behaviour: str) -> None:
    async with calling(behaviour) as caller:
        answer = await caller.ask()

    assert answer.text == TEXT
    assert answer.finish is not None
    assert answer.finish.finish_reason == "stop"
    assert answer.pieces[-1] is answer.finish


@requirement("model:no-finish-reason-no-success")
async def test_text_is_unicode_whatever_the_header_says() -> None:
    async with calling("wrong-charset") as caller:
        answer = await caller.ask()

    assert answer.text == "数据 é"


@requirement("model:no-finish-reason-no-success")
async def test_an_answer_cut_by_its_length_says_so() -> None:
    async with calling("length") as caller:
        answer = await caller.ask()

    assert answer.finish is not None
    assert answer.finish.finish_reason == "length"


@requirement("model:usage-is-true-or-marked")
@pytest.mark.parametrize(
    ("behaviour", "estimated"),
    [("normal", False), ("no-usage", True), ("stall-after-finish", True)],
)
async def test_usage_is_the_providers_or_marked_as_an_estimate(
    behaviour: str, estimated: bool
) -> None:
    async with calling(behaviour) as caller:
        answer = await caller.ask()

    assert answer.finish is not None
    usage = answer.finish.usage
    assert usage.estimated is estimated
    assert usage.input_token_count > 0
    assert usage.output_token_count > 0


@requirement("model:reasoning-is-progress")
async def test_reasoning_comes_apart_from_the_answer() -> None:
    async with calling("reasoning") as caller:
        answer = await caller.ask()

    assert answer.reasoning == "Hm. " * 5
    assert answer.text == TEXT


@requirement("model:pieces-are-joined")
async def test_what_arrives_together_is_one_event() -> None:
    async with calling("at-once?token_count=500") as caller:
        answer = await caller.ask()

    texts = [piece for piece in answer.pieces if isinstance(piece, Text)]
    assert len(answer.text.split(" ")) == 500
    assert len(texts) < 50


@requirement("model:pieces-are-joined")
async def test_pieces_follow_each_other_no_faster_than_the_settings_say() -> None:
    settings = Provider(base_url="", model="any", min_event_interval_s=60)
    limits = CallLimits(step_timeout_s=5, read_timeout_s=5)

    async with (
        calling("normal?chunk_interval_s=0.001", settings=settings, limits=limits) as caller,
        caller.streaming() as pieces,
    ):
        # The first is not held back, although the second would be for a minute.
        first = await anext(pieces)

    assert isinstance(first, Text)


@requirement("model:pieces-are-joined")
@pytest.mark.parametrize("behaviour", ["normal", "truncate", "reset"])
async def test_no_end_is_held_back_good_or_bad(behaviour: str) -> None:
    settings = Provider(base_url="", model="any", min_event_interval_s=60)
    answer = Answer()

    # The pieces between the first and the end gather; their minute would outlive the call.
    async with calling(f"{behaviour}?chunk_interval_s=0.001", settings=settings) as caller:
        if behaviour == "normal":
            await caller.ask(into=answer)
        else:
            with pytest.raises(DependencyFailedError) as caught:
                await caller.ask(into=answer)
            assert caught.value.origin is not None
            assert caught.value.origin.reason in ("TRUNCATED", "CONNECTION_LOST")

    texts = [piece for piece in answer.pieces if isinstance(piece, Text)]
    assert len(texts) == 2
    assert TEXT.startswith(answer.text)


@requirement("model:no-finish-reason-no-success")
async def test_a_whole_answer_is_whole_although_its_connection_broke_while_nobody_read() -> None:
    settings = Provider(base_url="", model="any", min_event_interval_s=0.3)
    behaviour = "close-after-finish?chunk_interval_s=0.005"

    async with calling(behaviour, settings=settings) as caller:
        answer = await caller.ask()

    assert answer.text == TEXT
    assert answer.finish is not None


@requirement("model:budget-travels")
async def test_the_provider_is_told_the_key_the_request_and_the_time_it_has() -> None:
    async with calling("normal") as caller:
        await caller.ask(deadline_s=10)
        record = caller.provider.log.records[0]

    assert record.headers["authorization"] == f"Bearer {KEY}"
    assert record.headers["x-request-id"] == "request-7"
    # The whole stream gets what is left but for the margin of one second.
    assert record.deadline_ms is not None
    assert 8000 <= record.deadline_ms <= 9000


@requirement("model:budget-travels")
async def test_the_request_is_what_the_prompt_says() -> None:
    settings = Provider(
        base_url="",
        model="wanted",
        extra_body={"thinking": {"type": "disabled"}, "stream_options": None, "stream": False},
    )

    async with calling("normal", settings=settings) as caller:
        await caller.ask(prompt=replace(PROMPT, temperature=0.5))
        body = caller.provider.log.records[0].body

    assert body == {
        "model": "wanted",
        "messages": [{"role": "user", "content": PROMPT.messages[0].content}],
        "max_tokens": 64,
        "temperature": 0.5,
        "thinking": {"type": "disabled"},
        "stream": True,
    }


@requirement("model:connections-are-reused")
async def test_a_connection_serves_the_next_answer_once_one_was_read_to_its_end() -> None:
    async with calling("at-once") as caller:
        for _ in range(3):
            await caller.ask()
        records = caller.provider.log.records

    assert [record.connection for record in records] == [1, 1, 1]


@requirement("model:connections-are-reused")
async def test_a_connection_that_was_left_in_the_middle_is_not_used_again() -> None:
    async with calling("normal") as caller:
        async with caller.streaming() as pieces:
            await anext(pieces)
        await caller.ask()
        records = caller.provider.log.records

    assert [record.connection for record in records] == [1, 2]


@requirement("model:no-finish-reason-no-success")
async def test_a_finish_names_the_model_that_the_provider_names() -> None:
    settings = Provider(base_url="", model="asked-for")

    async with calling("normal", settings=settings) as caller:
        answer = await caller.ask()

    assert answer.finish == Finish("asked-for", "stop", Usage(35, 10))
    assert not any(isinstance(piece, Reasoning) for piece in answer.pieces)
