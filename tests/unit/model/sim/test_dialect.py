"""Shows what the simulator says to which request."""

from typing import Any

import orjson
import pytest

from services.model.sim.asking import Ask, BadRequestError, read_ask
from services.model.sim.config import SimSettings
from services.model.sim.dialect import Composition, PromptCache, compose, error_body, overflow
from services.model.sim.faults import Fault
from services.model.sim.wording import count_tokens

LOOK_UP = {
    "type": "function",
    "function": {
        "name": "look_up",
        "parameters": {
            "type": "object",
            "properties": {
                "region": {"type": "string", "enum": ["north", "south"]},
                "count": {"type": "integer", "minimum": 3},
                "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}},
            },
            "$defs": {"tag": {"anyOf": [{"type": "boolean"}, {"type": "null"}]}},
        },
    },
}
SUM = {"type": "function", "function": {"name": "sum_up"}}


def ask(text: str = "What now?", **more: Any) -> Ask:
    messages = more.pop("messages", [{"role": "user", "content": text}])
    return read_ask(orjson.dumps({"model": "m", "messages": messages, **more}))


def answered(asked: Ask, **knobs: Any) -> Composition:
    settings = SimSettings(answer="one two three four", reasoning_tokens=2)
    return compose(asked, Fault(**knobs), settings, 0)


def text_of(composition: Composition) -> str:
    return str(composition.message(len(composition.deltas))["content"])


def test_the_same_question_gets_the_same_words_from_every_simulator_with_the_seed() -> None:
    settings = SimSettings(seed=3)
    long = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What now?"}]

    first = compose(ask(), Fault(), settings, 0)
    second = compose(ask(messages=long), Fault(), settings, 0)
    other = compose(ask(), Fault(), SimSettings(seed=4), 0)

    assert text_of(first) == text_of(second)
    assert text_of(first) != text_of(other)
    assert len(first.deltas) == settings.answer_tokens


def test_a_chinese_question_gets_chinese_words() -> None:
    assert not text_of(compose(ask("你好吗？"), Fault(), SimSettings(), 0)).isascii()


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_an_answer_is_cut_where_its_limit_says_so(name: str) -> None:
    limits: dict[str, Any] = {name: 2}
    cut = answered(ask(**limits))

    assert (text_of(cut), cut.finish_reason) == ("one two", "length")


@pytest.mark.parametrize("stop", ["three", ["nine", "three"]])
def test_an_answer_ends_before_its_stop_text(stop: object) -> None:
    stopped = answered(ask(stop=stop))

    assert (text_of(stopped), stopped.finish_reason) == ("one two ", "stop")


def test_reasoning_comes_first_where_it_is_asked_for() -> None:
    thought = answered(ask(thinking={"type": "enabled"}))

    assert ["reasoning_content" in delta for delta in thought.deltas] == [True] * 2 + [False] * 4
    assert thought.usage(6)["completion_tokens_details"] == {"reasoning_tokens": 2}
    assert "reasoning_content" not in answered(ask()).message(4)


def test_a_prefix_that_begins_the_answer_is_continued() -> None:
    messages = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "one two"}]

    assert text_of(answered(ask(messages=messages))) == " three four"


def test_a_tool_is_called_when_the_question_names_it() -> None:
    called = answered(ask("Please look_up it", tools=[SUM, LOOK_UP]))
    message = called.message(len(called.deltas))

    assert called.finish_reason == "tool_calls"
    [call] = message["tool_calls"]
    assert call["function"]["name"] == "look_up"
    arguments = orjson.loads(call["function"]["arguments"])
    assert arguments == {"region": "north", "count": 3, "tags": [True]}
    assert all("tool_calls" in delta for delta in called.deltas)


def test_two_tools_are_called_by_their_index() -> None:
    called = answered(ask("look_up, then sum_up", tools=[SUM, LOOK_UP]))

    indices = [delta["tool_calls"][0]["index"] for delta in called.deltas]
    assert indices == sorted(indices)
    assert set(indices) == {0, 1}


@pytest.mark.parametrize(
    ("choice", "name"),
    [
        ("required", "sum_up"),
        ("none", ""),
        ("auto", ""),
        ({"type": "function", "function": {"name": "look_up"}}, "look_up"),
    ],
)
def test_the_choice_of_a_tool_is_heard(choice: object, name: str) -> None:
    called = answered(ask("x", tools=[SUM, LOOK_UP], tool_choice=choice))
    calls = called.message(len(called.deltas)).get("tool_calls", [])

    assert [call["function"]["name"] for call in calls] == ([name] if name else [])


