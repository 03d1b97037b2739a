"""Joins fragments of tool calls in every order that providers send them."""

from typing import Any

import pytest

from services.model import tool_calls
from services.model.tool_calls import MAX_CALLS, ToolCallDeltas
from services.runtime.conversation import ToolCall
from services.runtime.errors import SixhopError

MISSING: Any = object()


def first(index: Any = 0, id: Any = "a", name: Any = "sql", arguments: Any = "") -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    made = {"index": index, "id": id, "type": "function", "function": function}
    return {key: value for key, value in made.items() if value is not MISSING}


def more(arguments: Any, index: Any = 0, **fields: Any) -> dict[str, Any]:
    made = {"index": index, "function": {"arguments": arguments}, **fields}
    return {key: value for key, value in made.items() if value is not MISSING}


def join(*deltas: Any, finish_reason: str = "tool_calls") -> list[ToolCall]:
    calls = ToolCallDeltas()
    for delta in deltas:
        calls.add([delta])
    return calls.whole(finish_reason)


def test_fragments_are_joined_and_arguments_are_not_altered() -> None:
    found = join(first(), more('{"q": '), more(' "数据\u2028" '), more("}"))

    assert found == [ToolCall("a", "sql", '{"q":  "数据\u2028" }')]


def test_interleaved_calls_are_told_apart_by_their_index() -> None:
    found = join(
        first(1, "b", "mail"), first(0, "a", "sql"), more("1", 1), more("2", 0), more("3", 1)
    )

    assert found == [ToolCall("a", "sql", "2"), ToolCall("b", "mail", "13")]


def test_several_calls_of_one_delta_are_all_taken() -> None:
    calls = ToolCallDeltas()

    added = calls.add([first(0, "a", "sql", "{}"), first(1, "b", "mail", "{}")])

    assert added == "sql{}mail{}"
    assert len(calls.whole("tool_calls")) == 2


def test_a_call_that_comes_whole_is_whole() -> None:
    assert join(first(arguments='{"q":1}')) == [ToolCall("a", "sql", '{"q":1}')]


@pytest.mark.parametrize("missing", [MISSING, None, ""])
def test_a_call_without_an_id_gets_one(missing: Any) -> None:
    found = join(first(0, missing), first(1, missing, "mail"))

    assert [call.id for call in found] == ["call_0", "call_1"]


def test_calls_without_an_index_are_told_apart_by_their_id() -> None:
    found = join(
        first(MISSING, "a"),
        more("1", MISSING),
        first(MISSING, "b", "mail"),
        more("2", MISSING),
        more("3", MISSING, id="a"),
    )

    assert found == [ToolCall("a", "sql", "13"), ToolCall("b", "mail", "2")]


def test_a_name_and_an_id_may_be_said_again() -> None:
    found = join(first(), first(arguments="{}"))

    assert found == [ToolCall("a", "sql", "{}")]


@pytest.mark.parametrize("arguments", ["", "no json", "{"])
def test_arguments_that_are_no_json_are_the_models_and_are_given(arguments: str) -> None:
    assert join(first(arguments=arguments))[0].arguments == arguments


@pytest.mark.parametrize(
    "delta",
    [
        "text",
        None,
        first("0"),
        first(0.0),
        first(True),
        first(-1),
        first(MAX_CALLS),
        first(id=7),
        first(name=7),
        first(arguments={"q": 1}),
        first() | {"type": "retrieval"},
        first() | {"type": 7},
        first() | {"function": "sql"},
    ],
    ids=repr,
)
def test_what_is_no_fragment_of_a_call_is_refused(delta: Any) -> None:
    with pytest.raises(SixhopError) as caught:
        join(delta)

    assert caught.value.cause == "bad_tool_call"


@pytest.mark.parametrize(
    "deltas",
    [
        [first(), first(name="mail")],
        [first(), first(id="b")],
        [more("{}")],
        [{"index": 0}],
    ],
    ids=["two names", "two ids", "no name", "nothing"],
)
def test_calls_that_cannot_be_told_apart_or_named_are_refused(deltas: list[Any]) -> None:
    with pytest.raises(SixhopError) as caught:
        join(*deltas)

    assert caught.value.cause == "bad_tool_call"


@pytest.mark.parametrize("deltas", [{}, "text", 7])
def test_calls_that_are_no_list_are_refused(deltas: Any) -> None:
    with pytest.raises(SixhopError):
        ToolCallDeltas().add(deltas)


def test_calls_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_calls, "MAX_BYTES", 10)

    with pytest.raises(SixhopError) as caught:
        join(first(), more("数据"), more("数"))

    assert caught.value.cause == "tool_calls_too_long"


def test_a_call_that_the_limit_has_cut_is_a_truncated_answer() -> None:
    with pytest.raises(SixhopError) as caught:
        join(first(), more('{"q": "ha'), finish_reason="length")

    assert caught.value.cause == "tool_call_cut"
    assert caught.value.origin is not None
    assert caught.value.origin.reason == "TRUNCATED"


def test_a_whole_call_before_the_limit_is_whole() -> None:
    assert join(first(arguments="{}"), finish_reason="length") == [ToolCall("a", "sql", "{}")]
