"""Computes the facts of an answer from the rows of its query; no number comes from elsewhere."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta

from services.domain.metrics.period import Grain, Period, add_months, containing
from services.domain.metrics.query import Fold, Intent, MetricQuery, OrderBy, RowCount
from services.domain.metrics.schema import JsonValue, iso_date

_MAX_FILLED_STEPS = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Holds the facts of one group, or of one step of time."""

    name: str
    """As the data spells it; for time, the name of the step."""
    value: float | None
    """The measure in the period; None when it cannot be computed there."""
    row_count: int = 0
    """How many rows stand behind it."""
    previous: float | None = None
    """The measure in the period that is compared with."""
    change: float | None = None
    """Value minus previous."""
    change_ratio: float | None = None
    """The change as a part of the previous value; None when that is zero or missing."""
    share: float | None = None
    """The part of the total; None when parts do not add up."""
    new: bool = False
    """Whether it had nothing before and has something now."""
    partial: bool = False
    """Whether it is a step of time that the data, or the question, covers only in part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Holds everything that an answer may say."""

    query: MetricQuery
    """What was asked."""
    groups: tuple[Group, ...] = ()
    """All groups that came back, in the order of the answer."""
    total: Group
    """The measure over all rows of the question."""
    group_count: int = 0
    """How many groups there are, also when fewer came back."""
    unnamed_count: int = 0
    """Rows that have no group."""

    @property
    def shown(self) -> tuple[Group, ...]:
        """Return the groups that the answer lists."""
        return self.groups[: self.query.limit]

    @property
    def complete(self) -> bool:
        """Tell whether every group came back, so that the last one is the last."""
        return len(self.groups) >= self.group_count

    @property
    def named_total(self) -> float | None:
        """Return the measure over all rows that have a group, when that can be told."""
        summed = isinstance(self.query.measure.expression, Fold | RowCount)
        if not (self.unnamed_count and summed and self.query.measure.additive):
            return self.total.value
        if not self.complete:
            return None
        return round(sum(group.value or 0.0 for group in self.groups), 9)

    @property
    def empty(self) -> bool:
        """Tell whether no row matched."""
        return self.total.row_count == 0 and (self.total.previous in (None, 0))

    @property
    def compared(self) -> bool:
        """Tell whether there is something to compare with."""
        return self.query.comparison is not None

    @property
    def headline(self) -> Group:
        """Return the group that the answer begins with, or the total."""
        if self.query.focus and self.query.intent is Intent.SHARE:
            for group in self.groups:
                if group.name in self.query.focus:
                    return group
        return self.groups[0] if self.groups else self.total

    @property
    def ties(self) -> tuple[Group, ...]:
        """Return the other groups that are as good as the first."""
        if not self.groups or not self.query.ranked:
            return ()
        first = self.groups[0]
        return tuple(
            g for g in self.groups[1:] if _same(_key(self.query, g), _key(self.query, first))
        )

    def as_json(self) -> dict[str, JsonValue]:
        """Return the facts for programs."""
        query = self.query
        return {
            "intent": query.intent.value,
            "measure": query.measure.label,
            "unit": query.measure.suffix or query.measure.unit.value,
            "dimension": query.dimension.label if query.dimension else None,
            "period": _dates(query.period),
            "comparison": _dates(query.comparison),
            "headline": _group_json(self.headline),
            "groups": [_group_json(group) for group in self.shown],
            "total": _group_json(self.total),
            "group_count": self.group_count,
        }


def facts_of(query: MetricQuery, rows: Sequence[Mapping[str, JsonValue]]) -> Facts:
    """Compute the facts of a query from its rows, as the `sql` tool returns them."""
    if query.dimension is None:
        row = rows[0] if rows else {}
        return Facts(query=query, total=_group(query, row, "", ("value", "row_count", "previous")))
    total = _total(query, rows)
    groups = [
        replace(
            _with_share(query, _group(query, row, _name(query, row), _KEYS), total),
            partial=_partial(query, row),
        )
        for row in rows
    ]
    if query.intent is Intent.TREND:
        groups = _filled(query, rows, groups)
    elif query.order_by is not OrderBy.TIME:
        groups.sort(key=lambda group: _sort_key(query, group))
        if not query.descending and any(not group.partial for group in groups):
            # A month that has only begun is no low one.
            groups.sort(key=lambda group: group.partial)
    counted = _whole(rows[0].get("entity_count")) if rows else 0
    return Facts(
        query=query,
        groups=tuple(groups),
        total=total,
        group_count=max(counted, len(groups)),
        unnamed_count=_whole(rows[0].get("unnamed_count")) if rows else 0,
    )


_KEYS = ("value", "row_count", "previous")
_TOTAL_KEYS = ("total", "total_row_count", "previous_total")


def _total(query: MetricQuery, rows: Sequence[Mapping[str, JsonValue]]) -> Group:
    return _group(query, rows[0] if rows else {}, "", _TOTAL_KEYS)


def _group(
    query: MetricQuery, row: Mapping[str, JsonValue], name: str, keys: tuple[str, str, str]
) -> Group:
    value, previous = _number(row.get(keys[0])), _number(row.get(keys[2]))
    row_count = _whole(row.get(keys[1]))
    if query.measure.additive:
        value = value or 0.0
        previous = (previous or 0.0) if query.comparison else None
    change = round(value - previous, 9) if value is not None and previous is not None else None
    ratio = change / abs(previous) if change is not None and previous else None
    return Group(
        name=name,
        value=value,
        row_count=row_count,
        previous=previous,
        change=change,
        change_ratio=ratio,
        new=bool(query.comparison and value and not previous),
    )


