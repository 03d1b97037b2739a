"""Computes what a sick pod costs until the sidecars of all its callers have ejected it.

Each sidecar learns alone: it ejects a pod after `k` counted failures in a row of its own calls.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from gateway.planning.flows import Flow, hop_of
from gateway.planning.tiers import Tier, callers_of
from gateway.planning.traffic import EjectionRule, Traffic
from services.runtime.call import Mode
from services.runtime.checks.tree import Tree
from services.runtime.policies.deadline import margin_s
from services.runtime.topology import LLM, TOOL

_FULL = _SURE = 1 - 1e-9
_WIDE = 7
_SEEN = 3.7
_NEVER = 1e-9
_MANY = 500.0
_HALVINGS = 50
_LONGEST_S = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Ejection:
    """Tells what one sick pod of a tier costs."""

    tier: str
    callers: int
    """Sidecars that each have to find out."""
    pair_calls_per_s: float
    """Calls of one caller to one well pod, a second; of the rarest kind of caller."""
    failing_calls: float
    """Calls that fail until all have ejected a pod that fails at once, on average."""
    caller_s: float
    """How long that takes one caller, seconds, on average."""
    all_s: float
    """How long until the last caller has, seconds: as likely longer as shorter."""
    failing_ratio: float
    """The part of a caller's calls to the tier that fails until it has, 0–1."""
    slow_calls: float | None
    """Calls that run into their time limit when the pod answers nothing in time; None for a stream,
    whose caller gives up first, which no sidecar counts."""
    slow_s: float | None
    """How long one caller needs to find that out, seconds, on average; None as above."""
    max_ejected: int
    """The most pods that may be ejected at once."""
    busy_after_one: float
    """The part of the other pods' cores that is in use then, 0–1; above 1 they are overloaded."""
    busy_after_most: float
    """The same after the most."""
    left_ratio: float
    """The part of the pods that is left after the most, 0–1."""
    breaker_opens: bool
    """Whether so few calls pass one caller that its breaker for the whole tier may open as well."""


def calls_until_ejected(rule: EjectionRule) -> float:
    """Return the calls to a sick pod until one sidecar ejects it, on average.

    Until `k` failures in a row, each with the probability `p`: `(1 − p^k) / ((1 − p) p^k)`, and `k`
    where all fail. Feller, *An Introduction to Probability Theory* 1, XIII.7.
    """
    failing, count = rule.failing_ratio, rule.consecutive_errors
    if failing > _FULL:
        return float(count)
    return (1 - failing**count) / ((1 - failing) * failing**count)


@cache
def _ejected_after(failures: int, failing: float) -> Sequence[float]:
    """Return how likely a pod is ejected after so many calls to it, 0–1, up to where it is sure.

    By the Markov chain of failures in a row: none, one, … `failures − 1`, ejected.
    """
    row, ejected = [1.0] + [0.0] * (failures - 1), [0.0]
    while ejected[-1] < _SURE:
        ejected.append(ejected[-1] + failing * row[-1])
        row = [(1 - failing) * sum(row), *(failing * each for each in row[:-1])]
    return ejected


def ejected_ratio(rule: EjectionRule, sent: float) -> float:
    """Return how likely a sidecar has ejected a sick pod, 0–1.

    Calls come at random: how many have come is Poisson-spread.

    Args:
        rule: when it ejects.
        sent: the calls that it has made to the pod by then, on average.
    """
    ejected = _ejected_after(rule.consecutive_errors, rule.failing_ratio)
    width = _WIDE * math.sqrt(sent) + _WIDE
    total = 0.0
    for count in range(max(0, math.floor(sent - width)), math.ceil(sent + width)):
        come = math.exp(count * math.log(sent) - sent - math.lgamma(count + 1)) if sent else 0.0
        total += come * (ejected[count] if count < len(ejected) else 1.0)
    return min(1.0, total)


def drawn_ratio(pods: int, wins_ratio: float) -> float:
    """Return which part of the calls goes to one pod that wins so often against another, 0–1.

    The balancer draws twice, and may draw the same: `(2/N) (1 − 1/N) wins + 1/N²`. With one half it
    is `1/N`.

    Args:
        pods: the pods, 1 or more.
        wins_ratio: how often the pod is taken when it and another are drawn, 0–1.
    """
    return 2 / pods * (1 - 1 / pods) * wins_ratio + 1 / pods**2


def quick_wins(pair_load: float) -> float:
    """Return how often a pod is taken that fails at once, when it and another are drawn, 0.5–1.

    Of the two that has fewer of the caller's calls is taken. A pod that answers at once never has
    any: it wins unless the other has none either, and then every second time:
    `1 − P(the other has none) / 2`, with `exp(−m)` for that.

    Args:
        pair_load: calls in flight of one caller at one well pod, on average.
    """
    return 1 - math.exp(-pair_load) / 2


def slow_sends(rate: float, pods: int, pair_load: float, calls: float, hang_s: float) -> float:
    """Return the calls that one caller sends to a pod that answers nothing until they time out.

    The more of its calls hang there, the less the balancer sends: with `n` hanging, the pod wins
    if the other one that is drawn has more, and every second time if it has as many. The pod is
    ejected when the call that fills the count times out; all sent until then are lost.

    Args:
        rate: calls of the caller to all pods, a second.
        pods: the pods.
        pair_load: calls in flight of one caller at a well pod, on average.
        calls: how many failures eject.
        hang_s: after how long a call fails, seconds.
    """
    sent, now, until = 0, 0.0, math.inf
    # How likely the other has as many as hang there, and how likely it has more.
    as_many = math.exp(-pair_load)
    more = 1 - as_many
    while True:
        share = rate * drawn_ratio(pods, more + as_many / 2)
        step_s = 1 / share
        if now + step_s > until or (until < math.inf and more + as_many < _NEVER):
            return sent + (until - now) * share
        now, sent = now + step_s, sent + 1
        if sent >= calls and until == math.inf:
            until = now + hang_s
        if pair_load < _MANY:
            as_many *= pair_load / sent
            more = max(0.0, more - as_many)
        else:
            # By chance it is a few more or less, of so many.
            as_many, more = 0.0, float(sent < pair_load)


