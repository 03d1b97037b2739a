"""Holds what people are told of lesser parts to their language, and to naming how old they are."""

import pytest

from gateway.cli.degraded import degraded_text, part_text
from gateway.cli.events import Degraded

OLD = Degraded("cache", "numbers", "sql is away", 42.4, "CIRCUIT_OPEN")


@pytest.mark.parametrize(
    ("degraded", "english", "chinese"),
    [
        (
            OLD,
            "degraded: numbers by an earlier answer, 42 s old, because sql is away",
            "已降级：数据使用了之前的结果（42 秒前），原因：sql is away",
        ),
        (
            Degraded("skip", "pdf", "no time"),
            "degraded: pdf left out, because no time",
            "已降级：缺少PDF 报告，原因：no time",
        ),
        (
            Degraded("template", "prose", "slow"),
            "degraded: prose by a template, because slow",
            "已降级：文字使用了模板，原因：slow",
        ),
        # A newer suite may have words that this client has not.
        (
            Degraded("magic", "lamp", "rubbed"),
            "degraded: lamp by magic, because rubbed",
            "已降级：lamp使用了magic，原因：rubbed",
        ),
    ],
)
def test_a_lesser_part_is_told_in_the_language_of_the_question(
    degraded: Degraded, english: str, chinese: str
) -> None:
    assert degraded_text(degraded, "en") == english
    assert degraded_text(degraded, "zh") == chinese


@pytest.mark.parametrize(
    ("age_s", "told"), [(0.4, "0 s old"), (119.0, "119 s old"), (600.0, "10 min old"), (9e3, "2 h")]
)
def test_an_age_is_told_in_the_unit_that_people_would_take(age_s: float, told: str) -> None:
    assert told in degraded_text(Degraded("cache", "numbers", "away", age_s), "en")


def test_a_part_is_called_by_its_name_in_english() -> None:
    assert (part_text("chart", "en"), part_text("chart", "zh")) == ("chart", "图表")
