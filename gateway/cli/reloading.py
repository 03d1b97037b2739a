"""Finds out what a hop has made of the order to read its configuration again."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from gateway.cli.console import length_text, one_line
from gateway.cli.log_tail import new_lines
from services.runtime.clock import Clock
from services.runtime.reload import READ_TIMEOUT_S
from services.runtime.telemetry import CONFIG_RELOADED, RELOAD_REFUSED

ANSWER_TIMEOUT_S = READ_TIMEOUT_S + 2.0
"""How long a hop may take to say what came of it: reading has a limit, and a busy hop is slow."""
LOOK_INTERVAL_S = 0.1


class Outcome(StrEnum):
    """Says what came of it."""

    TOOK = "took"
    """The hop follows the file as it is now."""
    REFUSED = "refused"
    """The file is wrong; the hop goes on as before."""
    NO_ANSWER = "no answer"
    """The hop has not said anything in time."""


@dataclass(frozen=True, slots=True)
class Reloaded:
    """Tells what a process has made of the order to read its configuration again."""

    name: str
    pid: int
    outcome: Outcome
    problem: str = ""
    """Why it refused."""
    changed: Mapping[str, str] = field(default_factory=dict)
    """By the setting: its old value and its new one, for people."""


async def reload_outcome(name: str, pid: int, log: Path, start: int, clock: Clock) -> Reloaded:
    """Return what a hop says in its log.

    Args:
        name: the hop.
        pid: its process.
        log: its log file.
        start: how long that was when the hop was asked.
        clock: the clock.
    """
    until = clock.now() + ANSWER_TIMEOUT_S
    while True:
        lines, start = new_lines(log, start)
        for line in lines.splitlines():
            said = _said(name, pid, line)
            if said is not None:
                return said
        if clock.now() >= until:
            return Reloaded(name, pid, Outcome.NO_ANSWER)
        await clock.sleep(LOOK_INTERVAL_S)


def reload_text(told: Reloaded) -> str:
    """Return what a hop has made of it, for people."""
    if told.outcome is Outcome.REFUSED:
        return f"refused the configuration and goes on as before: {one_line(told.problem)}"
    if told.outcome is Outcome.NO_ANSWER:
        limit = length_text(ANSWER_TIMEOUT_S)
        return f"has not said within {limit} what it does; it is stopped, stuck or busy"
    changes = ", ".join(f"{key} {one_line(change)}" for key, change in told.changed.items())
    return f"took the configuration: {changes or 'nothing has changed'}"


def _said(name: str, pid: int, line: str) -> Reloaded | None:
    try:
        event = json.loads(line)
    except ValueError:
        return None
    kind = event.get("event") if isinstance(event, dict) else None
    if kind == RELOAD_REFUSED:
        return Reloaded(name, pid, Outcome.REFUSED, problem=str(event.get("problem", "")))
    if kind == CONFIG_RELOADED:
        changed = {str(key): str(change) for key, change in dict(event["changed"]).items()}
        return Reloaded(name, pid, Outcome.TOOK, changed=changed)
    return None