def plan_ejections(
    traffic: Traffic, found: Sequence[Flow], tiers: Sequence[Tier], tree: Tree
) -> Sequence[Ejection]:
    """Return what a sick pod of each tier costs, from the client inwards."""
    return [_ejection(traffic, found, tiers, tier, tree) for tier in tiers if tier.name != LLM]


def _ejection(
    traffic: Traffic, found: Sequence[Flow], tiers: Sequence[Tier], tier: Tier, tree: Tree
) -> Ejection:
    rule = traffic.ejection
    kinds = [
        _Caller(count, rate / count, tier, rule)
        for rate, count in callers_of(tier.name, found, tiers, traffic)
    ]
    calls = calls_until_ejected(rule)
    callers = sum(kind.count for kind in kinds)
    ejects_s = [(kind, kind.ejects_s()) for kind in kinds]
    made = sum(kind.count * kind.rate * length_s for kind, length_s in ejects_s)
    hang_s = _hang_s(tier.name, tree)
    most = math.floor(tier.pods * rule.max_ejection_percent / 100)
    left = tier.pods - most
    return Ejection(
        tier=tier.name,
        callers=callers,
        pair_calls_per_s=min(kind.rate for kind in kinds) / tier.pods,
        failing_calls=callers * calls * rule.failing_ratio,
        caller_s=sum(kind.count * length_s for kind, length_s in ejects_s) / callers,
        all_s=_all_eject_s(kinds, rule),
        failing_ratio=rule.failing_ratio * callers * calls / made,
        slow_calls=None if hang_s is None else sum(k.count * k.slow(hang_s) for k in kinds),
        slow_s=None if hang_s is None else sum(k.count * k.slow_s(hang_s) for k in kinds) / callers,
        max_ejected=most,
        busy_after_one=_busy(tier, tier.pods - 1),
        busy_after_most=_busy(tier, left),
        left_ratio=left / tier.pods,
        breaker_opens=_breaker_opens(min(kind.rate for kind in kinds), rule, tree),
    )


class _Caller:
    """Is one kind of caller of a tier."""

    def __init__(self, count: int, rate: float, tier: Tier, rule: EjectionRule) -> None:
        self.count = count
        self.rate = rate
        self._pods, self._rule = tier.pods, rule
        self._time_s = tier.time.mean_s
        self._load = rate * tier.time.mean_s / tier.pods

    def sent(self, until_s: float) -> float:
        """Return the calls of one to a pod that fails at once, from its first failure on.

        The calls that it has there from before keep the balancer from seeing that it answers at
        once. They go as calls do, and a few less than others have are enough: the share of the pod
        grows from its even one as `1 − exp(−t / T)` with `T = W · min(1, 3.7 / m)`, where 3.7 is
        two standard deviations of what the balancer evens out.
        """
        even = self.rate / self._pods
        full = self.rate * drawn_ratio(self._pods, quick_wins(self._load))
        seen_s = self._time_s * min(1.0, _SEEN / self._load)
        gone = seen_s * -math.expm1(-until_s / seen_s)
        return full * until_s - (full - even) * gone

    def ejects_s(self) -> float:
        """Return how long one takes to eject such a pod, seconds."""
        return _first(lambda until_s: self.sent(until_s) >= calls_until_ejected(self._rule))

    def slow(self, hang_s: float) -> float:
        """Return the calls of one that time out."""
        failures = self._rule.consecutive_errors
        return slow_sends(self.rate, self._pods, self._load, failures, hang_s)

    def slow_s(self, hang_s: float) -> float:
        """Return how long one takes to find a slow pod out, seconds."""
        return self._rule.consecutive_errors / (self.rate / self._pods) + hang_s


def _all_eject_s(kinds: Sequence[_Caller], rule: EjectionRule) -> float:
    """Return after how long the last caller has ejected the pod, seconds; the median of that.

    Callers know nothing of each other: that all have is the product of what each has.
    """

    def have(until_s: float) -> bool:
        each = ((kind.count, ejected_ratio(rule, kind.sent(until_s))) for kind in kinds)
        return sum(count * math.log(max(1e-300, ratio)) for count, ratio in each) >= math.log(0.5)

    return _first(have)


def _first(holds: Callable[[float], bool]) -> float:
    """Return the first instant at which something holds that then goes on to hold, seconds."""
    low, high = 0.0, 1.0
    while not holds(high) and high < _LONGEST_S:
        low, high = high, 2 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _hang_s(name: str, tree: Tree) -> float | None:
    """Return after how long a slow tool itself says that it was too slow; None for streams."""
    if hop_of(name) != TOOL:
        return None
    given_s = min(leg.deadline_s for leg in tree.legs if leg.callee == TOOL)
    return given_s - margin_s(given_s)


def _busy(tier: Tier, pods: int) -> float:
    return tier.busy_ratio * tier.pods / pods if pods > 0 else math.inf


def _breaker_opens(rate: float, rule: EjectionRule, tree: Tree) -> bool:
    """Tell whether the failures that eject a pod may be too large a part of a breaker's window."""
    breaker = tree.policies.breaker
    if not tree.engine or breaker.mode is not Mode.ENFORCE:
        return False
    seen = max(float(breaker.min_calls), rate * breaker.window_s)
    return rule.consecutive_errors / seen > breaker.max_failure_ratio
