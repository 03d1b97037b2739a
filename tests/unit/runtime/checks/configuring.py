"""Makes configurations, and says what the rules find in them."""

from pathlib import Path

from services.runtime.checks.finding import Finding, Severity
from services.runtime.config import Config, load_config
from services.runtime.ladder import findings

ENGINE = {"ENGINE__ENABLED": "true"}
WITHOUT_ENGINE = {"ENGINE__ENABLED": "false"}


def configured(**variables: str) -> Config:
    """Return a configuration that differs from the defaults in these settings."""
    environ = {f"SIXHOP_{name}": value for name, value in variables.items()}
    return load_config(Path("/dev/null"), environ)


def found(rule: str, **variables: str) -> list[Finding]:
    """Return what one rule finds in a configuration."""
    return [finding for finding in findings(configured(**variables)) if finding.rule == rule]


def violated(**variables: str) -> set[str]:
    """Return the names of the rules that a configuration contradicts."""
    return {
        finding.rule
        for finding in findings(configured(**variables))
        if finding.severity is Severity.VIOLATION
    }
