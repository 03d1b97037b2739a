"""Tests what is found in what tools declare."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from services.runtime.call import Fallback, Group
from services.runtime.checks.finding import Severity
from services.runtime.config import ConfigError
from services.tool.config import ToolSettings
from services.tool.declaration import Tool
from services.tool.examination import examine, tool_findings
from services.tool.tools.sql import TOOL as SQL
from tests.unit.runtime.checks.configuring import configured


def found(tool: Tool[Any], **variables: str) -> list[tuple[str, Severity, str]]:
    """Return what is found in one tool."""
    findings = tool_findings([tool], ToolSettings(), configured(**variables))
    return [(finding.rule, finding.severity, finding.text) for finding in findings]


@pytest.mark.parametrize("engine", ["false", "true"])
def test_the_shipped_tools_fit(engine: str) -> None:
    assert examine(configured(ENGINE__ENABLED=engine)) == []


def test_a_tool_that_declares_more_than_its_callers_wait_is_a_violation() -> None:
    ((rule, severity, text),) = found(replace(SQL, timeout_s=19.5))

    assert (rule, severity) == ("tool-timeout-fits", Severity.VIOLATION)
    assert "domain → tool/sql: the tool declares timeout_s 19.5 s" in text
    assert "calls.tool.step_timeout_s 20 s it never has more than 19.0 s" in text
    assert found(replace(SQL, timeout_s=19.5), CALLS__TOOL__STEP_TIMEOUT_S="21")[0][1] is (
        Severity.WARNING
    )


def test_a_tool_that_needs_a_longer_deadline_than_the_default_is_a_warning() -> None:
    ((rule, severity, text),) = found(replace(SQL, timeout_s=17.0))

    assert (rule, severity) == ("tool-timeout-reached", Severity.WARNING)
    assert "of deadline.default_deadline_s 30 s only 15.5 s are left" in text
    assert found(replace(SQL, timeout_s=15.5)) == []


@pytest.mark.parametrize(
    ("tool", "rule", "words"),
    [
        (replace(SQL, max_concurrency=33), "tool-has-permits", "bulkhead.data has 32 permits"),
        (
            replace(SQL, max_concurrency=9, group=Group.EXTERNAL),
            "tool-has-permits",
            "bulkhead.external has 8 permits",
        ),
        (replace(SQL, slow_call_s=10.5), "tool-slow-before-late", "slow after 10.5 s"),
    ],
)
def test_what_the_engine_makes_of_a_tool_is_told_while_it_is_on(
    tool: Tool[Any], rule: str, words: str
) -> None:
    ((told, severity, text),) = found(tool, ENGINE__ENABLED="true")

    assert (told, severity) == (rule, Severity.WARNING)
    assert words in text
    assert found(tool, ENGINE__ENABLED="false") == []


def test_a_tool_that_no_run_has_the_time_to_repeat_at_first_is_a_warning() -> None:
    short = {"DEADLINE__DEFAULT_DEADLINE_S": "4"}
    once = replace(SQL, idempotent=False, fallback=Fallback.NONE, cache_age_s=0.0)

    told = {rule: (severity, text) for rule, severity, text in found(SQL, **short)}

    severity, text = told["tool-retry-at-first"]
    assert severity is Severity.WARNING
    assert "domain → tool/sql: until 20 calls have ended well none is repeated" in text
    assert "3 s are needed (retry.expected_factor · 2 s, the least that is declared" in text
    assert "tool-retry-at-first" not in [rule for rule, _, _ in found(once, **short)]


@pytest.mark.parametrize("setting", ["HEDGE__KEYS", "RETRY__NOT_FOR"])
def test_a_tool_that_is_named_and_does_not_exist_is_refused_with_the_nearest(setting: str) -> None:
    ((rule, severity, text),) = found(SQL, **{setting: "tool/sqll,model"})

    assert (rule, severity) == ("known-tools", Severity.VIOLATION)
    assert text.startswith(f"[{setting.partition('__')[0].lower()}] ")
    assert (
        f'has "tool/sqll" (SIXHOP_{setting}): no tool has this name; did you mean tool/sql?' in text
    )
    assert found(SQL, **{setting: "tool/sql,model"}) == []


def test_a_query_that_may_take_longer_than_its_tool_is_a_warning() -> None:
    ((rule, _, text),) = found(replace(SQL, timeout_s=4.0))

    assert rule == "tool-query-fits"
    assert "tool.query_timeout_s 5 s is never reached" in text


def test_a_tool_file_that_declares_too_little_cannot_be_examined(tmp_path: Path) -> None:
    (tmp_path / "lame.py").write_text("TOOL = 3\n", encoding="utf-8")

    with pytest.raises(ConfigError, match="TOOL is int, no tool"):
        examine(configured(TOOL__TOOL_DIRS=str(tmp_path)))


@pytest.mark.parametrize(("timeout_s", "slow_s"), [(0.5, 0.4), (2.0, 1.6), (10.0, 2.0)])
def test_a_tool_that_gives_up_soon_is_slow_before_it_does(timeout_s: float, slow_s: float) -> None:
    quick = replace(SQL, timeout_s=timeout_s, slow_call_s=None)

    assert quick.slow_after_s == pytest.approx(slow_s)
    assert "tool-slow-before-late" not in {rule for rule, _, _ in found(quick)}
    assert replace(quick, slow_call_s=1.25).slow_after_s == 1.25
