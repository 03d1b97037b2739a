"""Plays a timeline: which rules are in force, how slow all is and whether anybody listens, when."""

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError, field_validator

from services.model.sim.faults import Rule, UnknownFaultError, read_rule
from services.model.sim.vocabulary import FAULTS
from services.runtime.clock import Clock
from services.runtime.config import Section


class BadScriptError(Exception):
    """Refuses a script; names the problem."""


class Step(Section):
    """Says how things are from an instant on, until the next step."""

    at_s: float = Field(ge=0, le=86_400)
    """When it begins, in seconds from the start of the script; steps come in order."""
    about: str = ""
    """What it is, for people and logs."""
    faults: tuple[str | dict[str, Any], ...] = ()
    """The rules in force, before those that do not come from the script; none recovers."""
    slowdown: float = Field(default=1.0, gt=0, le=1000)
    """How much slower everything is: a brown-out."""
    max_concurrency: int = Field(default=0, ge=0, le=100_000)
    """How many requests are worked on at a time; 0 leaves what the settings say."""
    refusing: bool = False
    """Close the listener, so that new connections are refused; open ones go on."""
    down: bool = False
    """The same, and all open connections are reset: a server that has died."""

    @field_validator("faults")
    @classmethod
    def _are_known(cls, faults: tuple[Any, ...]) -> tuple[Any, ...]:
        for text in faults:
            try:
                read_rule(text, FAULTS)
            except UnknownFaultError as error:
                raise ValueError(str(error)) from None
        return faults

    def rules(self) -> list[Rule]:
        """Return the rules in force."""
        return [read_rule(text, FAULTS) for text in self.faults]


class Script(Section):
    """Is a timeline of faults."""

    start: str = Field(default="now", pattern="^(now|first-request)$")
    """When its time begins: `now`, or with the `first-request` after it was loaded."""
    repeat_s: float = Field(default=0.0, ge=0, le=86_400)
    """Begin again after so long; 0 stays in the last step."""
    step: tuple[Step, ...] = ()
    """The steps, in order of their time."""

    @field_validator("step")
    @classmethod
    def _in_order(cls, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        times = [step.at_s for step in steps]
        if times != sorted(set(times)):
            raise ValueError("steps must come in the order of at_s, and no two at the same time")
        return steps


NOTHING = Step(at_s=0.0)
"""How things are before the first step, and without a script."""


def read_script(text: str) -> Script:
    """Return a script that is written in TOML.

    Raises:
        BadScriptError: it cannot be read; says where and why.
    """
    try:
        return make_script(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise BadScriptError(f"the script is no TOML: {error}") from None


def make_script(table: Mapping[str, Any]) -> Script:
    """Return a script from its table.

    Raises:
        BadScriptError: it cannot be read; says where and why.
    """
    try:
        return Script.model_validate(table)
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(map(str, problem["loc"]))
        raise BadScriptError(f"script.{where}: {problem['msg']}") from None


def load_script(path: Path) -> Script:
    """Return the script of a file.

    Raises:
        BadScriptError: the file cannot be read, or is no script.
    """
    try:
        return read_script(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise BadScriptError(f"{path} cannot be read: {error}") from None


class Timeline:
    """Tells which step is in force."""

    def __init__(self, script: Script, clock: Clock) -> None:
        """Begin, unless the script waits for its first request."""
        self.script = script
        self._clock = clock
        self._began = clock.now() if script.start == "now" else None

    def touch(self) -> None:
        """Note that a request has come."""
        if self._began is None:
            self._began = self._clock.now()

    @property
    def waiting(self) -> bool:
        """Return whether its time has not begun."""
        return self._began is None

    def position_s(self) -> float:
        """Return how far it is, seconds."""
        if self._began is None:
            return 0.0
        elapsed_s = self._clock.now() - self._began
        repeat_s = self.script.repeat_s
        return elapsed_s % repeat_s if repeat_s else elapsed_s

    def current(self) -> Step:
        """Return the step in force."""
        if self._began is None:
            return NOTHING
        position_s = self.position_s()
        passed = [step for step in self.script.step if step.at_s <= position_s]
        return passed[-1] if passed else NOTHING

    def next_in_s(self) -> float | None:
        """Return how long the present step lasts; None when nothing follows."""
        if self._began is None:
            return None
        position_s = self.position_s()
        coming = [step.at_s for step in self.script.step if step.at_s > position_s]
        if coming:
            return coming[0] - position_s
        return self.script.repeat_s - position_s if self.script.repeat_s else None


async def play(timeline: Timeline, apply: Callable[[Step], None], clock: Clock) -> None:
    """Apply each step as it comes, until nothing follows."""
    while True:
        apply(timeline.current())
        wait_s = timeline.next_in_s()
        if wait_s is None:
            return
        await clock.sleep(wait_s)
