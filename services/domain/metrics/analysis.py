"""Leads a question from the profile of the data to one query, lookups included."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from services.domain.metrics.axis import DateAxis, Encoding
from services.domain.metrics.coverage import Coverage
from services.domain.metrics.errors import NoDataError
from services.domain.metrics.names import parse_name
from services.domain.metrics.planner import plan
from services.domain.metrics.query import MetricQuery
from services.domain.metrics.reading import Reading, read, unlisted_columns
from services.domain.metrics.roles import Catalog
from services.domain.metrics.schema import ColumnType, JsonValue, Table, iso_date
from services.domain.metrics.sql import coverage_sql, lookup_sql
from services.domain.metrics.text import Text

_ORDINARY_DATE_WORDS = {
    "date", "time", "day", "month", "year", "timestamp", "order", "sales", "sale", "created", "at",
    "on", "invoice", "transaction", "purchase",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """Is a query whose rows the analysis needs before it can plan."""

    sql: str
    """The query."""
    about: str
    """`coverage` or `values`."""


class Analysis:
    """Plans one question over the tables of a profile.

    Ask `lookup()` until it returns None, run each query and give its rows to `learn()`; then
    `query()` plans.
    """

    def __init__(self, question: str, tables: Sequence[Table], language: str) -> None:
        """Take the question, the tables and the language of the answer.

        Raises:
            NoDataError: no table has rows.
        """
        filled = [table for table in tables if table.row_count and table.columns]
        if not filled:
            raise NoDataError(tables[0].name if tables else "data")
        self._question = question
        self._language = language
        catalogs = [Catalog(table) for table in filled]
        self._catalog = catalogs[0]
        if len(catalogs) > 1:
            self._catalog = max(
                catalogs, key=lambda found: read(question, found, None, language).strength
            )
        self._catalog.axes = _named_first(question, self._catalog.axes)
        self._coverage = _known_coverage(self._catalog)
        self._looked_up = False

    @property
    def table(self) -> Table:
        """Return the table that the question is about."""
        return self._catalog.table

    def lookup(self) -> Lookup | None:
        """Return the next query that is needed before planning, None when there is none."""
        if self._catalog.axes and self._coverage is None:
            sql = coverage_sql(self.table, self._catalog.axes[0])
            return Lookup(sql=sql, about="coverage")
        columns = () if self._looked_up else unlisted_columns(self._catalog)
        reading = self._reading() if columns else None
        if reading is not None and (reading.leftover or reading.numbered):
            return Lookup(sql=lookup_sql(self.table, columns, self._question), about="values")
        return None

    def learn(self, lookup: Lookup, rows: Sequence[Mapping[str, JsonValue]]) -> None:
        """Take the rows of a lookup."""
        if lookup.about == "coverage":
            self._learn_coverage(rows)
        else:
            self._learn_values(rows)

    def query(self) -> MetricQuery:
        """Return the query that answers the question.

        Raises:
            NotUnderstoodError: the question names nothing that the data has.
        """
        return plan(self._reading())

    def _reading(self) -> Reading:
        return read(self._question, self._catalog, self._coverage, self._language)

    def _learn_coverage(self, rows: Sequence[Mapping[str, JsonValue]]) -> None:
        row = rows[0] if rows else {}
        first, last = iso_date(row.get("first_day")), iso_date(row.get("last_day"))
        if first is None or last is None:
            self._catalog.axes = self._catalog.axes[1:]
            self._coverage = _known_coverage(self._catalog)
            return
        count = row.get("day_count")
        days = int(count) if isinstance(count, int | float) else 0
        self._coverage = Coverage(first=first, last=last, day_count=days)

    def _learn_values(self, rows: Sequence[Mapping[str, JsonValue]]) -> None:
        self._looked_up = True
        found: dict[str, list[str]] = {}
        for row in rows:
            found.setdefault(str(row.get("column_name")), []).append(str(row.get("value")))
        columns = tuple(
            replace(column, values=tuple(found[column.name])) if column.name in found else column
            for column in self.table.columns
        )
        axes = self._catalog.axes
        self._catalog = Catalog(replace(self.table, columns=columns))
        self._catalog.axes = axes


def _named_first(question: str, axes: tuple[DateAxis, ...]) -> tuple[DateAxis, ...]:
    """Put the dates first that the question names: `delivered in July`, 发货."""
    text = Text.of(question)

    def named(axis: DateAxis) -> bool:
        name = parse_name(axis.column.name)
        own = [word for word in name.words if word not in _ORDINARY_DATE_WORDS]
        own = [re.sub("(日期|时间|日)$", "", word) for word in own]
        return any(text.find(word) for word in own if len(word) > 1)

    return tuple(sorted(axes, key=lambda axis: not named(axis)))


def _known_coverage(catalog: Catalog) -> Coverage | None:
    """Read the coverage from the profile, when the date column is a plain one."""
    if not catalog.axes:
        return None
    axis: DateAxis = catalog.axes[0]
    first, last = axis.column.min_date(), axis.column.max_date()
    native = axis.encoding is Encoding.NATIVE and axis.column.type in (
        ColumnType.DATE,
        ColumnType.TIMESTAMP,
    )
    if not native or first is None or last is None:
        return None
    return Coverage(first=first, last=last, day_count=axis.column.distinct_count)
