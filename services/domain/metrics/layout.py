"""Lays facts out as the arguments of the `chart` and `pdf` tools."""

from pydantic import JsonValue

from services.domain.metrics.facts import Facts, Group
from services.domain.metrics.prose import title_of
from services.domain.metrics.query import Intent, Unit

_MAX_BARS = 12
_MAX_POINTS = 60
_MAX_TABLE_ROWS = 40


def chart_arguments(facts: Facts) -> dict[str, JsonValue] | None:
    """Return what to draw; None when there is nothing to compare in a picture."""
    query = facts.query
    line = query.intent is Intent.TREND
    groups = facts.groups[: _MAX_POINTS if line else _MAX_BARS]
    if not groups and facts.total.previous is not None and query.comparison and query.period:
        return _two_bars(facts)
    if len(groups) < 2:
        return None
    series: list[JsonValue] = []
    if query.comparison is not None:
        series.append(_series(query.comparison.name(query.language), groups, facts, "previous"))
    name = query.period.name(query.language) if query.period else query.measure.label
    series.append(_series(name, groups, facts, "value"))
    return {
        "kind": "line" if line else "bar",
        "title": title_of(facts),
        "x_label": query.dimension.label if query.dimension else "",
        "y_label": _axis_label(facts),
        "labels": [group.name for group in groups],
        "series": series,
        "language": query.language,
    }


def _two_bars(facts: Facts) -> dict[str, JsonValue]:
    query, total = facts.query, facts.total
    periods = (query.comparison, query.period)
    labels: list[JsonValue] = [period.name(query.language) for period in periods if period]
    values: list[JsonValue] = [_scaled(facts, total.previous), _scaled(facts, total.value)]
    return {
        "kind": "bar",
        "title": title_of(facts),
        "x_label": "",
        "y_label": _axis_label(facts),
        "labels": labels,
        "series": [{"name": query.measure.label, "values": values}],
        "language": query.language,
    }


def table_arguments(facts: Facts) -> dict[str, JsonValue] | None:
    """Return the table of a report; None when there is only one number."""
    query = facts.query
    if not facts.groups:
        return None
    groups = facts.groups[:_MAX_TABLE_ROWS]
    columns: list[JsonValue] = [
        query.dimension.label if query.dimension else "",
        query.period.name(query.language) if query.period else _axis_label(facts),
    ]
    compared = query.comparison is not None
    if query.comparison is not None:
        words = ("变化", "变化率") if query.language == "zh" else ("change", "change %")
        columns += [query.comparison.name(query.language), *words]
    elif any(group.share is not None for group in groups):
        columns.append("占比 %" if query.language == "zh" else "share %")
    rows: list[JsonValue] = [_row(facts, group, compared, len(columns)) for group in groups]
    return {"columns": columns, "rows": rows}


def _row(facts: Facts, group: Group, compared: bool, width: int) -> JsonValue:
    row: list[JsonValue] = [group.name, _scaled(facts, group.value)]
    if compared:
        ratio = None if group.change_ratio is None else round(group.change_ratio * 100, 1)
        row += [_scaled(facts, group.previous), _scaled(facts, group.change), ratio]
    elif width == 3:
        row.append(None if group.share is None else round(group.share * 100, 1))
    return row


def _series(name: str, groups: tuple[Group, ...], facts: Facts, part: str) -> JsonValue:
    values: list[JsonValue] = [
        _scaled(facts, group.value if part == "value" else group.previous) for group in groups
    ]
    return {"name": name, "values": values}


def _scaled(facts: Facts, value: float | None) -> float | None:
    """Return what a reader of a chart expects: percent for ratios, no dust in the decimals."""
    if value is None:
        return None
    if facts.query.measure.unit is Unit.RATIO:
        return round(value * 100, 2)
    return round(value, 2) if abs(value) >= 1 else round(value, 4)


def _axis_label(facts: Facts) -> str:
    measure = facts.query.measure
    unit = "%" if measure.unit is Unit.RATIO else measure.suffix
    return f"{measure.label} ({unit})" if unit else measure.label
