"""Holds the rules of retries, hedges and queues to finding what cannot hold."""

import pytest

from services.runtime.checks.attempts import longest_backoff_s
from services.runtime.checks.finding import Finding, Severity
from services.runtime.policies.retry import RetryConfig
from tests.unit.runtime.checks.configuring import ENGINE, WITHOUT_ENGINE, found, violated

CONTRADICTIONS = [
    (
        "attempts-fit",
        {"RETRY__MAX_ATTEMPTS": "5"},
        ("domain → tool: attempt 5 would begin after 30.1 s", "26.8 s", "retry.max_attempts = 3"),
        {"RETRY__MAX_ATTEMPTS": "3"},
    ),
    (
        "attempts-fit",
        {"CALLS__TOOL__STEP_TIMEOUT_S": "16"},
        ("2 attempts", "step_timeout_s 16 s", "0.3 s of backoff are 32.3 s", "26.8 s", "13.2 s"),
        {"CALLS__TOOL__STEP_TIMEOUT_S": "13.2"},
    ),
    (
        "attempts-fit",
        {"RETRY__INITIAL_BACKOFF_S": "6"},
        ("tool → model: attempt 2 would begin after 18.9 s", "tool has 15.5 s"),
        {"RETRY__INITIAL_BACKOFF_S": "2"},
    ),
    (
        "retry-possible",
        {"RETRY__INITIAL_BACKOFF_S": "20"},
        ("domain → tool", "after a backoff of 30 s 0.00 of 27.80 s are left", "initial_backoff_s"),
        {"RETRY__INITIAL_BACKOFF_S": "2"},
    ),
    (
        "retry-possible",
        {"RETRY__EXPECTED_FACTOR": "2000"},
        ("40 s are needed (retry.expected_factor · calls.tool.min_useful_s)",),
        {"RETRY__EXPECTED_FACTOR": "2"},
    ),
    (
        "queue-fits",
        {"BULKHEAD__MAX_WAIT_S": "5"},
        (
            "gateway → routing",
            "bulkhead.max_wait_s 5 s",
            "0.07 s",
            "lower bulkhead.max_wait_s to 4",
        ),
        {"BULKHEAD__MAX_WAIT_S": "4.9"},
    ),
    (
        "queue-fits",
        {"ADMISSION__MAX_WAIT_S": "5"},
        (
            "gateway → routing",
            "a wait for a place at routing of admission.max_wait_s 5 s",
            "lower admission.max_wait_s to 4",
        ),
        {"ADMISSION__MAX_WAIT_S": "4.9"},
    ),
    (
        "one-repeater",
        {"HEDGE__KEYS": "tool/sql"},
        ("calls to tool/sql would be hedged and retried", 'take "tool/sql" out of hedge.keys'),
        {"HEDGE__KEYS": "tool/sql", "RETRY__NOT_FOR": "tool/sql"},
    ),
    (
        "known-callees",
        {"HEDGE__KEYS": "tol/sql"},
        ("hedge.keys: tol/sql is no callee; did you mean tool/NAME?",),
        {"HEDGE__KEYS": "tool/sql"},
    ),
    (
        "known-callees",
        {"RETRY__NOT_FOR": "modle"},
        ("retry.not_for: modle is no callee; did you mean model?",),
        {"RETRY__NOT_FOR": "model"},
    ),
]


@pytest.mark.parametrize(("rule", "settings", "words", "mended"), CONTRADICTIONS)
def test_a_contradiction_is_told_with_path_numbers_and_a_fix_that_works(
    rule: str, settings: dict[str, str], words: tuple[str, ...], mended: dict[str, str]
) -> None:
    told = found(rule, **ENGINE, **settings)

    assert any(all(word in finding.text for word in words) for finding in told)
    assert {finding.severity for finding in told} == {Severity.VIOLATION}
    assert found(rule, **ENGINE, **mended) == []


def proposed(finding: Finding, phrase: str) -> str:
    """Return the number that a finding proposes after a phrase."""
    _, _, rest = finding.text.partition(phrase)
    return rest.split()[0].rstrip(",;")


@pytest.mark.parametrize("deadline_s", ["1", "1.7", "2.3", "3.1", "30"])
@pytest.mark.parametrize("setting", ["bulkhead.max_wait_s", "admission.max_wait_s"])
def test_the_shortest_wait_that_is_proposed_can_hold(setting: str, deadline_s: str) -> None:
    variable = setting.upper().replace(".", "__")
    deadline = {"DEADLINE__DEFAULT_DEADLINE_S": deadline_s}
    told = found("queue-fits", **ENGINE, **deadline, **{variable: "20"})

    fix = min((proposed(f, f"lower {setting} to ") for f in told if setting in f.text), key=float)

    mended = found("queue-fits", **ENGINE, **deadline, **{variable: fix})
    assert not [finding for finding in mended if setting in finding.text]


