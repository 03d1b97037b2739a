"""Collects what survives of the rounds that are left out."""

from collections.abc import Iterator

import pytest

from services.runtime.compression import kept
from services.runtime.compression.kept import (
    MAX_CHARACTERS,
    MAX_PASSAGES,
    MAX_PER_MESSAGE,
    Passage,
    collect,
    one_line,
)
from services.runtime.compression.patterns import Span, find
from services.runtime.compression.rounds import Round
from services.runtime.conversation import Message, ToolCall


def of(*contents: str) -> tuple[Passage, ...]:
    """Return what is kept of rounds in which only a user speaks."""
    return collect([Round((Message("user", content),)) for content in contents])


def test_a_value_stands_with_the_words_around_it() -> None:
    (passage,) = of("First of all. We sold about 42 units in spring, and so on.")

    assert passage == Passage(("42 units",), "We sold about 42 units in spring")


def test_values_told_in_one_breath_are_one_passage() -> None:
    (passage,) = of("Refund order ORD-7 for Alice Chen: €40.")

    assert passage.values == ("ORD-7", "Alice Chen", "€40")
    assert passage.text == "Refund order ORD-7 for Alice Chen: €40"


def test_the_newest_comes_first_and_nothing_twice() -> None:
    passages = of("It cost €40.", "It cost €50.", "It cost €40.")

    assert [passage.values for passage in passages] == [("€40",), ("€50",)]


def test_a_passage_is_one_line_without_hidden_characters() -> None:
    (passage,) = of("order\u202e\x00 ORD-7 \t was\u200b sent")

    assert passage.text == "order ORD-7 was sent"
    assert one_line("a\n\nb\u2028c") == "a b c"


def test_the_arguments_of_tool_calls_count_too() -> None:
    call = ToolCall("a", "lookup", '{"order": "ORD-7"}')

    passages = collect([Round((Message("user", "x"), Message("assistant", "", (call,))))])

    assert [passage.values for passage in passages] == [("ORD-7",)]


def test_chinese_values_have_a_few_characters_around_them() -> None:
    (passage,) = of("您好。2026年3月订单号A-1001退款50元，谢谢")

    assert passage.values == ("2026年3月", "A-1001", "50元")
    assert passage.text == "2026年3月订单号A-1001退款50元"


def test_the_names_of_people_and_places_are_kept_of_chinese_text() -> None:
    pytest.importorskip("rjieba")

    (passage,) = of("陈爱丽在深圳工厂")

    assert passage.values == ("陈爱丽", "深圳")


def test_one_table_does_not_displace_everything() -> None:
    table = "\n".join(f"row {index}.5" for index in range(10, 500))

    passages = of("Order ORD-7.", table + "\nORD-8")

    values = [value for passage in passages for value in passage.values]
    assert len(values) == MAX_PER_MESSAGE + 1
    assert "ORD-8" in values
    assert "ORD-7" in values


def test_what_is_kept_has_an_end() -> None:
    passages = of(*(f"It cost €{index}.25." for index in range(2 * MAX_PASSAGES)))

    assert len(passages) == MAX_PASSAGES
    assert passages[0].values == (f"€{2 * MAX_PASSAGES - 1}.25",)


def test_only_so_much_text_is_looked_through_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []

    def watched(text: str, *, data: bool) -> Iterator[Span]:
        looked.append(text)
        return find(text, data=data)

    monkeypatch.setattr(kept, "find", watched)

    of(*("x " * 60_000 for _ in range(20)))

    assert sum(map(len, looked)) == MAX_CHARACTERS
