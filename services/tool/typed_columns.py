"""Turns columns of text into columns of numbers, dates and booleans."""

from collections.abc import Callable
from dataclasses import dataclass

import duckdb

from services.tool.column_types import MISSING, Kind, Reading, readings
from services.tool.sql_text import identifier, literal

MAX_DIGITS = 18
MAX_SCALE = 6
# Two more places than the data has, so that a median of two prices is exact.
SPARE_SCALE = 2
MAX_SAMPLE_VALUES = 1000

_KINDS = {
    "DATE": Kind.DATE,
    "BOOLEAN": Kind.BOOLEAN,
    "TINYINT": Kind.INTEGER,
    "SMALLINT": Kind.INTEGER,
    "INTEGER": Kind.INTEGER,
    "BIGINT": Kind.INTEGER,
    "HUGEINT": Kind.INTEGER,
    "UTINYINT": Kind.INTEGER,
    "USMALLINT": Kind.INTEGER,
    "UINTEGER": Kind.INTEGER,
    "UBIGINT": Kind.INTEGER,
    "UHUGEINT": Kind.INTEGER,
    "FLOAT": Kind.NUMBER,
    "DOUBLE": Kind.NUMBER,
}


@dataclass(frozen=True, slots=True)
class Column:
    """Describes one column of a loaded table."""

    name: str
    """As the file spells it."""
    kind: Kind
    """What its values are."""


def kind_of(database_type: str) -> Kind:
    """Return what the values of a database type are for the rest of the suite."""
    if database_type.startswith("DECIMAL"):
        return Kind.NUMBER
    if database_type.startswith("TIMESTAMP"):
        return Kind.TIMESTAMP
    return _KINDS.get(database_type, Kind.TEXT)


def type_columns(
    connection: duckdb.DuckDBPyConnection,
    raw_name: str,
    name: str,
    *,
    delimiter: str,
    check: Callable[[], None],
) -> tuple[tuple[Column, ...], tuple[str, ...]]:
    """Create the table `name` from `raw_name` with a type for each column; drop `raw_name`.

    A column gets a type only if every value of it can be read so. `check` is called between
    columns and raises when nobody waits any more.

    Returns:
        The columns, and notes on what was assumed.
    """
    expressions: list[str] = []
    columns: list[Column] = []
    notes: list[str] = []
    described = connection.execute(f"DESCRIBE {identifier(raw_name)}").fetchall()
    for column_name, database_type, *_ in described:
        check()
        expression, kind, note = _typed(connection, raw_name, column_name, database_type, delimiter)
        expressions.append(f"{expression} AS {identifier(column_name)}")
        columns.append(Column(column_name, kind))
        if note:
            notes.append(f"{column_name}: {note}")
    connection.execute(
        f"CREATE TABLE {identifier(name)} AS SELECT {', '.join(expressions)} "
        f"FROM {identifier(raw_name)}"
    )
    connection.execute(f"DROP TABLE {identifier(raw_name)}")
    return tuple(columns), tuple(notes)


def _typed(
    connection: duckdb.DuckDBPyConnection,
    raw_name: str,
    column_name: str,
    database_type: str,
    delimiter: str,
) -> tuple[str, Kind, str]:
    column = identifier(column_name)
    kind = kind_of(database_type)
    if kind is Kind.TIMESTAMP:
        return f"CAST({column} AS TIMESTAMP)", kind, ""
    if kind is not Kind.TEXT:
        return column, kind, ""
    if database_type != "VARCHAR":
        # Lists, structures and the like are shown, not computed with.
        return f"CAST({column} AS VARCHAR)", kind, ""
    text = f"nullif(trim({column}), '')"
    sample = connection.execute(
        f"SELECT DISTINCT {text} FROM {identifier(raw_name)} "
        f"WHERE {text} IS NOT NULL LIMIT {MAX_SAMPLE_VALUES}"
    ).fetchall()
    values = [value for (value,) in sample]
    missing = ", ".join(literal(word) for word in MISSING)
    present = f"CASE WHEN lower({text}) NOT IN ({missing}) THEN {text} END"
    for reading in readings(values, column_name=column_name, delimiter=delimiter):
        sql_type, kind = _sql_type(connection, raw_name, present, reading)
        if _fits(connection, raw_name, present, reading, sql_type):
            return _expression(reading, present, sql_type), kind, reading.note
    return text, Kind.TEXT, ""


def _expression(reading: Reading, value: str, sql_type: str) -> str:
    expression = reading.expression.format(v=value, type=sql_type)
    return f"CAST({expression} AS {sql_type})" if sql_type else expression


def _sql_type(
    connection: duckdb.DuckDBPyConnection, raw_name: str, present: str, reading: Reading
) -> tuple[str, Kind]:
    """Return the database type that holds all numbers of a column exactly, if there is one."""
    if not reading.digits:
        return "", reading.kind
    digits = reading.digits.format(v=present)
    measured = connection.execute(
        f"SELECT max(length(split_part({digits}, '.', 1))), "
        f"max(length(split_part({digits}, '.', 2))) FROM {identifier(raw_name)}"
    ).fetchone()
    whole, scale = measured if measured is not None else (0, 0)
    scale = (scale or 0) + reading.extra_scale
    if scale == 0:
        return "BIGINT", Kind.INTEGER
    stored_scale = scale + SPARE_SCALE
    exact = scale <= MAX_SCALE and (whole or 0) + stored_scale <= MAX_DIGITS
    return (f"DECIMAL({MAX_DIGITS}, {stored_scale})" if exact else "DOUBLE"), reading.kind


def _fits(
    connection: duckdb.DuckDBPyConnection,
    raw_name: str,
    present: str,
    reading: Reading,
    sql_type: str,
) -> bool:
    # Distinct values first: most columns have few, and each costs a regular expression.
    unread = connection.execute(
        f"SELECT 1 FROM (SELECT DISTINCT {present} AS v FROM {identifier(raw_name)}) "
        f"WHERE v IS NOT NULL AND (NOT regexp_full_match(v, {literal(reading.pattern)}) "
        f"OR ({_expression(reading, 'v', sql_type)}) IS NULL) LIMIT 1"
    ).fetchone()
    return unread is None
