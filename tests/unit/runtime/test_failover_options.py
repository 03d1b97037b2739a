"""Holds failing over to asking only a model that can do all that the caller wants."""

from dataclasses import replace

import pytest

from services.runtime.compression.tokens import ESTIMATE, TokenEstimate, estimate_offered_tokens
from services.runtime.conversation import Message, ToolOffer
from services.runtime.errors import DependencyFailedError, SixhopError
from services.runtime.generation import ModelCard
from services.runtime.generation_options import GenerationOptions, ResponseFormat
from services.runtime.policies.fallback import BackupConfig
from tests.requirements import requirement
from tests.unit.runtime.two_models import CARD, failed, pair

HALF = "word " * 20
LOOK_UP = ToolOffer("look_up", "Finds parcels.", "{}")
JSON = ResponseFormat(kind="json_object")
ROWS = ResponseFormat(kind="json_schema", name="rows", schema="{}")
WANTS = {
    "tools": GenerationOptions(tools=[LOOK_UP]),
    "strict_tools": GenerationOptions(tools=[replace(LOOK_UP, strict=True)]),
    "single_tool_call": GenerationOptions(tools=[LOOK_UP], single_tool_call=True),
    "seed": GenerationOptions(seed=0),
    "json_object": GenerationOptions(response_format=JSON),
    "json_schema": GenerationOptions(response_format=ROWS),
}
ABLE = replace(CARD, **dict.fromkeys(WANTS, True))  # type: ignore[arg-type]


@requirement("conversing:failover")
@pytest.mark.parametrize("ability", WANTS)
async def test_a_model_that_can_do_what_is_wanted_stands_in(ability: str) -> None:
    both = pair([failed()])
    both.backup.card = ABLE

    result = await both.write(options=WANTS[ability])

    assert result.model == "small"
    assert both.second.options == [replace(WANTS[ability], max_output_tokens=512)]


@requirement("conversing:failover")
@pytest.mark.parametrize("ability", WANTS)
@pytest.mark.parametrize("told", [True, False])
async def test_a_model_that_cannot_is_not_asked_and_the_first_ones_error_is_told(
    ability: str, told: bool
) -> None:
    error = failed()
    both = pair([error])
    both.backup.card = replace(ABLE, **{ability: False}) if told else None  # type: ignore[arg-type]

    with pytest.raises(SixhopError) as caught:
        await both.write(options=WANTS[ability])

    assert caught.value is error
    assert both.second.asked == []


@requirement("conversing:failover")
async def test_an_advice_to_ask_who_cannot_is_none() -> None:
    both = pair(["well"])

    result = await both.write(options=WANTS["tools"], prefers_backup=True)

    assert result.model == "big"
    assert both.second.asked == []


@requirement("conversing:failover")
@pytest.mark.parametrize(
    "options",
    [
        GenerationOptions(response_format=JSON),
        GenerationOptions(tools=[LOOK_UP], tool_choice="required"),
        GenerationOptions(tools=[LOOK_UP], tool_choice="look_up"),
    ],
)
async def test_what_is_held_to_a_form_from_its_beginning_is_not_gone_on_from(
    options: GenerationOptions,
) -> None:
    both = pair(["half", failed("CONNECTION_LOST")])
    both.backup.card = replace(ABLE, prefill=True)

    with pytest.raises(DependencyFailedError) as caught:
        await both.write(options=options, live=True)

    assert caught.value.cause == "cut"
    assert both.second.asked == []


@requirement("conversing:failover")
async def test_free_text_is_gone_on_from_with_the_tools_beside_it() -> None:
    both = pair(["half", failed("CONNECTION_LOST")])
    both.backup.card = replace(ABLE, prefill=True)

    await both.write(options=WANTS["tools"], live=True)

    assert both.second.continued == [True]
    assert both.second.options[0].tools == [LOOK_UP]


@requirement("conversing:length")
async def test_both_halves_together_are_no_longer_than_the_caller_wants() -> None:
    both = pair([HALF, failed("CONNECTION_LOST")])
    both.backup.card = replace(CARD, prefill=True)
    written = TokenEstimate()
    written.add(HALF)

    await both.write(options=GenerationOptions(max_output_tokens=100), live=True)

    (options,) = both.second.options
    assert options.max_output_tokens == 100 - written.count < 100


@requirement("conversing:length")
async def test_a_text_that_is_as_long_as_it_may_be_is_not_gone_on_from() -> None:
    both = pair([HALF, failed("CONNECTION_LOST")])
    both.backup.card = replace(CARD, prefill=True)

    with pytest.raises(DependencyFailedError) as caught:
        await both.write(options=GenerationOptions(max_output_tokens=9), live=True)

    assert caught.value.cause == "cut"


async def test_tools_take_their_room_in_the_window() -> None:
    both = pair([])
    both.backup.card = ModelCard(
        name="small", window_tokens=4096, max_output_tokens=512, tools=True
    )
    talk: list[Message] = []
    while ESTIMATE.count(talk).count < 3000:
        talk += [Message("user", "word " * 100), Message("assistant", "word " * 100)]
    tools = [replace(LOOK_UP, description="finds " * 1000)]

    alone, beside = [
        await both.backup.fit(talk, BackupConfig(), left_s=20.0, options=options)
        for options in (GenerationOptions(), GenerationOptions(tools=tools))
    ]

    assert not alone.compression
    assert beside.compression
    read = ESTIMATE.count(beside.messages).count + estimate_offered_tokens(tools)
    assert read <= 4096 - 512
