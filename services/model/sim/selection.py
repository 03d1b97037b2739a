"""Chooses the fault that a request meets."""

import random
import re
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from services.model.sim.faults import Rule, UnknownFaultError, When, read_rule
from services.model.sim.vocabulary import FAULTS
from services.runtime.clock import Clock

MODEL_PREFIX = "sim/"
NO_FAULT = Rule(name="")
_MARK = re.compile(r"\[sim:\s*([^\[\]]+?)\s*\]")
"""How words ask for a fault: `[sim: stall?at_token=5]`."""
Written = str | Mapping[str, Any]
"""A rule as people and programs write it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Is what rules look at."""

    request_id: str
    attempt: int
    model: str
    tenant: str
    stream: bool
    header: str = ""
    """The value of `x-sim-fault`."""
    words: str = ""
    """The user's last words, where they may ask for a fault."""


@dataclass(slots=True)
class _State:
    """Is what a rule remembers."""

    since: float
    matched: int = 0
    bursting: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """Is a rule, and what chose it."""

    rule: Rule
    by: str = ""


@dataclass(slots=True)
class _Watched:
    rule: Rule
    state: _State = field(default_factory=lambda: _State(0.0))


class Selector:
    """Knows the rules in force.

    A request's header counts first, then the name of its model (`sim/<fault>`), then the user's
    last words (`[sim: <fault>]`), then the next entry of the queue, then the rules: those of the
    script, and then the others, in order. The first that meets the request is its fault.
    """

    def __init__(self, seed: int, clock: Clock) -> None:
        """Take where chance comes from."""
        self._seed = seed
        self._clock = clock
        self._rules: list[_Watched] = []
        self._scripted: list[_Watched] = []
        self._queue: deque[Rule] = deque()
        self._own: dict[str, _Watched] = {}

    def replace(self, rules: Iterable[Written], queue: Iterable[Written] = ()) -> None:
        """Put rules and a queue in force instead of all earlier ones.

        Raises:
            UnknownFaultError: one of them cannot be read; nothing has changed.
        """
        read = [read_rule(text, FAULTS) for text in rules]
        queued = [read_rule(text, FAULTS) for text in queue]
        self._rules = self._watched(read)
        self._queue = deque(queued)
        self._own.clear()

    def follow(self, rules: Iterable[Rule]) -> None:
        """Put the rules of a script in force instead of its earlier ones."""
        self._scripted = self._watched(rules)

    def names(self) -> dict[str, list[str]]:
        """Return what is in force, as it was written."""
        return {
            "script": [watched.rule.name for watched in self._scripted],
            "rules": [watched.rule.name for watched in self._rules],
            "queue": [rule.name for rule in self._queue],
        }

    def choose(self, asked: Asked) -> Choice:
        """Return what the request meets.

        Raises:
            UnknownFaultError: its header, its model or its words name no fault.
        """
        if asked.header:
            return self._named(asked.header, asked, "header")
        if asked.model.startswith(MODEL_PREFIX):
            return self._named(asked.model.removeprefix(MODEL_PREFIX), asked, "model")
        if mark := _MARK.search(asked.words):
            return self._named(mark[1], asked, "words")
        if self._queue:
            return Choice(self._queue.popleft(), "queue")
        for by, rules in (("script", self._scripted), ("rules", self._rules)):
            for watched in rules:
                if self._meets(watched, asked):
                    return Choice(watched.rule, by)
        return Choice(NO_FAULT)

    def _named(self, text: str, asked: Asked, by: str) -> Choice:
        if text not in self._own:
            # A rule that a request names begins with the first one that names it.
            self._own[text] = self._watched([read_rule(text, FAULTS)])[0]
            if len(self._own) > MAX_OWN:
                self._own.pop(next(iter(self._own)))
        watched = self._own[text]
        return Choice(watched.rule, by) if self._meets(watched, asked) else Choice(NO_FAULT, by)

    def _watched(self, rules: Iterable[Rule]) -> list[_Watched]:
        return [_Watched(rule, _State(self._clock.now())) for rule in rules]

    def _meets(self, watched: _Watched, asked: Asked) -> bool:
        when, state = watched.rule.when, watched.state
        if not _matches(when, asked) or not self._is_awake(when, state):
            return False
        rng = random.Random(f"{self._seed}/{watched.rule.name}/{asked.request_id}/{asked.attempt}")
        if when.burst_enter > 0 and not _bursts(when, state, rng):
            return False
        if when.p < 1 and rng.random() >= when.p:
            return False
        state.matched += 1
        number = state.matched - when.skip
        return number > 0 and (when.times == 0 or number <= when.times)

    def _is_awake(self, when: When, state: _State) -> bool:
        period_s = when.up_s + when.down_s
        if period_s <= 0:
            return True
        return (self._clock.now() - state.since) % period_s >= when.up_s


MAX_OWN = 1000
"""How many rules are remembered that requests have named."""


def _matches(when: When, asked: Asked) -> bool:
    return (
        (not when.model or fnmatchcase(asked.model, when.model))
        and (not when.tenant or fnmatchcase(asked.tenant, when.tenant))
        and (not when.stream or asked.stream == (when.stream == "yes"))
    )


def _bursts(when: When, state: _State, rng: random.Random) -> bool:
    """Return whether a request falls into a burst: a chain of two states, good and bad.

    A burst has 1 / `burst_leave` requests on average; a share of enter / (enter + leave) of all
    requests is in one.
    """
    change = when.burst_leave if state.bursting else when.burst_enter
    if rng.random() < change:
        state.bursting = not state.bursting
    return state.bursting


__all__ = ["NO_FAULT", "Asked", "Choice", "Selector", "UnknownFaultError"]
