"""Compares the limits of waits along every path."""

import math
from collections.abc import Iterator

from services.runtime.checks.finding import Rule, Severity
from services.runtime.checks.tree import Tree
from services.runtime.heartbeat import MAX_HEARTBEAT_SHARE
from services.runtime.policies.deadline import MAX_SHARE
from services.runtime.rungs import Leg, patience_name, patience_s
from services.runtime.topology import DOMAIN, LLM, MODEL, MODEL_BACKUP, Edge

RELAYS = (MODEL, MODEL_BACKUP)
"""Hops whose first content is their callee's, and that tell by heartbeats while they wait for it.
The other streams begin with a word of their own."""
LONGEST_SILENCE_S = 6.0
"""How long a person waits for a first word."""


def _deadlines(tree: Tree) -> Iterator[str]:
    deadline = tree.config.deadline
    if deadline.default_deadline_s > deadline.max_deadline_s:
        yield (
            f"deadline.default_deadline_s {deadline.default_deadline_s:g} s is above "
            f"deadline.max_deadline_s {deadline.max_deadline_s:g} s; lower the first"
        )


def _useful(tree: Tree) -> Iterator[str]:
    for edge in tree.config.edges:
        limits, name = tree.config.limits(edge.callee), f"calls.{edge.callee}"
        if limits.min_useful_s > patience_s(limits):
            yield (
                f"{edge.caller} → {edge.callee}: {name}.min_useful_s {limits.min_useful_s:g} s is "
                f"above {patience_name(edge.callee, tree.config)} {patience_s(limits):g} s; "
                "nothing would ever be sent"
            )


def _reaches(tree: Tree) -> Iterator[str]:
    for leg in tree.legs:
        if leg.wait_s < leg.limits.min_useful_s:
            default_s = tree.config.deadline.default_deadline_s
            yield (
                f"{leg.name}: of {default_s:g} s only {leg.wait_s:.2f} s reach {leg.callee}, "
                f"which needs {leg.limits.min_useful_s:g} s; raise deadline.default_deadline_s or "
                f"lower calls.{leg.callee}.min_useful_s"
            )


def _steps(tree: Tree) -> Iterator[str]:
    if tree.config.static_deadlines:
        yield from _static_steps(tree)
        return
    for edge, child in _pairs(tree):
        outer, inner = tree.config.limits(edge.callee), tree.config.limits(child.callee)
        name, path = f"calls.{child.callee}.step_timeout_s", _path(edge, child)
        if not edge.streaming and inner.step_timeout_s > outer.step_timeout_s:
            yield (
                f"{path}: {name} {inner.step_timeout_s:g} s does not fit into calls.{edge.callee}"
                f".step_timeout_s {outer.step_timeout_s:g} s; lower the first or raise the second"
            )
        if edge.callee in RELAYS and patience_s(inner) >= patience_s(outer):
            yield (
                f"{path}: {name} {patience_s(inner):g} s is never reached, because "
                f"{edge.caller} gives up {edge.callee} after "
                f"{patience_name(edge.callee, tree.config)} {patience_s(outer):g} s and blames it "
                f"for the silence of {child.callee}; lower the first below the second"
            )


def _static_steps(tree: Tree) -> Iterator[str]:
    """Look at timeouts that know nothing of each other: all attempts must fit by declaration."""
    blind = tree.engine and tree.policies.retry.mode == "blind"
    attempts = tree.policies.retry.max_attempts if blind else 1
    for edge, child in _pairs(tree):
        outer_s = tree.config.limits(edge.callee).step_timeout_s
        inner_s = tree.config.limits(child.callee).step_timeout_s
        if attempts * inner_s > outer_s:
            yield (
                f"{_path(edge, child)}: {attempts} attempts of calls.{child.callee}.step_timeout_s "
                f"{inner_s:g} s are {attempts * inner_s:g} s, and {edge.caller} gives "
                f"{edge.callee} up after calls.{edge.callee}.step_timeout_s {outer_s:g} s; lower "
                "the first or raise the second"
            )


