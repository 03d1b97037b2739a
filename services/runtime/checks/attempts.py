"""Compares what repeats, queues and adapts with the waits that have to hold it."""

import math
from collections.abc import Iterator

from services.runtime.call import Callee, Mode
from services.runtime.checks.finding import Rule, Severity
from services.runtime.checks.tree import Tree
from services.runtime.outgoing import CALLEES
from services.runtime.policies.deadline import attempt_timeout_s
from services.runtime.policies.retry import MIN_SAMPLES, RetryConfig, presumed_s
from services.runtime.rungs import Leg
from services.runtime.setting_text import nearest
from services.runtime.topology import LLM, MODEL, MODEL_BACKUP, TOOL

STREAMING = (MODEL, MODEL_BACKUP, LLM)
"""Callees that answer by streams although they are idempotent."""


def longest_backoff_s(retry: RetryConfig, number: int) -> float:
    """Return the longest wait after an attempt, the first of them being number 1."""
    return retry.backoff_s(number) * (1 + retry.jitter_ratio)


def _repeated(tree: Tree) -> Iterator[tuple[Leg, Callee]]:
    """Yield the legs whose calls may take more than one attempt; blind ones ask for no time."""
    if tree.policies.retry.mode != "budgeted":
        return
    for leg, callee in tree.tightest():
        if tree.policies.retry.repeats(callee):
            yield leg, callee


def _possible(tree: Tree) -> Iterator[str]:
    """Look at the best case: an attempt that fails at once, and a callee that answers at once."""
    retry = tree.policies.retry
    backoff_s = longest_backoff_s(retry, 1)
    for leg, _ in _repeated(tree):
        if not _can_repeat(leg, retry, leg.limits.min_useful_s):
            yield (
                f"{leg.name}: no call can ever be repeated: after a backoff of {backoff_s:g} s "
                f"{max(leg.own_time_s - backoff_s, 0):.2f} of {leg.has_s:.2f} s are left, and "
                f"{_needed_s(leg, retry):g} s are needed (retry.expected_factor · calls."
                f"{leg.callee}.min_useful_s); lower retry.initial_backoff_s or "
                "retry.expected_factor, or set retry.max_attempts = 1"
            )


def _at_first(tree: Tree) -> Iterator[str]:
    for leg, callee in _repeated(tree):
        if problem := never_at_first(leg, callee, tree.policies.retry):
            yield problem


def never_at_first(leg: Leg, callee: Callee, retry: RetryConfig) -> str:
    """Return why no call to a callee is repeated until enough are known; empty if they may be.

    It asks for what the retry itself asks for when the first attempt fails at once.
    """
    expected_s = presumed_s(callee, leg.limits)
    repeats = retry.mode == "budgeted" and retry.repeats(callee)
    if not repeats or _can_repeat(leg, retry, expected_s):
        return ""
    backoff_s = longest_backoff_s(retry, 1)
    return (
        f"{' → '.join((*leg.path[:-1], callee.key))}: until {MIN_SAMPLES} calls have ended well "
        f"none is repeated: after a backoff of {backoff_s:g} s "
        f"{max(leg.own_time_s - backoff_s, 0):.2f} of {leg.has_s:.2f} s are left, and "
        f"{retry.expected_factor * expected_s:g} s are needed (retry.expected_factor · "
        f"{expected_s:g} s, the least that is declared for {callee.key}); raise "
        "deadline.default_deadline_s or lower what is declared"
    )


def _can_repeat(leg: Leg, retry: RetryConfig, expected_s: float) -> bool:
    return retry.leaves_time(leg.own_time_s, longest_backoff_s(retry, 1), expected_s)


def _needed_s(leg: Leg, retry: RetryConfig) -> float:
    return retry.expected_factor * leg.limits.min_useful_s


