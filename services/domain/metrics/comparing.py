"""Compares groups of facts, for prose in any language."""

from services.domain.metrics.facts import Facts, Group
from services.domain.metrics.query import MetricQuery, OrderBy


def same_way(one: Group, two: Group) -> bool:
    """Tell whether two groups both grew, or both fell."""
    return (one.change or 0.0) * (two.change or 0.0) > 0


def other_way(facts: Facts) -> Group | None:
    """Return the first by the other way of measuring growth, when it is another group."""
    query = facts.query
    by_ratio = query.order_by is OrderBy.CHANGE
    scored = [
        (g.change_ratio if by_ratio else g.change, g)
        for g in facts.groups
        if (g.change_ratio if by_ratio else g.change) is not None
    ]
    if not scored or not facts.complete:
        return None
    pick = max if query.descending else min
    found = pick(scored, key=lambda pair: pair[0] or 0.0)[1]
    return None if found is facts.groups[0] else found


def whole_steps(facts: Facts) -> tuple[Group, ...]:
    """Return the steps of time that are covered whole; all, when fewer than two are."""
    whole = tuple(group for group in facts.groups if not group.partial)
    return whole if len(whole) >= 2 else facts.groups


def as_low(facts: Facts, last: Group) -> list[Group]:
    """Return the groups with the value of the last one, itself included."""
    return [g for g in facts.groups if g.value == last.value and not g.partial] or [last]


def adds_up(query: MetricQuery) -> bool:
    """Tell whether a sum over all groups says something."""
    return query.group_limit is None and not (query.dimension and query.dimension.weekday)