def test_broken_arguments_are_no_json() -> None:
    called = answered(ask("look_up", tools=[LOOK_UP]), bad_arguments=True)
    [call] = called.message(len(called.deltas))["tool_calls"]

    with pytest.raises(orjson.JSONDecodeError):
        orjson.loads(call["function"]["arguments"])


def test_a_schema_is_followed() -> None:
    form = {"type": "json_schema", "json_schema": {"schema": LOOK_UP["function"]["parameters"]}}  # type: ignore[index]

    assert orjson.loads(text_of(answered(ask(response_format=form))))["region"] == "north"
    assert orjson.loads(text_of(answered(ask(response_format={"type": "json_object"}))))


def test_a_prompt_that_begins_as_an_earlier_one_is_partly_cached() -> None:
    cache = PromptCache()
    history = [{"role": "system", "content": "rule " * 200}]
    first = ask(messages=[*history, {"role": "user", "content": "a"}])
    second = ask(messages=[*history, {"role": "user", "content": "b"}])

    assert cache.take(first) == 0
    assert cache.take(second) == 192
    usage = compose(second, Fault(), SimSettings(), 192).usage(5)
    assert (
        usage["prompt_cache_hit_tokens"] + usage["prompt_cache_miss_tokens"]
        == (usage["prompt_tokens"])
    )


def test_an_overflow_is_told_as_each_provider_tells_it() -> None:
    asked = ask("word " * 50, max_tokens=10)

    openai = overflow("openai", asked, 20).body["error"]
    deepseek = overflow("deepseek", asked, 20).body["error"]
    llamacpp = overflow("llamacpp", asked, 20).body["error"]

    assert openai["code"] == "context_length_exceeded"
    assert "maximum context length is 20 tokens" in deepseek["message"]
    assert llamacpp["type"] == "exceed_context_size_error"
    assert (llamacpp["n_prompt_tokens"], llamacpp["n_ctx"]) == (54, 20)


def test_a_refusal_has_the_type_of_its_status() -> None:
    assert error_body("openai", 429, "slow down")["error"]["type"] == "rate_limit_error"
    assert error_body("llamacpp", 401, "no")["error"] == {
        "code": 401,
        "message": "no",
        "type": "authentication_error",
    }


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"{", "no JSON"),
        (b"[]", "an object"),
        (b'{"model": "m"}', "messages"),
        (b'{"model": "m", "messages": []}', "messages"),
        (b'{"model": "m", "messages": ["x"]}', r"messages\[0\]"),
        (b'{"model": "m", "messages": [{"role": "king"}]}', "role"),
        (b'{"messages": [{"role": "user", "content": "x"}]}', "model"),
        (b'{"model": "m", "messages": [{"role": "user"}], "max_tokens": 0}', "max_tokens"),
        (b'{"model": "m", "messages": [{"role": "user"}], "n": 2}', "n must be 1"),
        (b'{"model": "m", "messages": [{"role": "user"}], "tools": [1]}', "tools"),
    ],
)
def test_a_request_that_cannot_be_answered_is_refused(body: bytes, said: str) -> None:
    with pytest.raises(BadRequestError, match=said):
        read_ask(body)


def test_content_in_parts_is_read_as_text() -> None:
    parts = [{"type": "text", "text": "Hello "}, {"type": "text", "text": "you"}]

    assert ask(messages=[{"role": "user", "content": parts}]).question == "Hello you"


def test_tokens_are_counted_close_to_what_vocabularies_do() -> None:
    assert count_tokens("The order 1043 arrives.") == 7
    assert count_tokens("订单号") == 3


def test_a_digest_is_the_questions_and_not_the_limits() -> None:
    assert ask(max_tokens=5).digest() == ask(max_tokens=9, stream=True).digest()
    assert ask("x").digest() != ask("y").digest()


def test_reasoning_that_did_not_come_back_is_seen() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    lost = {"role": "assistant", "content": None, "tool_calls": [call]}
    user = {"role": "user", "content": "x"}

    assert ask(messages=[user, lost]).lacks_reasoning()
    assert not ask(messages=[user, {**lost, "reasoning_content": ""}]).lacks_reasoning()