@pytest.mark.parametrize("step_s", ["14", "15.7", "16.4"])
def test_the_step_timeout_that_is_proposed_can_hold(step_s: str) -> None:
    for deadline_s in ("30", "29.3", "31.1"):
        deadline = {"DEADLINE__DEFAULT_DEADLINE_S": deadline_s}
        told = found("attempts-fit", **ENGINE, **deadline, CALLS__TOOL__STEP_TIMEOUT_S=step_s)
        told = [finding for finding in told if "lower the step timeout to" in finding.text]
        for finding in told:
            fix = proposed(finding, "lower the step timeout to ")
            assert not found(
                "attempts-fit", **ENGINE, **deadline, CALLS__TOOL__STEP_TIMEOUT_S=fix
            ), finding.text


def test_no_shorter_wait_is_proposed_to_a_callee_that_needs_more_than_there_is() -> None:
    needy = {"CALLS__TOOL__MIN_USEFUL_S": "30"}

    assert found("reaches-every-hop", **ENGINE, **needy)
    assert not found("queue-fits", **ENGINE, **needy)


@pytest.mark.parametrize("settings", [settings for _, settings, _, _ in CONTRADICTIONS])
def test_what_repeats_and_queues_contradicts_nothing_while_it_is_off(
    settings: dict[str, str],
) -> None:
    assert not {"attempts-fit", "retry-possible", "queue-fits"} & violated(
        **WITHOUT_ENGINE, **settings
    )


@pytest.mark.parametrize(
    ("settings", "words", "mended"),
    [
        (
            {"ADAPTIVE__MIN_TIMEOUT_S": "5.2"},
            ("calls to routing: adaptive.min_timeout_s 5.2 s", "calls.routing.step_timeout_s 5 s"),
            {"ADAPTIVE__MIN_TIMEOUT_S": "5.2", "ADAPTIVE__ENABLED": "false"},
        ),
        (
            {"ADAPTIVE__MIN_FIRST_CONTENT_S": "7"},
            ("calls to model: adaptive.min_first_content_s 7 s", "first_content_timeout_s 6 s"),
            {"ADAPTIVE__MIN_FIRST_CONTENT_S": "6"},
        ),
    ],
)
def test_a_floor_above_its_ceiling_is_a_warning_because_the_ceiling_wins(
    settings: dict[str, str], words: tuple[str, ...], mended: dict[str, str]
) -> None:
    told = found("adaptive-floor", **ENGINE, **settings)

    assert any(all(word in finding.text for word in words) for finding in told)
    assert {finding.severity for finding in told} == {Severity.WARNING}
    assert found("adaptive-floor", **ENGINE, **mended) == []


@pytest.mark.parametrize(
    ("key", "why"), [("model", "answered by a stream"), ("domain", "not idempotent")]
)
def test_a_hedge_that_never_comes_is_a_warning(key: str, why: str) -> None:
    (told,) = found("useful-hedges", **ENGINE, HEDGE__KEYS=key, RETRY__NOT_FOR=key)

    assert told.severity is Severity.WARNING
    assert why in told.text


def test_a_callee_that_is_not_repeated_needs_no_time_for_it() -> None:
    keys = "model,llm,tool"

    assert found("attempts-fit", **ENGINE, RETRY__MAX_ATTEMPTS="5", RETRY__NOT_FOR=keys) == []


def test_time_for_a_repetition_is_asked_for_as_the_retry_itself_asks_for_it() -> None:
    (told,) = found("retry-at-first", **ENGINE, DEADLINE__DEFAULT_DEADLINE_S="17")

    assert told.severity is Severity.WARNING
    assert "→ domain → tool → model → llm: until 20 calls have ended well none" in told.text
    assert "7.5 s are needed (retry.expected_factor · 5 s, the least" in told.text
    assert found("retry-at-first", **ENGINE, DEADLINE__DEFAULT_DEADLINE_S="20") == []


@pytest.mark.parametrize("mode", ["blind", "off"])
def test_only_retries_that_ask_for_time_are_told_that_there_is_none(mode: str) -> None:
    settings = {"DEADLINE__DEFAULT_DEADLINE_S": "10", "RETRY__MODE": mode}

    assert found("retry-at-first", **ENGINE, **settings) == []


def test_backoffs_are_taken_at_their_longest() -> None:
    retry = RetryConfig(initial_backoff_s=0.2, jitter_ratio=0.5)

    assert [longest_backoff_s(retry, number) for number in (1, 2, 3)] == pytest.approx(
        [0.3, 0.6, 1.2]
    )
