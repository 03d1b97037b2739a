"""Tests that broken agents are found without starting anything."""

from pathlib import Path

import pytest

from services.domain.examination import examine
from services.runtime.checks.finding import Severity
from services.runtime.config import ConfigError, load_config


def test_the_shipped_agents_are_fine() -> None:
    assert examine(load_config(Path("/dev/null"), {})) == []


def test_a_file_that_declares_no_agent_is_named(tmp_path: Path) -> None:
    (tmp_path / "lame.py").write_text("AGENT = 3\n", encoding="utf-8")
    environ = {"SIXHOP_DOMAIN__AGENT_DIRS": str(tmp_path)}

    with pytest.raises(ConfigError, match=r"lame\.py"):
        examine(load_config(Path("/dev/null"), environ))


def test_an_agent_that_routing_falls_back_to_and_nobody_knows_is_refused_with_the_nearest() -> None:
    environ = {"SIXHOP_ROUTING__FALLBACK_AGENT": "chatt", "SIXHOP_ROUTING__DATA_AGENT": "reports"}

    (found,) = examine(load_config(Path("/dev/null"), environ))

    assert (found.rule, found.severity) == ("known-agents", Severity.VIOLATION)
    assert found.text == (
        '[routing] fallback_agent = "chatt" (SIXHOP_ROUTING__FALLBACK_AGENT): no agent has this '
        "name; did you mean chat?"
    )
