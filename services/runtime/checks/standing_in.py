"""Holds what stands in for the model to having been told enough, and to having time."""

from collections.abc import Iterator

from services.runtime.checks.finding import Rule
from services.runtime.checks.tree import Tree
from services.runtime.config import EMBEDDED, PREFIX
from services.runtime.rungs import stand_ins
from services.runtime.topology import DEPLOYMENTS

_MEANS_ONE = ("model", "api_key", "api_key_file")
"""Settings that nobody makes who does not want the deployment; empty, they are not made."""


def _told(tree: Tree) -> Iterator[str]:
    for name in DEPLOYMENTS:
        table = tree.config.raw.get(name, {})
        made = [key for key in _MEANS_ONE if table.get(key)]
        if made and not tree.config.runs(name):
            yield (
                f"[{name}] has {made[0]} and no base_url, so nothing stands in: set "
                f"{PREFIX}{name.upper()}__BASE_URL (or to {EMBEDDED} for the shipped model), or "
                f"take {made[0]} out"
            )


def _in_time(tree: Tree) -> Iterator[str]:
    for turn in stand_ins(tree.config.deadline.default_deadline_s, tree.config):
        needed_s = turn.leg.limits.min_useful_s
        if turn.own_time_s < needed_s:
            yield (
                f"{turn.leg.name}: after {turn.after_s:.1f} s of silence {turn.leg.caller} has "
                f"{max(turn.own_time_s, 0):.1f} s for what stands in, which needs {needed_s:g} s; "
                "lower calls.model.first_content_timeout_s"
            )


RULES = (
    Rule(
        name="stand-in-told",
        holds="what stands in for the model is told whom to ask",
        find=_told,
    ),
    Rule(
        name="stand-in-has-time",
        holds="a silent model leaves time for what stands in",
        find=_in_time,
    ),
)
"""What must hold of a second deployment of the model."""
