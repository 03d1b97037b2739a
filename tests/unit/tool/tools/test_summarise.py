"""Tests what the model is asked and what counts as its answer."""

import pytest

from services.runtime.errors import DependencyFailedError
from services.runtime.generation import Generation
from services.runtime.switch import Switch
from services.tool.tools.summarise import TOOL, SummariseArguments, max_output_tokens, messages
from tests.requirements import requirement
from tests.unit.tool.conftest import MakeContext, ScriptedModel

ENGLISH = SummariseArguments(instruction="Say what grew.", text="Electronics: +48.9 %.")
CHINESE = SummariseArguments(
    instruction="说明增长情况。", text="电子产品增长48.9%。", language="zh"
)


async def test_the_models_text_comes_back_with_its_name(
    make_context: MakeContext, model: ScriptedModel
) -> None:
    result = await TOOL.run(ENGLISH, make_context())

    assert result.data == {
        "text": "Electronics grew most.",
        "model": "tiny",
        "finish_reason": "stop",
        "input_tokens": 40,
        "output_tokens": 6,
    }
    ((_, asked_tokens),) = model.asked
    assert asked_tokens == max_output_tokens(ENGLISH)


@requirement("failover:six-hops")
async def test_a_text_of_the_model_that_stands_in_says_so_and_why(
    make_context: MakeContext, model: ScriptedModel
) -> None:
    told = {"problem": "it is sick", "error_reason": "ABORTED", "origin_reason": "CIRCUIT_OPEN"}
    model.answer.switch = Switch(model="small", **told)  # type: ignore[arg-type]

    result = await TOOL.run(ENGLISH, make_context())

    assert result.data["backup"] == told


async def test_a_text_that_was_cut_says_so(make_context: MakeContext, model: ScriptedModel) -> None:
    model.answer.finish_reason = "length"

    assert (await TOOL.run(ENGLISH, make_context())).data["finish_reason"] == "length"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Generation(text="Half a sen", model="tiny", finish_reason=""), "TRUNCATED"),
        (Generation(text="  \n", model="tiny", finish_reason="stop"), "EMPTY"),
        (Generation(text="", model="tiny", finish_reason="length"), "EMPTY"),
    ],
)
async def test_an_answer_without_text_or_end_is_an_error(
    make_context: MakeContext, model: ScriptedModel, answer: Generation, reason: str
) -> None:
    model.answer = answer

    with pytest.raises(DependencyFailedError) as failed:
        await TOOL.run(ENGLISH, make_context())

    assert failed.value.origin is not None
    assert failed.value.origin.reason == reason


@pytest.mark.parametrize("arguments", [ENGLISH, CHINESE])
def test_the_prompt_is_short_and_holds_rules_task_and_text(arguments: SummariseArguments) -> None:
    system, user = messages(arguments)

    assert (system.role, user.role) == ("system", "user")
    assert str(arguments.max_words) in system.content
    assert arguments.instruction in user.content
    assert arguments.text in user.content
    # Two hundred tokens are about 800 English letters or 200 Chinese characters.
    assert len(system.content) < (400 if arguments.language == "en" else 120)


def test_braces_in_the_text_are_only_text() -> None:
    arguments = SummariseArguments(instruction="{text}", text="{instruction} {x}")

    assert messages(arguments)[1].content == "{text}\n\nText:\n{instruction} {x}"


def test_chinese_gets_more_tokens_than_english() -> None:
    assert max_output_tokens(CHINESE) > max_output_tokens(ENGLISH)
