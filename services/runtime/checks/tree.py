"""Reads a whole configuration once, for the rules that compare its parts."""

from collections.abc import Iterator
from dataclasses import dataclass

from services.runtime.call import Callee, Group
from services.runtime.config import Config
from services.runtime.outgoing import CALLEES
from services.runtime.policy_settings import PolicySettings, policy_settings
from services.runtime.rungs import Leg, legs
from services.runtime.topology import TOOL


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """Holds every section that all hops share, and what each path gets of the default deadline."""

    config: Config
    engine: bool
    """Whether the policy engine is on."""
    legs: tuple[Leg, ...]
    """The last edge of every path, at the default deadline."""
    policies: PolicySettings
    """What every policy is told."""

    def tightest(self) -> Iterator[tuple[Leg, Callee]]:
        """Yield, for every callee, the leg of the path that leaves its caller the least."""
        for name, callee in CALLEES.items():
            if self.config.runs(name):
                yield min((leg for leg in self.legs if leg.callee == name), key=_has_s), callee

    def groups(self, callee: Callee) -> tuple[Group, ...]:
        """Return whose permits calls to a callee use."""
        if callee.key == TOOL:
            return (Group.DATA, Group.AUXILIARY, Group.EXTERNAL)
        return (callee.group,)


def _has_s(leg: Leg) -> float:
    return leg.has_s


def read_tree(config: Config) -> Tree:
    """Return all of a configuration that the rules look at.

    Raises:
        ConfigError: the section of a policy cannot be read.
    """
    return Tree(
        config=config,
        engine=config.engine.enabled,
        legs=legs(config.deadline.default_deadline_s, config),
        policies=policy_settings(config),
    )
