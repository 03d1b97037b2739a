"""Tests what is found in the settings of the provider."""

from pathlib import Path

import pytest

from services.model.examination import examine
from services.runtime.checks.finding import Finding, Severity
from services.runtime.config import ConfigError, load_config
from tests.requirements import requirement


def found(**variables: str) -> list[Finding]:
    """Return what is found with these settings."""
    environ = {f"SIXHOP_{name}": value for name, value in variables.items()}
    return examine(load_config(Path("/dev/null"), environ))


def test_nothing_is_found_in_the_defaults() -> None:
    assert found() == []


BACKUP = {"MODEL_BACKUP__BASE_URL": "https://small.example.com/v1", "MODEL_BACKUP__MODEL": "small"}


@requirement("failover:deployment")
def test_the_section_of_the_model_that_stands_in_is_examined_as_well() -> None:
    (finding,) = found(**BACKUP, MODEL_BACKUP__CONNECT_TIMEOUT_S="5.5")

    assert "model_backup → llm: model_backup.connect_timeout_s 5.5 s" in finding.text
    assert found(**BACKUP) == []


def test_a_connection_may_not_take_the_whole_wait() -> None:
    (finding,) = found(MODEL__CONNECT_TIMEOUT_S="5.5")

    assert finding.severity is Severity.VIOLATION
    assert "model → llm: model.connect_timeout_s 5.5 s" in finding.text
    assert "calls.llm.step_timeout_s 5.5 s" in finding.text
    assert found(MODEL__CONNECT_TIMEOUT_S="5.4") == []


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"MODEL__BASE_URL": "https://api.example.com/v1"}, "model.model is empty"),
        ({"MODEL__BACKEND": "opnai"}, "there is no such backend"),
        ({"MODEL_BACKUP__BASE_URL": "https://small.example.com"}, "SIXHOP_MODEL_BACKUP__MODEL"),
    ],
)
def test_a_provider_that_cannot_be_used_cannot_be_examined(
    settings: dict[str, str], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        found(**settings)
