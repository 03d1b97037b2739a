"""Holds the rules of breakers to finding what keeps one from opening or closing."""

import pytest

from services.runtime.checks.finding import Severity
from tests.unit.runtime.checks.configuring import ENGINE, WITHOUT_ENGINE, found

UNREACHABLE = {"BREAKER__MIN_CALLS": "200"}
NEVER_SLOW = {"BREAKER__SLOW_COUNT": "900", "BREAKER__SLOW_OF": "900"}


@pytest.mark.parametrize(
    ("rule", "severity", "settings", "words", "mended"),
    [
        (
            "half-open-lasts",
            Severity.VIOLATION,
            {"BREAKER__MAX_HALF_OPEN_S": "20"},
            ("domain → tool: breaker.max_half_open_s 20 s", "calls.tool.step_timeout_s 20 s"),
            {"BREAKER__MAX_HALF_OPEN_S": "20.5"},
        ),
        (
            "slow-before-late",
            Severity.WARNING,
            {"CALLS__ROUTING__STEP_TIMEOUT_S": "2"},
            ("gateway → routing: a call is slow after 2 s", "given up after 2 s", "above 2 s"),
            {"CALLS__ROUTING__STEP_TIMEOUT_S": "2.1"},
        ),
        (
            "slow-before-late",
            Severity.WARNING,
            {"CALLS__MODEL__FIRST_CONTENT_TIMEOUT_S": "4"},
            ("tool → model: ", "after 4 s", "raise calls.model.first_content_timeout_s above 5 s"),
            {"CALLS__MODEL__FIRST_CONTENT_TIMEOUT_S": "5.1"},
        ),
        (
            "breaker-opens",
            Severity.VIOLATION,
            UNREACHABLE | NEVER_SLOW,
            ("routing", "permits of bulkhead.core let 192.0 calls", "768.0", "it would never open"),
            UNREACHABLE | {"BREAKER__SLOW_COUNT": "24", "BREAKER__SLOW_OF": "24"},
        ),
        (
            "window-fills",
            Severity.WARNING,
            {"BREAKER__MIN_CALLS": "13"},
            ("the 8 permits of bulkhead.auxiliary let 12.0 calls", "breaker.min_calls to 12"),
            {"BREAKER__MIN_CALLS": "12"},
        ),
        (
            "window-fills",
            Severity.WARNING,
            {
                "BULKHEAD__EXTERNAL__EXPECTED_QPS": "0.5",
                "BULKHEAD__EXTERNAL__EXPECTED_LATENCY_S": "0.2",
            },
            ("the 1 permits of bulkhead.external let 6.0 calls", "breaker.min_calls to 6"),
            {
                "BULKHEAD__EXTERNAL__EXPECTED_QPS": "1",
                "BULKHEAD__EXTERNAL__EXPECTED_LATENCY_S": "8",
            },
        ),
        (
            "opens-in-time",
            Severity.WARNING,
            {"BREAKER__WINDOW_S": "200"},
            (
                "breaker.max_failure_ratio 0.2 of breaker.window_s 200 s",
                "only after 40 s",
                "deadline.default_deadline_s 30 s",
                "lower breaker.window_s to 150 s",
            ),
            {"BREAKER__WINDOW_S": "150"},
        ),
        (
            "opens-in-time",
            Severity.WARNING,
            {"BREAKER__WINDOW_S": "60", "BREAKER__MAX_FAILURE_RATIO": "0.9"},
            ("only after 54 s", "lower breaker.window_s to 33 s"),
            {"BREAKER__WINDOW_S": "33", "BREAKER__MAX_FAILURE_RATIO": "0.9"},
        ),
        (
            "open-lasts",
            Severity.WARNING,
            {"BREAKER__OPEN_DURATION_S": "19"},
            ("breaker.open_duration_s 19 s", "raise the first to 20 s"),
            {"BREAKER__OPEN_DURATION_S": "20"},
        ),
        (
            "probes-have-permits",
            Severity.WARNING,
            {"BREAKER__MAX_PROBES": "9"},
            ("breaker.max_probes 9", "8 permits of bulkhead.auxiliary"),
            {"BREAKER__MAX_PROBES": "8"},
        ),
    ],
)
def test_what_keeps_a_breaker_from_its_work_is_told_with_a_fix_that_works(
    rule: str,
    severity: Severity,
    settings: dict[str, str],
    words: tuple[str, ...],
    mended: dict[str, str],
) -> None:
    told = found(rule, **ENGINE, **settings)

    assert any(all(word in finding.text for word in words) for finding in told)
    assert {finding.severity for finding in told} == {severity}
    assert found(rule, **ENGINE, **mended) == []
    assert found(rule, **WITHOUT_ENGINE, **settings) == []
