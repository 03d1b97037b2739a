"""Holds what is wrong with a section to being told in its user's words, and never in Python's."""

from pathlib import Path

import pytest

from services.routing.config import RoutingSettings
from services.runtime.config import ConfigError, load_config
from services.runtime.policy_settings import policy_settings
from tests.requirements import requirement


def problem(tmp_path: Path, text: str) -> str:
    """Return why a file is refused by who reads all of it."""
    file = tmp_path / "sixhop.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        read(file)
    return str(caught.value)


def read(file: Path) -> None:
    """Read all of a file.

    Raises:
        ConfigError: something is wrong in it.
    """
    config = load_config(file, {})
    policy_settings(config)
    config.section("routing", RoutingSettings)


def case(section: str, line: str, told: str, advice: str) -> tuple[str, str]:
    """Return a file with one setting, and the refusal of it."""
    key = told.split()[0]
    variable = "__".join(["SIXHOP_" + section.replace(".", "__"), key]).upper()
    return f"[{section}]\n{line}\n", f"[{section}] {told} ({variable}){advice}"


WRONG = [
    case("retry", "max_attempts = 99", "max_attempts = 99", ": write a whole number from 1 to 5"),
    case(
        "retry",
        "max_attempts = 'two'",
        'max_attempts = "two"',
        ": write a whole number from 1 to 5",
    ),
    case(
        "retry",
        "initial_backoff_s = inf",
        "initial_backoff_s = inf",
        ": write a number of 0 or more",
    ),
    case(
        "retry",
        "mode = 'blimd'",
        'mode = "blimd"',
        ": write one of budgeted, blind, off; did you mean blind?",
    ),
    case(
        "retry",
        "retry_on = ['SELF_TIMEOT']",
        'retry_on has "SELF_TIMEOT"',
        ": no error has this reason; did you mean SELF_TIMEOUT?",
    ),
    case(
        "retry",
        "never_on = ['SELF_BUGS']",
        'never_on has "SELF_BUGS"',
        ": no error has this reason; did you mean SELF_BUG?",
    ),
    case(
        "retry",
        "retry_on = 3",
        "retry_on = 3",
        ': write a list such as ["a", "b"], or a,b in the environment',
    ),
    case("bulkhead.core", "permits = 0", "permits = 0", ": write a whole number of 1 or more"),
    case(
        "bulkhead.core",
        "expected_qps = 5",
        "expected_qps = 5",
        ": it makes a size only together with expected_latency_s; set that as well",
    ),
    case("bulkhead", "mode = 'on'", 'mode = "on"', ": write one of off, observe, enforce"),
    case("bulkhead", "shared = 'maybe'", 'shared = "maybe"', ": write true or false"),
    case(
        "fallback",
        "mechanisms = ['cash']",
        'mechanisms has "cash"',
        ": write one of none, cache, backup, default, partial, skip; did you mean cache?",
    ),
    case(
        "fallback",
        "mechanisms = ['none']",
        'mechanisms has "none"',
        ": it gives nothing; leave it out, or set enabled = false",
    ),
    case(
        "limit.gradient",
        "min_limit = 500",
        "min_limit = 500",
        ": write a whole number up to initial_limit = 20",
    ),
    case(
        "limit.gradient",
        "max_limit = 10",
        "initial_limit = 20",
        ": write a whole number up to max_limit = 10",
    ),
    case("shed", "calm_ratio = 0.9", "calm_ratio = 0.9", ": write a number below shed_ratio = 0.5"),
    case(
        "breaker",
        "slow_count = 9",
        "slow_count = 9",
        ": write a whole number up to slow_of = 5, or raise that",
    ),
    case(
        "admission.levels",
        "sheddable_ratio = 0.9",
        "sheddable_ratio = 0.9",
        ": write a number up to sheddable_plus_ratio = 0.65",
    ),
    case("deadline", "share = 0.61", "share = 0.61", ": write a number above 0 and up to 0.6"),
    case(
        "calls.tool",
        "first_content_timeout_s = 0",
        "first_content_timeout_s = 0",
        ": write a number above 0 and up to 600",
    ),
    case(
        "log",
        "level = 'loud'",
        'level = "loud"',
        ": write one of debug, info, warning, error",
    ),
    case(
        "routing.board",
        "share_expiry_s = 1",
        "share_expiry_s = 1",
        ": write at least 2, which is twice share_interval_s",
    ),
    case("routing", "board = 3", "board = 3", ": write a table"),
    case("routing.board", "sick = 3", "sick", " is not a setting; did you mean sick_s?"),
    case("limit", "gradiant = 5", "gradiant", " is not a setting; did you mean gradient?"),
]


@requirement("config:wrong-values-are-told-in-full")
@pytest.mark.parametrize(("text", "told"), WRONG, ids=[text for text, _ in WRONG])
def test_a_wrong_setting_is_told_with_its_key_value_range_and_what_to_write(
    tmp_path: Path, text: str, told: str
) -> None:
    assert problem(tmp_path, text) == told