def _attempts_fit(tree: Tree) -> Iterator[str]:
    retry = tree.policies.retry
    for leg, _ in _repeated(tree):
        if not _can_repeat(leg, retry, leg.limits.min_useful_s):
            continue
        most = _most_attempts(leg, retry)
        if most < retry.max_attempts:
            yield (
                f"{leg.name}: attempt {retry.max_attempts} would begin after "
                f"{_spent_s(leg, retry, retry.max_attempts):.1f} s, when those before it and their "
                f"backoffs took all they may, and {leg.caller} has {leg.own_time_s:.1f} s; set "
                f"retry.max_attempts = {most} or lower calls.{leg.callee}.step_timeout_s"
            )
        elif problem := _steps_fit(leg, retry):
            yield problem


def _steps_fit(leg: Leg, retry: RetryConfig) -> str:
    """Return what is wrong when several whole steps do not fit.

    A wait that the share cuts off is not repeated, and neither is a stream that is late: only a
    declared step timeout that is reached can follow itself.
    """
    step_s = leg.limits.step_timeout_s
    if leg.streaming or attempt_timeout_s(leg.limits, leg.has_s) < step_s:
        return ""
    attempts = retry.max_attempts
    backoffs_s = sum(longest_backoff_s(retry, number) for number in range(1, attempts))
    sum_s = attempts * step_s + backoffs_s
    if sum_s <= leg.own_time_s:
        return ""
    fitting_s = _floor((leg.own_time_s - backoffs_s) / attempts, 1)
    return (
        f"{leg.name}: {attempts} attempts of calls.{leg.callee}.step_timeout_s {step_s:g} s and "
        f"{backoffs_s:g} s of backoff are {sum_s:.1f} s, and {leg.caller} has "
        f"{leg.own_time_s:.1f} s; lower the step timeout to {fitting_s:g} s, or set "
        f"retry.max_attempts = {attempts - 1}"
    )


def _spent_s(leg: Leg, retry: RetryConfig, attempts: int) -> float:
    """Return when the last of so many attempts begins if all before it take what they may."""
    left_s = leg.has_s
    for number in range(1, attempts):
        left_s -= attempt_timeout_s(leg.limits, max(left_s, 0.0))
        left_s -= longest_backoff_s(retry, number)
    return leg.has_s - left_s


def _most_attempts(leg: Leg, retry: RetryConfig) -> int:
    needed_s = _needed_s(leg, retry)
    fitting = 1
    for attempts in range(2, retry.max_attempts + 1):
        if leg.own_time_s - _spent_s(leg, retry, attempts) < needed_s:
            break
        fitting = attempts
    return fitting


def _queues(tree: Tree) -> Iterator[str]:
    bulkhead, admission = tree.policies.bulkhead, tree.policies.admission
    for leg, _ in tree.tightest():
        if bulkhead.mode is not Mode.OFF:
            yield from _wait_fits(leg, "for permits", "bulkhead", bulkhead.max_wait_s)
        if admission.limit is Mode.ENFORCE and leg.callee != LLM:
            where = f"for a place at {leg.callee}"
            yield from _wait_fits(leg, where, "admission", admission.max_wait_s)


def _wait_fits(leg: Leg, what_for: str, section: str, wait_s: float) -> Iterator[str]:
    most_s = leg.silence_s - leg.limits.min_useful_s
    # Who needs more than there is at all has rules of its own; no shorter wait would do.
    if 0 <= most_s < wait_s:
        yield (
            f"{leg.name}: a wait {what_for} of {section}.max_wait_s {wait_s:g} s leaves less "
            f"than the {leg.limits.min_useful_s:g} s that {leg.callee} needs of the "
            f"{leg.silence_s:.2f} s for one attempt; lower {section}.max_wait_s to "
            f"{_floor(most_s, 2):g} s"
        )


def _floor(length_s: float, digits: int) -> float:
    """Return a length with so many digits behind the point, never more: what is told must fit."""
    unit = 10.0**digits
    return math.floor(length_s * unit + 1e-6) / unit


