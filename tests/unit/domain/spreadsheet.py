"""Computes what a spreadsheet would show, by loops over the CSV files and nothing else."""

import csv
from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import date
from pathlib import Path

Row = dict[str, str]
Span = tuple[str, str]

_TABLES = Path(__file__).parent / "metrics" / "tables"


def read(name: str) -> list[Row]:
    with (_TABLES / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def keep(
    rows: Iterable[Row], day: str = "", within: Span = ("", "9999"), **where: str
) -> list[Row]:
    """Return the rows of the days `within`, both included, whose columns have the values."""
    return [
        row
        for row in rows
        if (not day or within[0] <= row[day] <= within[1])
        and all(row[column] == value for column, value in where.items())
    ]


def add(rows: Iterable[Row], column: str) -> float:
    return round(sum(float(row[column]) for row in rows if row[column]), 6)


def distinct(rows: Iterable[Row], column: str) -> int:
    return len({row[column] for row in rows if row[column]})


def by(rows: Iterable[Row], column: str | Callable[[Row], str]) -> dict[str, list[Row]]:
    """Return the rows of each group; rows without one are left out."""
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        key = row[column] if isinstance(column, str) else column(row)
        if key:
            groups[key].append(row)
    return groups


def highest(values: dict[str, float]) -> str:
    return max(values, key=lambda name: values[name])


def lowest(values: dict[str, float]) -> str:
    return min(values, key=lambda name: values[name])


def weekday(text: str) -> int:
    return date.fromisoformat(text).isoweekday()
