"""Holds breakers to limits that can open them, and close them again."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from services.runtime.call import Group, Mode
from services.runtime.checks.finding import Rule, Severity
from services.runtime.checks.tree import Tree
from services.runtime.rungs import Leg, patience_name, patience_s


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sick:
    """Is what a breaker sees of a callee whose every call lasts to its limit."""

    leg: Leg
    group: Group
    limit_s: float
    """How long each of its calls lasts."""
    permit_count: int
    window_count: float
    """How many of them its window holds; those under way count with their age."""
    slow_count: float
    """How many of them are remembered as slow."""


def _sick(tree: Tree) -> Iterator[_Sick]:
    if tree.policies.breaker.mode is not Mode.ENFORCE:
        return
    for leg, callee in tree.tightest():
        for group in tree.groups(callee):
            size = tree.policies.bulkhead.size(group)
            limit_s = patience_s(leg.limits)
            per_s = size.expected_qps or size.allowed / limit_s
            inflight = min(per_s * limit_s, size.allowed)
            yield _Sick(
                leg=leg,
                group=group,
                limit_s=limit_s,
                permit_count=size.allowed,
                window_count=inflight + per_s * tree.policies.breaker.window_s,
                slow_count=0.0
                if callee.slow_call_s >= limit_s
                else per_s * tree.policies.breaker.slow_within_s,
            )


def _opens(tree: Tree) -> Iterator[str]:
    config = tree.policies.breaker
    for sick in _sick(tree):
        if sick.window_count < config.min_calls and sick.slow_count < config.slow_count:
            yield (
                f"{_few(sick, tree)}, and {sick.slow_count:.1f} into breaker.slow_within_s "
                f"{config.slow_within_s:g} s, fewer than breaker.slow_count {config.slow_count}: "
                "it would never open; lower one of the two counts"
            )


def _ratios(tree: Tree) -> Iterator[str]:
    config = tree.policies.breaker
    for sick in _sick(tree):
        if sick.window_count < config.min_calls and sick.slow_count >= config.slow_count:
            yield (
                f"{_few(sick, tree)}: neither their failures nor their mean would open it; lower "
                f"breaker.min_calls to {max(math.floor(sick.window_count), 1)}"
            )


def _few(sick: _Sick, tree: Tree) -> str:
    config = tree.policies.breaker
    return (
        f"{sick.leg.caller} → {sick.leg.callee}: when its calls last {sick.limit_s:g} s each, the "
        f"{sick.permit_count} permits of bulkhead.{sick.group} let {sick.window_count:.1f} calls "
        f"into breaker.window_s {config.window_s:g} s, fewer than breaker.min_calls "
        f"{config.min_calls}"
    )


def _slow(tree: Tree) -> Iterator[str]:
    if tree.policies.breaker.mode is not Mode.ENFORCE:
        return
    for leg, callee in tree.tightest():
        limit_s, slow_s = patience_s(leg.limits), callee.slow_call_s
        if slow_s >= limit_s:
            yield (
                f"{leg.caller} → {leg.callee}: a call is slow after {slow_s:g} s, and is given up "
                f"after {limit_s:g} s already, so the breaker sees failures and no slow calls; "
                f"raise {patience_name(leg.callee, tree.config)} above {slow_s:g} s"
            )


def _in_time(tree: Tree) -> Iterator[str]:
    config, run_s = tree.policies.breaker, tree.config.deadline.default_deadline_s
    late_s = config.max_failure_ratio * config.window_s
    if config.mode is Mode.ENFORCE and late_s > run_s:
        yield (
            f"every breaker: breaker.max_failure_ratio {config.max_failure_ratio:g} of "
            f"breaker.window_s {config.window_s:g} s have to be failures, so a callee that was "
            f"well and fails every call now is cut off only after {late_s:g} s, later than a whole "
            f"run of deadline.default_deadline_s {run_s:g} s is over; lower breaker.window_s to "
            f"{max(math.floor(run_s / config.max_failure_ratio), 1)} s"
        )


def _half_open(tree: Tree) -> Iterator[str]:
    leg = _longest(tree)
    limit_s, half_open_s = leg.limits.step_timeout_s, tree.policies.breaker.max_half_open_s
    if half_open_s <= limit_s and tree.policies.breaker.mode is Mode.ENFORCE:
        yield (
            f"{leg.caller} → {leg.callee}: breaker.max_half_open_s {half_open_s:g} s is over "
            f"before a probe that waits for calls.{leg.callee}.step_timeout_s {limit_s:g} s has "
            "ended, so a callee that hangs would be taken for well; raise the first above "
            f"{limit_s:g} s"
        )


def _open(tree: Tree) -> Iterator[str]:
    leg = _longest(tree)
    limit_s, open_s = leg.limits.step_timeout_s, tree.policies.breaker.open_duration_s
    if open_s < limit_s and tree.policies.breaker.mode is Mode.ENFORCE:
        yield (
            f"{leg.caller} → {leg.callee}: breaker.open_duration_s {open_s:g} s is less than "
            f"calls.{leg.callee}.step_timeout_s {limit_s:g} s: while a callee hangs, probes cost "
            "users more of the time than the breaker spares them; raise the first to "
            f"{limit_s:g} s"
        )


def _probes(tree: Tree) -> Iterator[str]:
    probes = tree.policies.breaker.max_probes
    for leg, callee in tree.tightest():
        for group in tree.groups(callee):
            allowed = tree.policies.bulkhead.size(group).allowed
            if probes > allowed:
                yield (
                    f"{leg.caller} → {leg.callee}: breaker.max_probes {probes} is above the "
                    f"{allowed} permits of bulkhead.{group}; lower the first"
                )


def _longest(tree: Tree) -> Leg:
    return max(tree.legs, key=lambda leg: leg.limits.step_timeout_s)


RULES = (
    Rule(
        name="breaker-opens",
        holds="a callee that hangs opens its breaker",
        find=_opens,
        engine=True,
    ),
    Rule(
        name="window-fills",
        holds="enough calls come into a breaker's window",
        find=_ratios,
        severity=Severity.WARNING,
        engine=True,
    ),
    Rule(
        name="opens-in-time",
        holds="a callee that begins to fail is cut off within the time of a run",
        find=_in_time,
        severity=Severity.WARNING,
        engine=True,
    ),
    Rule(
        name="slow-before-late",
        holds="a call is slow before it is given up",
        find=_slow,
        severity=Severity.WARNING,
        engine=True,
    ),
    Rule(
        name="half-open-lasts",
        holds="a probe ends while its breaker is half open",
        find=_half_open,
        engine=True,
    ),
    Rule(
        name="open-lasts",
        holds="a breaker stays open for longer than a call may hang",
        find=_open,
        severity=Severity.WARNING,
        engine=True,
    ),
    Rule(
        name="probes-have-permits",
        holds="there are permits for all probes",
        find=_probes,
        severity=Severity.WARNING,
        engine=True,
    ),
)
"""What must hold of breakers."""