def _floors(tree: Tree) -> Iterator[str]:
    adaptive = tree.policies.adaptive
    if not adaptive.enabled:
        return
    for name in filter(tree.config.runs, CALLEES):
        limits = tree.config.limits(name)
        floors: list[tuple[str, float, str, float]] = []
        if name != TOOL:
            # Each tool has a minimum of its own.
            floors.append(("min_timeout_s", adaptive.min_timeout_s, "step", limits.step_timeout_s))
        if limits.first_content_timeout_s is not None:
            content_s = limits.first_content_timeout_s
            floors.append(
                ("min_first_content_s", adaptive.min_first_content_s, "first_content", content_s)
            )
        for key, floor_s, kind, declared_s in floors:
            if floor_s > declared_s:
                yield (
                    f"calls to {name}: adaptive.{key} {floor_s:g} s is above calls.{name}."
                    f"{kind}_timeout_s {declared_s:g} s, so the timeout never moves; lower the "
                    "first or set adaptive.enabled = false"
                )


def _repeaters(tree: Tree) -> Iterator[str]:
    if tree.policies.retry.max_attempts < 2 or tree.policies.retry.mode == "off":
        return
    for key in sorted(tree.policies.hedge.keys - tree.policies.retry.not_for):
        callee = _known(key)
        if callee is not None and callee.idempotent:
            yield (
                f"calls to {key} would be hedged and retried, which multiplies their attempts; "
                f'take "{key}" out of hedge.keys or add it to retry.not_for'
            )


def _keys(tree: Tree) -> Iterator[str]:
    for setting, keys in (
        ("hedge.keys", tree.policies.hedge.keys),
        ("retry.not_for", tree.policies.retry.not_for),
    ):
        for key in sorted(keys):
            if _known(key) is None:
                known = [*(name for name in CALLEES if name != TOOL), f"{TOOL}/NAME"]
                yield f"{setting}: {key} is no callee{nearest(key, known)}"


def _useless_hedges(tree: Tree) -> Iterator[str]:
    for key in sorted(tree.policies.hedge.keys):
        callee = _known(key)
        if callee is not None and (not callee.idempotent or callee.key in STREAMING):
            why = "is answered by a stream" if callee.idempotent else "is not idempotent"
            yield f'hedge.keys: {key} {why} and is never hedged; take "{key}" out'


def _known(key: str) -> Callee | None:
    if key.startswith(f"{TOOL}/") and len(key) > len(TOOL) + 1:
        # Each tool says itself whether it may be run twice; the listing stands for all.
        return CALLEES[TOOL]
    return CALLEES.get(key)


RULES = (
    Rule(
        name="retry-possible",
        holds="where calls may be repeated there is time for it",
        find=_possible,
        engine=True,
    ),
    Rule(
        name="retry-at-first",
        holds="where calls may be repeated there is time for it before anything is known",
        find=_at_first,
        severity=Severity.WARNING,
        engine=True,
    ),
    Rule(
        name="attempts-fit",
        holds="all attempts of a call and their backoffs fit into what its caller has",
        find=_attempts_fit,
        engine=True,
    ),
    Rule(
        name="queue-fits",
        holds="a wait for permits, or for a place, leaves time for the call",
        find=_queues,
        engine=True,
    ),
    Rule(
        name="adaptive-floor",
        holds="no adaptive timeout has a floor above its ceiling",
        find=_floors,
        severity=Severity.WARNING,
        engine=True,
    ),
    Rule(
        name="one-repeater",
        holds="no callee is both hedged and retried",
        find=_repeaters,
    ),
    Rule(name="known-callees", holds="every callee that is named exists", find=_keys),
    Rule(
        name="useful-hedges",
        holds="whoever is to be hedged can be",
        find=_useless_hedges,
        severity=Severity.WARNING,
        engine=True,
    ),
)
"""What must hold of retries, hedges, queues and adaptive timeouts."""
