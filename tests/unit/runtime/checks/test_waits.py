"""Holds the rules of waits to finding what cannot hold, and to a fix that works."""

import pytest

from services.runtime.checks.finding import Severity
from tests.unit.runtime.checks.configuring import found, violated

CONTRADICTIONS = [
    (
        "default-deadline",
        {"DEADLINE__DEFAULT_DEADLINE_S": "200"},
        ("200 s", "120 s", "lower the first"),
        {"DEADLINE__DEFAULT_DEADLINE_S": "120"},
    ),
    (
        "useful-time",
        {"CALLS__TOOL__MIN_USEFUL_S": "30"},
        ("domain → tool: calls.tool.min_useful_s 30 s", "step_timeout_s 20 s", "ever be sent"),
        {"CALLS__TOOL__MIN_USEFUL_S": "10"},
    ),
    (
        "useful-time",
        {"CALLS__MODEL__MIN_USEFUL_S": "7"},
        ("calls.model.min_useful_s 7 s", "calls.model.first_content_timeout_s 6 s"),
        {"CALLS__MODEL__MIN_USEFUL_S": "5"},
    ),
    (
        "reaches-every-hop",
        {"CALLS__LLM__MIN_USEFUL_S": "0.5", "DEADLINE__DEFAULT_DEADLINE_S": "1"},
        ("gateway → routing → domain → tool → model → llm", "of 1 s only 0.24 s", "0.5 s"),
        {"CALLS__LLM__MIN_USEFUL_S": "0.1", "DEADLINE__DEFAULT_DEADLINE_S": "1"},
    ),
    (
        "step-fits",
        {"CALLS__MODEL__STEP_TIMEOUT_S": "25"},
        ("domain → tool → model: calls.model.step_timeout_s 25 s", "calls.tool.step_timeout_s 20"),
        {"CALLS__MODEL__STEP_TIMEOUT_S": "20"},
    ),
    (
        "step-fits",
        {"CALLS__LLM__STEP_TIMEOUT_S": "6"},
        ("domain → model → llm: calls.llm.step_timeout_s 6 s", "first_content_timeout_s 6 s"),
        {"CALLS__LLM__STEP_TIMEOUT_S": "5.9"},
    ),
    (
        "heartbeats",
        {"CALLS__DOMAIN__READ_TIMEOUT_S": "2"},
        ("routing → domain: calls.domain.read_timeout_s 2 s", "1 s", "at least 3 s"),
        {"CALLS__DOMAIN__READ_TIMEOUT_S": "3"},
    ),
    (
        "heartbeats",
        {"CALLS__DOMAIN__STEP_TIMEOUT_S": "2.9"},
        ("routing → domain: calls.domain.step_timeout_s 2.9 s", "at least 3 s"),
        {"CALLS__DOMAIN__STEP_TIMEOUT_S": "3"},
    ),
    (
        "heartbeats",
        {"HEARTBEAT__INTERVAL_S": "2"},
        ("routing → domain: calls.domain.step_timeout_s 5 s", "heartbeats of 2 s", "least 6 s"),
        {"HEARTBEAT__INTERVAL_S": "1.6"},
    ),
    (
        "heartbeats",
        {"CALLS__MODEL__READ_TIMEOUT_S": "2", "CALLS__LLM__READ_TIMEOUT_S": "1"},
        ("tool → model: calls.model.read_timeout_s 2 s", "at least 3 s"),
        {"CALLS__MODEL__READ_TIMEOUT_S": "3", "CALLS__LLM__READ_TIMEOUT_S": "1"},
    ),
    (
        "backup-reserve",
        {"CALLS__MODEL__FIRST_CONTENT_TIMEOUT_S": "6.5"},
        ("domain → tool → model", "6.5 of 16.5 s", "leaves its backup 6.0 s", "lower it to 6.1 s"),
        {"CALLS__MODEL__FIRST_CONTENT_TIMEOUT_S": "6.1"},
    ),
]


@pytest.mark.parametrize(("rule", "settings", "words", "mended"), CONTRADICTIONS)
def test_a_contradiction_is_told_with_path_numbers_and_a_fix_that_works(
    rule: str, settings: dict[str, str], words: tuple[str, ...], mended: dict[str, str]
) -> None:
    told = found(rule, **settings)

    assert any(all(word in finding.text for word in words) for finding in told)
    assert {finding.severity for finding in told} == {Severity.VIOLATION}
    assert found(rule, **mended) == []


@pytest.mark.parametrize(
    ("settings", "words", "mended"),
    [
        (
            {"CALLS__TOOL__STEP_TIMEOUT_S": "12"},
            ("keeps tool for 6.0 of 11.9 s", "lower it to 4.4 s or give tool more time"),
            {"CALLS__TOOL__STEP_TIMEOUT_S": "12", "CALLS__MODEL__FIRST_CONTENT_TIMEOUT_S": "4.4"},
        ),
        (
            {"DEADLINE__DEFAULT_DEADLINE_S": "20"},
            ("keeps tool for 6.0 of 10.5 s", "leaves its backup 2.7 s"),
            {
                "DEADLINE__DEFAULT_DEADLINE_S": "20",
                "CALLS__MODEL__FIRST_CONTENT_TIMEOUT_S": "3.9",
            },
        ),
    ],
)
def test_a_backup_with_less_time_than_its_model_is_a_warning(
    settings: dict[str, str], words: tuple[str, ...], mended: dict[str, str]
) -> None:
    told = found("backup-as-long", **settings)

    assert any(all(word in finding.text for word in words) for finding in told)
    assert {finding.severity for finding in told} == {Severity.WARNING}
    assert found("backup-as-long", **mended) == []
    assert "backup-reserve" not in violated(**settings)


def test_a_provider_owes_nobody_heartbeats() -> None:
    assert violated(CALLS__LLM__READ_TIMEOUT_S="1") == set()


def test_a_silent_model_of_a_run_of_thirty_seconds_is_given_up_after_six() -> None:
    assert violated(DEADLINE__DEFAULT_DEADLINE_S="30") == set()
    assert violated(CALLS__MODEL__FIRST_CONTENT_TIMEOUT_S="6.2") == {"backup-reserve"}


def test_a_provider_may_pause_longer_than_callers_bear_silence_because_its_hop_is_not_silent() -> (
    None
):
    assert violated(CALLS__LLM__READ_TIMEOUT_S="20", CALLS__MODEL__READ_TIMEOUT_S="14") == set()
