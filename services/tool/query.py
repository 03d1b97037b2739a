"""Answers a guarded query with JSON, bounded in rows, bytes and memory."""

import math
from collections.abc import Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import duckdb
from pydantic import JsonValue

from services.tool.column_types import Kind
from services.tool.dataset import Dataset
from services.tool.errors import SqlInvalidError, SqlRefusedError
from services.tool.interruption import InterruptedWorkError, Interruption
from services.tool.query_guard import guarded
from services.tool.typed_columns import kind_of

FETCH_ROWS = 500
MIDNIGHT = "T00:00:00"


def answer(
    dataset: Dataset,
    query: str,
    *,
    max_rows: int,
    max_bytes: int,
    interruption: Interruption,
) -> dict[str, JsonValue]:
    """Return the columns and rows of a query's result.

    Args:
        dataset: the tables that the query may read.
        query: SQL from anywhere.
        max_rows: most rows to return; more set `truncated`.
        max_bytes: size of the rows on the wire, roughly; more set `truncated`.
        interruption: stops the query when the caller goes.

    Raises:
        SqlRefusedError: it is not one read-only statement over these tables.
        SqlInvalidError: it names what does not exist, or cannot be computed.
        InterruptedWorkError: the caller has gone.
    """
    safe = guarded(query, [table.name for table in dataset.tables])
    cursor = dataset.cursor()
    try:
        interruption.watch(cursor)
        _check_statement(cursor, safe)
        cursor.execute("BEGIN TRANSACTION READ ONLY")
        cursor.execute(safe)
        return _result(cursor, max_rows=max_rows, max_bytes=max_bytes)
    except duckdb.InterruptException:
        raise InterruptedWorkError from None
    except duckdb.OutOfMemoryException:
        raise SqlInvalidError("it needs more memory than allowed; aggregate or filter") from None
    except duckdb.Error as error:
        raise SqlInvalidError(_reason(error)) from None
    finally:
        interruption.watch(None)
        # Ends the transaction as well.
        cursor.close()


def _check_statement(cursor: duckdb.DuckDBPyConnection, query: str) -> None:
    # The database parses for itself; if it sees something else than the guard did, it wins.
    statements = cursor.extract_statements(query)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise SqlRefusedError("the database does not take it for one SELECT statement")


def _result(
    cursor: duckdb.DuckDBPyConnection, *, max_rows: int, max_bytes: int
) -> dict[str, JsonValue]:
    names = [str(name) for name, *_ in cursor.description or ()]
    kinds = [kind_of(str(database_type)) for _, database_type, *_ in cursor.description or ()]
    rows: list[list[JsonValue]] = []
    size = 0
    truncated = False
    while not truncated:
        fetched = cursor.fetchmany(FETCH_ROWS)
        if not fetched:
            break
        for row in fetched:
            values = [json_value(value) for value in row]
            size += _size(values)
            if len(rows) == max_rows or size > max_bytes:
                truncated = True
                break
            rows.append(values)
    kinds = [_plain_kind(kind, rows, position) for position, kind in enumerate(kinds)]
    return {
        "columns": [{"name": n, "type": k.value} for n, k in zip(names, kinds, strict=True)],
        "rows": [list(row) for row in rows],
        "row_count": len(rows),
        "truncated": truncated,
    }


def _plain_kind(kind: Kind, rows: list[list[JsonValue]], position: int) -> Kind:
    """Turn a column of midnights, such as date_trunc makes of dates, back into dates."""
    if kind is not Kind.TIMESTAMP:
        return kind
    values = [str(row[position]) for row in rows if row[position] is not None]
    if not values or not all(value.endswith(MIDNIGHT) for value in values):
        return kind
    for row in rows:
        if row[position] is not None:
            row[position] = str(row[position]).removesuffix(MIDNIGHT)
    return Kind.DATE


def _size(values: Sequence[JsonValue]) -> int:
    """Return about how many bytes the values take as a protobuf Struct."""
    return sum(len(value.encode()) + 6 if isinstance(value, str) else 12 for value in values)


def json_value(value: Any) -> JsonValue:
    """Return a database value as JSON: dates in ISO form, what is no number as null."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, Decimal):
        value = float(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, (date, datetime, time)):
        return value.isoformat()
    if isinstance(value, (list, tuple)):
        return [json_value(item) for item in value]
    if isinstance(value, dict):
        return {str(key): json_value(item) for key, item in value.items()}
    return str(value)


def _reason(error: duckdb.Error) -> str:
    # The lines after the first two repeat the query with a caret below it.
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    kept = [line for line in lines[:3] if not line.startswith(("LINE ", "^"))]
    return " ".join(kept) or type(error).__name__