def _with_share(query: MetricQuery, group: Group, total: Group) -> Group:
    whole = total.value
    if not query.measure.additive or group.value is None or not whole or whole <= 0:
        return group
    if group.value < 0:
        return group
    return replace(group, share=group.value / whole)


def _partial(query: MetricQuery, row: Mapping[str, JsonValue]) -> bool:
    """Tell whether a step of time is cut by the end of the data, or by the question."""
    start, dimension = iso_date(row.get("entity")), query.dimension
    if start is None or dimension is None or dimension.grain is None or query.coverage is None:
        return False
    step = containing(start, dimension.grain)
    asked = query.period
    cut = asked is not None and not (asked.start <= step.start and step.end <= asked.end)
    return not query.coverage.covers(step) or (cut and not _same_end(query, step))


def _same_end(query: MetricQuery, step: Period) -> bool:
    """Tell whether the question's period ends only where the data does, inside a covered step."""
    asked, coverage = query.period, query.coverage
    if asked is None or coverage is None:
        return False
    return asked.start <= step.start and asked.end >= min(step.end, coverage.last)


def _name(query: MetricQuery, row: Mapping[str, JsonValue]) -> str:
    entity = row.get("entity")
    dimension = query.dimension
    if dimension is None or dimension.column:
        return str(entity)
    if dimension.weekday:
        number = _whole(entity)
        return "周" + "一二三四五六日"[number - 1] if _chinese(query) else _WEEKDAYS[number - 1]
    start = iso_date(entity)
    if start is None:
        return str(entity)
    return step_name(start, dimension.grain or Grain.MONTH, "zh" if _chinese(query) else "en")


_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def _chinese(query: MetricQuery) -> bool:
    return query.language == "zh"


def step_name(start: date, grain: Grain, language: str) -> str:
    """Return the name of the step of time that begins on the day."""
    if grain in (Grain.DAY, Grain.WEEK):
        return start.isoformat()
    return containing(start, grain).name(language)


def _filled(
    query: MetricQuery, rows: Sequence[Mapping[str, JsonValue]], groups: list[Group]
) -> list[Group]:
    """Put the steps in order and add those without rows: 0 for sums and counts, else nothing."""
    grain = query.dimension.grain if query.dimension else None
    placed = {
        start: group
        for row, group in zip(rows, groups, strict=True)
        if (start := iso_date(row.get("entity"))) is not None
    }
    if not placed or grain is None:
        return groups
    language = "zh" if _chinese(query) else "en"
    filled: list[Group] = []
    step, last = min(placed), max(placed)
    while step <= last and len(filled) < _MAX_FILLED_STEPS:
        missing = Group(
            name=step_name(step, grain, language), value=0.0 if query.measure.additive else None
        )
        filled.append(_changed(placed.get(step, missing), filled[-1] if filled else None))
        step = _next(step, grain)
    return filled


def _changed(group: Group, before: Group | None) -> Group:
    """Add the change from one step of time to the next."""
    if before is None or before.value is None or group.value is None:
        return group
    change = round(group.value - before.value, 9)
    ratio = change / abs(before.value) if before.value else None
    return replace(group, previous=before.value, change=change, change_ratio=ratio)


def _next(step: date, grain: Grain) -> date:
    if grain in (Grain.DAY, Grain.WEEK):
        return step + timedelta(days=7 if grain is Grain.WEEK else 1)
    months = {Grain.MONTH: 1, Grain.QUARTER: 3, Grain.HALF: 6, Grain.YEAR: 12}
    return add_months(step, months.get(grain, 1))


def _key(query: MetricQuery, group: Group) -> float | None:
    if query.order_by is OrderBy.CHANGE:
        return group.change
    if query.order_by is OrderBy.CHANGE_RATIO:
        return group.change_ratio
    return group.value


def _sort_key(query: MetricQuery, group: Group) -> tuple[bool, float, float, str]:
    sign = -1 if query.descending else 1
    key = _key(query, group)
    second = group.change if query.order_by is OrderBy.CHANGE_RATIO else group.value
    return key is None, sign * (key or 0.0), sign * (second or 0.0), group.name


def _same(one: float | None, two: float | None) -> bool:
    if one is None or two is None:
        return False
    return abs(one - two) <= 1e-9 * max(1.0, abs(one), abs(two))


def _number(value: JsonValue) -> float | None:
    """Return the number, without the dust that adding binary fractions leaves."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return round(float(value), 9)
    try:
        return round(float(str(value)), 9)
    except ValueError:
        return None


def _whole(value: JsonValue) -> int:
    return int(_number(value) or 0)


def _dates(period: Period | None) -> JsonValue:
    if period is None:
        return None
    return {"start": period.start.isoformat(), "end": period.end.isoformat()}


def _group_json(group: Group) -> dict[str, JsonValue]:
    return {
        "name": group.name,
        "value": group.value,
        "previous": group.previous,
        "change": group.change,
        "change_ratio": group.change_ratio,
        "share": group.share,
        "row_count": group.row_count,
    }
