"""Holds the rules of what stands in for the model to finding what cannot hold."""

import pytest

from services.runtime.checks.finding import Severity
from services.runtime.rungs import stand_ins
from tests.requirements import requirement
from tests.unit.runtime.checks.configuring import configured, found, violated

BACKUP = {"MODEL_BACKUP__BASE_URL": "http://small:8000/v1", "MODEL_BACKUP__MODEL": "small"}


@requirement("failover:deployment")
def test_a_stand_in_contradicts_nothing_by_default() -> None:
    assert violated(**BACKUP) == set()


@pytest.mark.parametrize("key", ["MODEL", "API_KEY", "API_KEY_FILE"])
def test_a_stand_in_that_nobody_can_ask_is_refused_with_what_is_missing(key: str) -> None:
    (finding,) = found("stand-in-told", **{f"MODEL_BACKUP__{key}": "x"})

    assert finding.severity is Severity.VIOLATION
    assert "SIXHOP_MODEL_BACKUP__BASE_URL" in finding.text
    assert found("stand-in-told", MODEL_BACKUP__PORT="7999") == []


def test_a_silent_model_leaves_every_caller_time_for_the_stand_in() -> None:
    turns = stand_ins(30.0, configured(**BACKUP))

    assert [turn.leg.name for turn in turns] == [
        "gateway → routing → domain → model_backup",
        "gateway → routing → domain → tool → model_backup",
    ]
    assert [turn.after_s for turn in turns] == [6.0, 6.0]
    assert [round(turn.own_time_s, 1) for turn in turns] == [20.8, 9.5]
    assert stand_ins(30.0, configured()) == ()


def test_a_stand_in_that_would_have_no_time_is_refused() -> None:
    needs = {"CALLS__MODEL_BACKUP__MIN_USEFUL_S": "9.9"}

    (finding,) = found("stand-in-has-time", **BACKUP, **needs)

    assert "tool → model_backup: after 6.0 s of silence tool has 9.5 s" in finding.text
    assert "which needs 9.9 s" in finding.text
    assert found("stand-in-has-time", **needs) == []
