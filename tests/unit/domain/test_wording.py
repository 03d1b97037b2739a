"""Holds what a run says of its own lacks to the language of the run."""

import re

import pytest

from services.domain import wording
from services.runtime.call import Degradation, Fallback

CHINESE = re.compile("[\u4e00-\u9fff]")


def given(reason: str, message: str = "it broke", age_s: float = 0.0) -> Degradation:
    """Return what a driver tells."""
    return Degradation(mechanism=Fallback.CACHE, reason=reason, message=message, age_s=age_s)


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("CIRCUIT_OPEN", "sql is unavailable now: it failed or was slow too often"),
        ("BULKHEAD_FULL", "sql has too much to do now"),
        ("DEPENDENCY_OVERLOADED", "sql has too much to do now"),
        ("DEPENDENCY_FAILED", "it broke"),
    ],
)
def test_a_reason_is_told_in_words_and_an_error_in_its_own(reason: str, told: str) -> None:
    assert wording.why("sql", given(reason), "en") == told
    assert CHINESE.search(wording.why("sql", given(reason), "zh"))


def test_a_tool_that_cannot_be_used_says_when_it_is_tried_again_if_that_is_known() -> None:
    assert wording.unavailable("sql", None, "en") == wording.why("sql", given("CIRCUIT_OPEN"), "en")
    assert wording.unavailable("sql", 11.2, "en").endswith("; it is tried again in 12 s")
    assert wording.unavailable("sql", 11.2, "zh").endswith("12 秒后会再次尝试")


def test_braces_in_an_error_mean_nothing() -> None:
    assert wording.why("sql", given("DEPENDENCY_FAILED", "got {x}"), "en") == "got {x}"


@pytest.mark.parametrize(
    ("age_s", "english", "chinese"),
    [
        (0.2, "0 s old", "0 秒前"),
        (42.0, "42 s old", "42 秒前"),
        (150.0, "2 min old", "2 分钟前"),
        (86_400.0, "24 h old", "24 小时前"),
    ],
)
def test_an_age_is_told_in_its_unit(age_s: float, english: str, chinese: str) -> None:
    assert wording.age_text(age_s, "en") == english
    assert wording.age_text(age_s, "zh") == chinese


def test_a_text_made_of_earlier_answers_says_how_old_the_oldest_is() -> None:
    assert wording.stale_note([3.0, 42.0, 7.0], "en").endswith("earlier results, up to 42 s old.")
    assert "42 秒前" in wording.stale_note([42.0], "zh")
    assert wording.stale_note([], "en") == ""


def test_a_model_is_told_which_tools_it_cannot_count_on() -> None:
    assert wording.prompt_note(["sql", "pdf"], "en").startswith(
        "These tools cannot be used right now: pdf, sql."
    )
    assert "pdf, sql" in wording.prompt_note({"sql", "pdf"}, "zh")
    assert wording.prompt_note([], "en") == ""