def _heartbeats(tree: Tree) -> Iterator[str]:
    heartbeat = tree.config.heartbeat
    for edge in tree.config.edges:
        # A provider sends no heartbeats of ours.
        if not edge.streaming or edge.callee == LLM:
            continue
        limits = tree.config.limits(edge.callee)
        idle = [("read_timeout_s", limits.read_timeout_s, heartbeat.interval_s)]
        if edge.callee == DOMAIN:
            # An agent that thinks before its first word is known to live by a heartbeat.
            idle.append(("step_timeout_s", limits.step_timeout_s, heartbeat.interval_s))
        if edge.callee in RELAYS:
            idle.append(("step_timeout_s", limits.step_timeout_s, heartbeat.first_s))
        for name, limit_s, beat_s in idle:
            if limit_s < beat_s / MAX_HEARTBEAT_SHARE:
                yield (
                    f"{edge.caller} → {edge.callee}: calls.{edge.callee}.{name} {limit_s:g} s is "
                    f"less than three heartbeats of {beat_s:g} s; raise it to at least "
                    f"{beat_s / MAX_HEARTBEAT_SHARE:g} s"
                )


def _backup(tree: Tree) -> Iterator[str]:
    for leg in tree.legs:
        if leg.callee == MODEL and patience_s(leg.limits) > _leaving_s(leg):
            # A short deadline limits the wait by its share. What is declared may be as long as
            # a person waits for a first word, and longer only where the backup may be as well.
            if patience_s(leg.limits) > LONGEST_SILENCE_S:
                yield _too_patient(leg, tree)


def _short_backup(tree: Tree) -> Iterator[str]:
    for leg in tree.legs:
        if leg.callee == MODEL and _leaving_s(leg) < patience_s(leg.limits) <= LONGEST_SILENCE_S:
            yield _too_patient(leg, tree)


def _leaving_s(leg: Leg) -> float:
    """Return the longest wait for a silent model that leaves its backup as long a one.

    `share · (r − f) ≥ f`, so `f ≤ share · r / (1 + share)`.
    """
    share = min(leg.limits.share, MAX_SHARE)
    return share * leg.has_s / (1 + share)


def _too_patient(leg: Leg, tree: Tree) -> str:
    left_s = min(leg.limits.share, MAX_SHARE) * (leg.has_s - leg.silence_s)
    return (
        f"{leg.name}: a silent model keeps {leg.caller} for {leg.silence_s:.1f} of "
        f"{leg.has_s:.1f} s ({patience_name(MODEL, tree.config)} {patience_s(leg.limits):g} s), "
        f"which leaves its backup {left_s:.1f} s; lower it to "
        f"{math.floor(10 * _leaving_s(leg)) / 10:g} s or give {leg.caller} more time"
    )


RULES = (
    Rule(
        name="default-deadline",
        holds="the default deadline is not above the longest one",
        find=_deadlines,
    ),
    Rule(name="useful-time", holds="no callee needs more than its step timeout", find=_useful),
    Rule(
        name="reaches-every-hop",
        holds="the default deadline leaves every hop of every path what it needs",
        find=_reaches,
    ),
    Rule(name="step-fits", holds="every step timeout fits into the wait before it", find=_steps),
    Rule(
        name="heartbeats",
        holds="three heartbeats come within every limit on silence",
        find=_heartbeats,
    ),
    Rule(
        name="backup-reserve",
        holds="no model may be silent so long that its backup has no time",
        find=_backup,
    ),
    Rule(
        name="backup-as-long",
        holds="a silent model leaves its backup as long a wait",
        find=_short_backup,
        severity=Severity.WARNING,
    ),
)
"""What must hold whether or not the policy engine is on."""


def _pairs(tree: Tree) -> Iterator[tuple[Edge, Edge]]:
    edges = tree.config.edges
    for edge in edges:
        for child in edges:
            if child.caller == edge.callee:
                yield edge, child


def _path(edge: Edge, child: Edge) -> str:
    return f"{edge.caller} → {edge.callee} → {child.callee}"
