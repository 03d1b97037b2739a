"""Refuses a configuration whose limits contradict each other."""

from collections.abc import Iterable
from dataclasses import replace

from services.runtime.checks import attempts, breaking, sizes, standing_in, waits
from services.runtime.checks.finding import Finding, Rule, Severity
from services.runtime.checks.tree import read_tree
from services.runtime.config import Config, ConfigError

RULES: tuple[Rule, ...] = (
    *waits.RULES,
    *standing_in.RULES,
    *attempts.RULES,
    *breaking.RULES,
    *sizes.RULES,
)
"""All that a configuration must keep, from the client inwards."""


UNCHECKED = Finding(
    rule="static-deadlines",
    severity=Severity.WARNING,
    text=(
        'deadline.mode = "static": timeouts ignore what callers have left, and contradictions are '
        "started with; this is for showing what goes wrong, never for users. Take the line out"
    ),
)
"""Is found wherever the check does not bind."""


def check_ladder(config: Config) -> None:
    """Refuse a configuration that cannot hold.

    Raises:
        ConfigError: names, for each contradiction, the path, the numbers and a fix.
    """
    refuse_violations(findings(config))


def refuse_violations(found: Iterable[Finding]) -> None:
    """Refuse to go on with contradictions.

    Raises:
        ConfigError: tells all of them, one a line.
    """
    problems = violations(found)
    if problems:
        raise ConfigError("\n".join(problems))


def ladder_problems(config: Config) -> list[str]:
    """Return every contradiction, each with its path, its numbers and a fix.

    Raises:
        ConfigError: the section of a policy cannot be read.
    """
    return violations(findings(config))


def violations(found: Iterable[Finding]) -> list[str]:
    """Return the texts of the contradictions among findings."""
    return [finding.text for finding in found if finding.severity is Severity.VIOLATION]


def findings(config: Config) -> list[Finding]:
    """Return all that the rules find: contradictions and warnings.

    Raises:
        ConfigError: the section of a policy cannot be read.
    """
    tree = read_tree(config)
    return as_binding([finding for rule in RULES for finding in rule.findings(tree)], config)


def as_binding(found: Iterable[Finding], config: Config) -> list[Finding]:
    """Return findings as far as they bind: with static deadlines nothing does, and this is said."""
    if not config.static_deadlines:
        return list(found)
    return [UNCHECKED, *(replace(each, severity=Severity.WARNING) for each in found)]
