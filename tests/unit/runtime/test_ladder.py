"""Holds the start-up check to passing what can hold, and to refusing with every contradiction."""

from pathlib import Path

import pytest

from services.runtime.checks.finding import Severity
from services.runtime.config import ConfigError, load_config
from services.runtime.ladder import (
    RULES,
    UNCHECKED,
    check_ladder,
    findings,
    ladder_problems,
)
from tests.requirements import requirement
from tests.unit.runtime.checks.configuring import ENGINE, configured


@pytest.mark.parametrize("settings", [{}, ENGINE])
def test_the_defaults_hold_without_a_warning(settings: dict[str, str]) -> None:
    assert findings(configured(**settings)) == []
    check_ladder(configured(**settings))


@requirement("check:refuses-contradictions")
def test_all_contradictions_are_told_at_once() -> None:
    config = configured(CALLS__MODEL__STEP_TIMEOUT_S="25", CALLS__DOMAIN__READ_TIMEOUT_S="2")

    with pytest.raises(ConfigError) as caught:
        check_ladder(config)

    assert str(caught.value).split("\n") == ladder_problems(config)
    assert "does not fit" in str(caught.value)
    assert "three heartbeats" in str(caught.value)


def test_a_warning_refuses_nothing() -> None:
    config = configured(**ENGINE, BREAKER__OPEN_DURATION_S="2")

    assert [finding.severity for finding in findings(config)] == [Severity.WARNING]
    check_ladder(config)


@pytest.mark.parametrize("section", ["shed", "fallback", "self_ejection", "retry", "limit"])
def test_an_unknown_key_of_a_policy_is_refused_even_while_the_engine_is_off(
    section: str, tmp_path: Path
) -> None:
    file = tmp_path / "sixhop.toml"
    file.write_text(f"[{section}]\nmodus = 1\n", encoding="utf-8")

    with pytest.raises(ConfigError, match=rf"\[{section}\] modus \(SIXHOP_.*\) is not a setting"):
        check_ladder(load_config(file, {}))


def test_every_rule_has_a_name_of_its_own() -> None:
    names = [rule.name for rule in RULES]

    assert len(set(names)) == len(names)
    assert all(rule.holds and not rule.holds.endswith(".") for rule in RULES)


STATIC = {"DEADLINE__MODE": "static"}


def test_with_static_deadlines_everything_is_told_and_nothing_binds() -> None:
    config = configured(**STATIC, CALLS__MODEL__STEP_TIMEOUT_S="25")

    found = findings(config)

    assert {finding.severity for finding in found} == {Severity.WARNING}
    assert found[0] == UNCHECKED
    assert any("calls.model.step_timeout_s 25 s" in finding.text for finding in found)
    check_ladder(config)


def test_static_timeouts_are_compared_with_all_attempts_that_must_fit_into_them() -> None:
    settings = ENGINE | STATIC | {"RETRY__MODE": "blind", "RETRY__MAX_ATTEMPTS": "4"}

    texts = [finding.text for finding in findings(configured(**settings))]

    assert any(
        "domain → tool → model: 4 attempts of calls.model.step_timeout_s 10 s are 40 s" in text
        for text in texts
    )


def test_retries_that_are_blind_or_off_and_breakers_that_refuse_nobody_break_no_rule() -> None:
    for settings in (
        {"RETRY__MODE": "off", "RETRY__MAX_ATTEMPTS": "5", "HEDGE__KEYS": "tool/sql"},
        {"RETRY__MODE": "blind", "RETRY__MAX_ATTEMPTS": "5"},
        {"BREAKER__MODE": "observe", "BREAKER__MIN_CALLS": "9999", "BREAKER__SLOW_COUNT": "5"},
        {"BREAKER__MODE": "off", "BREAKER__MAX_HALF_OPEN_S": "1", "BREAKER__OPEN_DURATION_S": "1"},
    ):
        assert findings(configured(**ENGINE, **settings)) == []
