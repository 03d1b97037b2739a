"""Reads the tables of an SQLite file as CSV text."""

import csv
import io
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from services.tool.csv_text import distinct_names
from services.tool.errors import DataSourceError
from services.tool.interruption import Interruption
from services.tool.sql_text import identifier

MAX_TABLE_COUNT = 50


def tables_as_csv(
    source_name: str, file: Path, interruption: Interruption
) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """Yield each table's name, its column names and its rows as CSV without a header.

    SQLite gives types to values, not to columns, so the text goes the way of any other CSV.

    Raises:
        DataSourceError: the file is damaged, or holds no table.
    """
    # Read-only and immutable: nothing beside the file is looked at or written.
    address = f"{file.as_uri()}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(address, uri=True)) as connection:
            interruption.watch(connection)
            # A file may carry views and triggers that call functions; none is run.
            connection.execute("PRAGMA trusted_schema = OFF")
            names = _table_names(connection)
            if not names:
                raise DataSourceError(source_name, "this SQLite file holds no table")
            for name in names[:MAX_TABLE_COUNT]:
                interruption.check()
                yield _table(connection, name)
    except sqlite3.DatabaseError as error:
        interruption.check()
        raise DataSourceError(
            source_name, f"this SQLite file cannot be read ({error}); export its tables as CSV"
        ) from None
    finally:
        interruption.watch(None)


def _table_names(connection: sqlite3.Connection) -> list[str]:
    rows = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' "
        "AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY rowid"
    )
    return [name for (name,) in rows]


def _table(connection: sqlite3.Connection, name: str) -> tuple[str, tuple[str, ...], str]:
    rows = connection.execute(f"SELECT * FROM {identifier(name)}")
    columns = distinct_names([column[0] for column in rows.description])
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row in rows:
        writer.writerow([_cell(value) for value in row])
    return name, columns, text.getvalue()


def _cell(value: object) -> object:
    return f"<{len(value)} bytes>" if isinstance(value, bytes) else value
