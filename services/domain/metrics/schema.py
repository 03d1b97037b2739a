"""Reads the tables that the `profile` tool found into typed columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import TypeAlias

JsonValue: TypeAlias = (
    str | int | float | bool | Sequence["JsonValue"] | Mapping[str, "JsonValue"] | None
)


class ColumnType(StrEnum):
    """Names what a column holds."""

    DATE = "date"
    TIMESTAMP = "timestamp"
    NUMBER = "number"
    INTEGER = "integer"
    TEXT = "text"
    BOOLEAN = "boolean"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """Describes one column as it was found."""

    name: str
    """As the file spells it."""
    type: ColumnType
    """What its values are."""
    null_count: int = 0
    """Rows without a value."""
    distinct_count: int = 0
    """Different values, without NULL."""
    min: JsonValue = None
    """The smallest value; dates as ISO text."""
    max: JsonValue = None
    """The largest value; dates as ISO text."""
    values: tuple[str, ...] = ()
    """The most frequent values of text and boolean columns with few; else empty."""

    @property
    def numeric(self) -> bool:
        """Tell whether the values can be added."""
        return self.type in (ColumnType.NUMBER, ColumnType.INTEGER)

    @property
    def temporal(self) -> bool:
        """Tell whether the database itself calls the values dates."""
        return self.type in (ColumnType.DATE, ColumnType.TIMESTAMP)

    def min_date(self) -> date | None:
        """Return the first day, when the values are dates."""
        return iso_date(self.min)

    def max_date(self) -> date | None:
        """Return the last day, when the values are dates."""
        return iso_date(self.max)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Describes one table as it was found."""

    name: str
    """As SQL may name it."""
    row_count: int
    """How many rows it has."""
    columns: tuple[Column, ...]
    """Its columns, in the file's order."""

    @property
    def column_names(self) -> tuple[str, ...]:
        """Return the names, in order."""
        return tuple(column.name for column in self.columns)


def iso_date(value: JsonValue) -> date | None:
    """Return the day that an ISO date or timestamp names, None for anything else."""
    if not isinstance(value, str) or len(value) < 10:
        return None
    try:
        return date.fromisoformat(value[:10])
    except ValueError:
        return None


def tables_of(profile: Mapping[str, JsonValue]) -> tuple[Table, ...]:
    """Read the answer of the `profile` tool; what does not look like a table is left out."""
    found = profile.get("tables")
    if not isinstance(found, Sequence) or isinstance(found, str):
        return ()
    return tuple(_table(entry) for entry in found if isinstance(entry, Mapping))


def _table(entry: Mapping[str, JsonValue]) -> Table:
    columns = entry.get("columns")
    listed = columns if isinstance(columns, Sequence) and not isinstance(columns, str) else ()
    return Table(
        name=str(entry.get("name", "")),
        row_count=_count(entry.get("row_count")),
        columns=tuple(_column(column) for column in listed if isinstance(column, Mapping)),
    )


def _column(entry: Mapping[str, JsonValue]) -> Column:
    kind = str(entry.get("type", "text"))
    values = entry.get("values")
    listed = values if isinstance(values, Sequence) and not isinstance(values, str) else ()
    return Column(
        name=str(entry.get("name", "")),
        type=ColumnType(kind) if kind in set(ColumnType) else ColumnType.TEXT,
        null_count=_count(entry.get("null_count")),
        distinct_count=_count(entry.get("distinct_count")),
        min=entry.get("min"),
        max=entry.get("max"),
        values=tuple(str(value) for value in listed if value is not None),
    )


def _count(value: JsonValue) -> int:
    """Return a whole number; a wire that knows only floats sends 12.0 for 12."""
    return int(value) if isinstance(value, int | float) else 0
