"""Compares how many calls are let in with how many can be made."""

from collections.abc import Iterator

from services.runtime.call import Group, Mode
from services.runtime.checks.finding import Rule, Severity
from services.runtime.checks.tree import Tree


def _admitted(tree: Tree) -> Iterator[str]:
    if (
        tree.policies.admission.limit is not Mode.ENFORCE
        or tree.policies.bulkhead.mode is not Mode.ENFORCE
    ):
        return
    name, most = "limit.max_inflight", tree.policies.limit.max_inflight
    if tree.policies.limit.algorithm == "gradient":
        name, most = "limit.gradient.max_limit", tree.policies.limit.gradient.max_limit
    core = tree.policies.bulkhead.size(Group.CORE)
    places = core.allowed + core.max_queued
    if most > places:
        yield (
            f"every hop: {name} {most} lets more calls in than there are places to go on from: "
            f"bulkhead.core has {core.allowed} permits and {core.max_queued} places to wait, "
            f"{places} in all; lower the first or raise bulkhead.core.max_queued"
        )


RULES = (
    Rule(
        name="admitted-find-places",
        holds="whoever is let in finds a place to go on from",
        find=_admitted,
        severity=Severity.WARNING,
        engine=True,
    ),
)
"""What must hold of bulkheads and of the limit before them."""
