"""Shows how faults are written, and how they are refused."""

import pytest

from services.model.sim.faults import Rule, UnknownFaultError, read_rule
from services.model.sim.vocabulary import FAULTS


def read(text: str | dict[str, object]) -> Rule:
    return read_rule(text, FAULTS)


@pytest.mark.parametrize("name", FAULTS)
def test_every_name_of_the_table_can_be_used(name: str) -> None:
    assert read(name).name == name


def test_knobs_after_a_question_mark_change_a_fault() -> None:
    rule = read("stall?at_token=7&keep_alive_s=0.5&p=0.25&model=deepseek-*")

    assert (rule.fault.ending, rule.fault.at_token, rule.fault.keep_alive_s) == ("stall", 7, 0.5)
    assert (rule.when.p, rule.when.model) == (0.25, "deepseek-*")


def test_faults_can_be_joined() -> None:
    fault = read("crlf+bom+reset?at_token=2").fault

    assert (fault.line_ending, fault.bom, fault.ending, fault.at_token) == (
        "crlf",
        True,
        "reset",
        2,
    )


def test_a_table_says_the_same_as_a_text() -> None:
    assert (
        read({"fault": "503", "retry_after_s": 2, "p": 0.5}).fault
        == read("503?retry_after_s=2&p=0.5").fault
    )


@pytest.mark.parametrize("word", ["1", "true", "yes", "on"])
def test_a_switch_is_on_by_any_of_its_words(word: str) -> None:
    assert read(f"429?retry_after_date={word}").fault.retry_after_date


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("stal", "did you mean stall"),
        ("stall?at_tokens=3", "did you mean at_token"),
        ("stall?at_token=many", "write a int"),
        ("stall?stage=middle", "write one of request"),
        ("error-event?stage=event", "write headers, token, finish or end"),
    ],
)
def test_what_cannot_be_read_is_refused_with_what_is_known(text: str, said: str) -> None:
    with pytest.raises(UnknownFaultError, match=said):
        read(text)
