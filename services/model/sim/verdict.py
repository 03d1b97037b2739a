"""Grades the client by what the log says that it did."""

import itertools
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from services.model.sim.log import CLIENT_LEFT, COMPLETE, CONTEXT_OVERFLOW, Record

NOT_RETRYABLE = frozenset({400, 401, 402, 403, 404, 413, 422})
"""Who resends the same after one of these gets the same again."""
REFUSED_BY_FINISH = frozenset({"content_filter"})
STORM_ATTEMPTS = 4
"""So many attempts at one request are a storm; two are the use."""
HASTY_S = 0.05
"""A retry of a refusal that comes sooner has not waited at all."""
TOLERANCE_S = 0.02
"""What clocks and the network may shorten a pause by, seconds."""
OVERRUN_S = 0.25
"""How long after its deadline a client may take to leave."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conduct:
    """Is what was done about one request."""

    request_id: str
    digest: str
    """Tells what was asked, where several things are asked under one id."""
    attempts: int
    spacing_s: tuple[float, ...]
    """From the arrival of each attempt to the next one's, seconds."""
    faults: tuple[str, ...]
    """What each attempt met, `none` where that was nothing."""
    endings: tuple[str, ...]
    """How each attempt ended."""
    tokens_wasted: int
    """Tokens that were made for attempts that the client left."""
    tokens_in_vain: int
    """Those of them that were made after it had left."""
    deadline_overrun_s: float
    """The longest that an attempt was waited for beyond the deadline that it had told, seconds."""
    charges: tuple[str, ...] = ()
    """What was wrong, in words."""


@dataclass(slots=True)
class _Charges:
    found: list[str] = field(default_factory=list)

    def add(self, name: str, about: str) -> None:
        self.found.append(f"{name}: {about}")


def verdict(records: Iterable[Record], now_ms: float) -> dict[str, Any]:
    """Return what `/verdict` answers: every request's conduct, totals and a grade.

    Args:
        records: the log.
        now_ms: the present instant, for requests that are still open.
    """
    conducts = [judge(group, now_ms) for group in attempts_at(records)]
    counts: dict[str, int] = {}
    for charge in (charge for conduct in conducts for charge in conduct.charges):
        name = charge.partition(":")[0]
        counts[name] = counts.get(name, 0) + 1
    attempts = [conduct.attempts for conduct in conducts]
    return {
        "grade": grade(counts),
        "totals": {
            "requests": len(conducts),
            "attempts": sum(attempts),
            "max_attempts": max(attempts, default=0),
            "tokens_wasted": sum(conduct.tokens_wasted for conduct in conducts),
            "tokens_in_vain": sum(conduct.tokens_in_vain for conduct in conducts),
            "max_deadline_overrun_s": max((c.deadline_overrun_s for c in conducts), default=0.0),
            "charges": counts,
        },
        "requests": [asdict(conduct) for conduct in conducts],
    }


def attempts_at(records: Iterable[Record]) -> list[list[Record]]:
    """Return the records that are attempts at one request, together.

    A run asks several things under one id; attempts at one of them have the same prompt. Without an
    id the same prompt is another attempt only where the one before it has failed.
    """
    groups: list[list[Record]] = []
    last: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        key = (record.request_id, record.digest)
        group = last.get(key)
        if group is None or (not record.has_id and group[-1].ended in ("", COMPLETE)):
            group = last[key] = []
            groups.append(group)
        group.append(record)
    return groups


def grade(counts: dict[str, int]) -> str:
    """Return the grade that so many charges of each kind give, with its reason."""
    if not counts:
        return "sound: nothing that this client did was wrong"
    worst = next(word for word, names in _GRADES if any(name in counts for name in names))
    listed = ", ".join(f"{name} ×{count}" for name, count in sorted(counts.items()))
    return f"{worst}: {listed}"


_GRADES = (
    ("harmful", ("storm", "retry_after_ignored", "resent_unchanged")),
    ("impatient", ("no_backoff", "overlapping")),
    ("late", ("deadline_overrun", "work_after_leaving")),
)
"""From the worst: what hurts the provider, what strains it, what only costs."""
CHARGES = tuple(name for _, names in _GRADES for name in names)
"""Everything that a client can be charged with."""


def judge(group: list[Record], now_ms: float) -> Conduct:
    """Return what was done about one request, from all of its attempts in order."""
    charges = _Charges()
    pairs = list(itertools.pairwise(group))
    for earlier, later in pairs:
        _judge_retry(earlier, later, charges)
    if len(group) >= STORM_ATTEMPTS:
        charges.add("storm", f"{len(group)} attempts at one request")
    overrun_s = max((_overrun_s(record, now_ms) for record in group), default=0.0)
    if overrun_s > OVERRUN_S:
        charges.add("deadline_overrun", f"waited {overrun_s:.2f} s beyond its own deadline")
    in_vain = sum(record.tokens_in_vain for record in group)
    if in_vain:
        charges.add("work_after_leaving", f"{in_vain} tokens were made after the client had left")
    return Conduct(
        request_id=group[0].request_id,
        digest=group[0].digest,
        attempts=len(group),
        spacing_s=tuple(round(_spacing_s(a, b), 3) for a, b in pairs),
        faults=tuple(record.fault or "none" for record in group),
        endings=tuple(record.ended or "open" for record in group),
        tokens_wasted=sum(r.tokens_written for r in group if r.ended == CLIENT_LEFT),
        tokens_in_vain=in_vain,
        deadline_overrun_s=round(overrun_s, 3),
        charges=tuple(charges.found),
    )


def _judge_retry(earlier: Record, later: Record, charges: _Charges) -> None:
    spacing_s = _spacing_s(earlier, later)
    left_ms = earlier.client_left_ms
    end_ms = left_ms if left_ms is not None else earlier.ended_ms
    # Two connections are not looked at in the order in which the client used them.
    if end_ms is None or later.arrived_ms + TOLERANCE_S * 1000 < end_ms:
        charges.add("overlapping", "an attempt began before the one before it had ended")
        return
    pause_s = (later.arrived_ms - end_ms) / 1000
    if _is_final(earlier, later):
        charges.add("resent_unchanged", f"the same again after {_refusal(earlier)}")
    elif earlier.retry_after_s is not None and pause_s + TOLERANCE_S < earlier.retry_after_s:
        charges.add(
            "retry_after_ignored",
            f"came back after {pause_s:.2f} s, asked to wait {earlier.retry_after_s:g} s",
        )
    elif earlier.status >= 429 and pause_s < HASTY_S:
        charges.add("no_backoff", f"came back {spacing_s:.3f} s after {_refusal(earlier)}")


def _is_final(earlier: Record, later: Record) -> bool:
    """Return whether the earlier answer holds for the later request as well."""
    if earlier.refusal == CONTEXT_OVERFLOW and earlier.max_tokens != later.max_tokens:
        return False
    return earlier.status in NOT_RETRYABLE or earlier.finish_reason in REFUSED_BY_FINISH


def _refusal(record: Record) -> str:
    return str(record.status) if record.status != 200 else record.finish_reason


def _spacing_s(earlier: Record, later: Record) -> float:
    return (later.arrived_ms - earlier.arrived_ms) / 1000


def _overrun_s(record: Record, now_ms: float) -> float:
    if record.deadline_ms is None:
        return 0.0
    ends = (record.client_left_ms, record.ended_ms, now_ms)
    end_ms = next(each for each in ends if each is not None)
    return max(0.0, (end_ms - record.arrived_ms - record.deadline_ms) / 1000)
