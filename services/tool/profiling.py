"""Describes tables so that a question can be turned into a query."""

from typing import Any

import duckdb
from pydantic import JsonValue

from services.tool.column_types import Kind
from services.tool.dataset import Dataset, Table
from services.tool.interruption import InterruptedWorkError, Interruption
from services.tool.query import json_value
from services.tool.sql_text import identifier
from services.tool.typed_columns import Column

MAX_LISTED_VALUES = 50
MAX_VALUE_CHARS = 200


def profile(dataset: Dataset, interruption: Interruption) -> dict[str, JsonValue]:
    """Return what is in every table of the dataset.

    Raises:
        InterruptedWorkError: the caller has gone.
    """
    cursor = dataset.cursor()
    try:
        interruption.watch(cursor)
        return {"tables": [_table(cursor, table, interruption) for table in dataset.tables]}
    except duckdb.InterruptException:
        raise InterruptedWorkError from None
    finally:
        interruption.watch(None)
        cursor.close()


def _table(
    cursor: duckdb.DuckDBPyConnection, table: Table, interruption: Interruption
) -> dict[str, JsonValue]:
    columns: list[JsonValue] = []
    for column in table.columns:
        interruption.check()
        columns.append(_column(cursor, table, column))
    return {
        "name": table.name,
        "source": table.source_name,
        "row_count": table.row_count,
        "columns": columns,
        "notes": list(table.notes),
    }


def _column(
    cursor: duckdb.DuckDBPyConnection, table: Table, column: Column
) -> dict[str, JsonValue]:
    name = identifier(column.name)
    counts: tuple[Any, ...] = cursor.execute(
        f"SELECT count(*) - count({name}), count(DISTINCT {name}), min({name}), max({name}) "
        f"FROM {identifier(table.name)}"
    ).fetchone() or (0, 0, None, None)
    described: dict[str, JsonValue] = {
        "name": column.name,
        "type": column.kind.value,
        "null_count": counts[0],
        "distinct_count": counts[1],
        "min": _short(counts[2]),
        "max": _short(counts[3]),
    }
    if column.kind in (Kind.TEXT, Kind.BOOLEAN) and counts[1] <= MAX_LISTED_VALUES:
        rows = cursor.execute(
            f"SELECT {name} FROM {identifier(table.name)} WHERE {name} IS NOT NULL "
            f"GROUP BY {name} ORDER BY count(*) DESC, {name}"
        ).fetchall()
        described["values"] = [_short(value) for (value,) in rows]
    return described


def _short(value: Any) -> JsonValue:
    plain = json_value(value)
    return plain[:MAX_VALUE_CHARS] if isinstance(plain, str) else plain
