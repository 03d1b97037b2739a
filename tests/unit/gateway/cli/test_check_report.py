"""Tests what a check shows."""

import io
from pathlib import Path

from gateway.cli.check_report import Report, capacities, document, show
from gateway.cli.console import open_console
from gateway.cli.rooms import Opinion
from services.runtime.checks.finding import Finding, Severity
from services.runtime.config import load_config
from services.runtime.ladder import RULES, findings


def report(**variables: str) -> Report:
    """Return the report of a configuration, without the rooms."""
    environ = {f"SIXHOP_{name}": value for name, value in variables.items()}
    config = load_config(Path("/dev/null"), environ)
    return Report(config=config, opinion=Opinion((), tuple(findings(config))))


def shown(told: Report) -> str:
    """Return what people see."""
    stream = io.StringIO()
    show(open_console(stream), told)
    return stream.getvalue()


def test_the_defaults_are_shown_with_ladder_sizes_and_every_rule() -> None:
    text = shown(report())

    assert "no problem found" in text
    assert "the engine is off" not in text
    assert "the engine is off: not in force" in shown(report(ENGINE__ENABLED="false"))
    assert all(rule.holds in text for rule in RULES)
    # A silent model is given up after its first-content timeout.
    assert [line.split() for line in text.splitlines() if line.startswith(" model ")] == [
        ["model", "15.40", "s", "6.00", "s", "3.89", "s"]
    ]


def test_a_declared_capacity_is_shown_with_its_sum() -> None:
    told = report(
        ENGINE__ENABLED="true",
        BULKHEAD__CORE__EXPECTED_QPS="40",
        BULKHEAD__CORE__EXPECTED_LATENCY_S="0.2",
    )

    assert "ceil(40/s · 0.2 s / 0.8)" in shown(told)
    assert "(enforced)" in shown(told)
    assert document(told)["capacities"][0] == {
        "group": "core",
        "permits": 10,
        "max_queued": 256,
        "expected_qps": 40.0,
        "expected_latency_s": 0.2,
    }


def test_each_rule_says_what_became_of_it() -> None:
    told = document(
        report(
            ENGINE__ENABLED="false",
            CALLS__MODEL__STEP_TIMEOUT_S="25",
            CALLS__TOOL__STEP_TIMEOUT_S="15",
        )
    )

    states = {rule["name"]: rule["state"] for rule in told["rules"]}
    assert (states["step-fits"], states["backup-as-long"]) == ("failed", "warned")
    assert (states["heartbeats"], states["attempts-fit"]) == ("passed", "off")
    assert told["ok"] is False
    assert len(told["problems"]) == 1
    assert len(told["warnings"]) == 1


def test_warnings_alone_are_no_problem() -> None:
    warning = Finding(rule="r", severity=Severity.WARNING, text="one wonders")
    told = Report(config=report().config, opinion=Opinion((), (warning,)))

    assert document(told)["ok"] is True
    assert "warning: one wonders" in shown(told)
    assert "no problem found; 1 to look at" in shown(told)


def test_what_cannot_be_read_is_all_there_is() -> None:
    told = Report(config=None, opinion=Opinion(("x.toml does not exist",)))

    assert shown(told) == "problem: x.toml does not exist\n"
    assert document(told)["ladders"] == {}
    assert document(told)["problems"] == ["x.toml does not exist"]


def test_sizes_that_cannot_be_read_are_left_out() -> None:
    config = load_config(Path("/dev/null"), {"SIXHOP_BULKHEAD__MOD": "x"})

    assert capacities(config) == []
