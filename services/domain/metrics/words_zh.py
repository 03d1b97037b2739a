"""Puts numbers, periods and names of facts into Chinese words."""

from services.domain.metrics.facts import Facts, Group
from services.domain.metrics.numbers import (
    change_text,
    percent_text,
    signed_percent_text,
    value_text,
)
from services.domain.metrics.query import (
    FlagFilter,
    MetricQuery,
    NumberFilter,
    Unit,
    ValueFilter,
)

_MOST_NAMES = 5


def value_of(facts: Facts, value: float | None) -> str:
    """Print a value of the facts."""
    return value_text(facts.query.measure, value, "zh")


def change_of(facts: Facts, group: Group) -> str:
    """Print the size of a change, and its percentage."""
    by = change_text(facts.query.measure, group.change or 0.0, "zh")
    if group.change_ratio is None or facts.query.measure.unit is Unit.RATIO:
        return f"{by}（新增）" if group.new else by
    return f"{by}（{signed_percent_text(group.change_ratio)}）"


def signed_change(facts: Facts, group: Group) -> str:
    """Print a change with its sign, and its percentage."""
    sign = "+" if (group.change or 0) > 0 else "−" if (group.change or 0) < 0 else ""
    by = sign + change_text(facts.query.measure, group.change or 0.0, "zh")
    if group.change_ratio is None or facts.query.measure.unit is Unit.RATIO:
        return f"{by}，新增" if group.new else by
    return f"{by}，{signed_percent_text(group.change_ratio)}"


def share_of(group: Group) -> str:
    """Print the part of the whole."""
    return percent_text(group.share) if group.share is not None else "–"


def when(query: MetricQuery) -> str:
    """Name the days that the answer is about."""
    if query.period is not None:
        return f"{query.period.full_name('zh')}，"
    if query.coverage is not None:
        return (
            f"全部数据（{query.coverage.first.isoformat()}至{query.coverage.last.isoformat()}）中，"
        )
    return ""


def whose(query: MetricQuery) -> str:
    """Name the rows that the answer is about."""
    parts = []
    for found in query.filters:
        match found:
            case ValueFilter(column=column, values=values, excluded=excluded) if set(values) != set(
                query.focus
            ):
                # A region speaks for itself, a single character does not.
                what = f"{column}为" if any(len(value) < 2 for value in values) else ""
                listed = what + "、".join(values)
                parts.append(f"不含{listed}的" if excluded else f"{listed}的")
            case FlagFilter(label=label, wanted=wanted):
                parts.append(f"{'' if wanted else '未'}{label}的")
            case NumberFilter(column=column, operator=operator, limit=limit):
                parts.append(f"（{column or query.measure.label}{operator}{limit:,g}）")
            case _:
                pass
    return "".join(parts)


def thing(query: MetricQuery) -> str:
    """Return what a group is called."""
    return query.dimension.label if query.dimension else "分组"


def some(names: list[str]) -> str:
    """List a few of many names."""
    listed = "、".join(names[:_MOST_NAMES])
    return listed if len(names) <= _MOST_NAMES else f"{listed}等{len(names):,}个"
