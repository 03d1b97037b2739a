"""Defines what a rule is and what it finds."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from services.runtime.checks.tree import Tree
from services.runtime.config import Config


class Severity(StrEnum):
    """Says what a finding means for whoever wants to start."""

    VIOLATION = "violation"
    """The settings contradict each other: nothing starts with them."""
    WARNING = "warning"
    """They can hold, and somebody will wonder: only `sixhop check` tells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Is one thing that a rule has found."""

    rule: str
    """The rule's name."""
    severity: Severity
    """What it means."""
    text: str
    """The path, the numbers and a fix."""


def violation(rule: str, text: str) -> Finding:
    """Return what keeps everything from starting."""
    return Finding(rule=rule, severity=Severity.VIOLATION, text=text)


def warning(rule: str, text: str) -> Finding:
    """Return what somebody will wonder about."""
    return Finding(rule=rule, severity=Severity.WARNING, text=text)


Examine = Callable[[Config], Iterable[Finding]]
"""Returns what a room finds in a configuration; only the room knows its own section."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Is one thing that must hold."""

    name: str
    """Names it for programs, such as `step-fits`."""
    holds: str
    """Says what is true while it finds nothing, for people."""
    find: Callable[[Tree], Iterable[str]]
    """Returns a text for each place where it does not hold."""
    severity: Severity = Severity.VIOLATION
    """What it means when it does not hold; a contradiction unless told otherwise."""
    engine: bool = False
    """Whether it is about what the policy engine does, and says nothing while that is off."""

    def findings(self, tree: Tree) -> list[Finding]:
        """Return what it finds, each text once."""
        if self.engine and not tree.engine:
            return []
        texts = dict.fromkeys(self.find(tree))
        return [Finding(rule=self.name, severity=self.severity, text=text) for text in texts]
