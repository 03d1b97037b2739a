"""Loads files into a database that can read nothing else."""

import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from services.tool.cache import BoundedCache
from services.tool.config import ToolSettings
from services.tool.csv_text import broken_line, shape_of
from services.tool.errors import DataSourceError
from services.tool.interruption import InterruptedWorkError, Interruption
from services.tool.source import (
    PARQUET_MAGIC,
    SQLITE_MAGIC,
    DataSource,
    binary_format,
    digest,
    resolved,
)
from services.tool.sql_text import identifier, literal
from services.tool.sqlite_text import tables_as_csv
from services.tool.typed_columns import Column, type_columns

RAW_NAME = "raw rows"
TEMPORARY_PREFIX = "sixhop-"


@dataclass(frozen=True, slots=True)
class Table:
    """Describes one loaded table."""

    name: str
    """What queries call it."""
    source_name: str
    """The file it came from."""
    columns: tuple[Column, ...]
    """Its columns, in the file's order."""
    row_count: int
    """Its rows."""
    notes: tuple[str, ...]
    """What was assumed while reading it, for the owner of the data."""


class Dataset:
    """Holds the tables of one call's sources; queries use a cursor each."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, tables: tuple[Table, ...], key: str
    ) -> None:
        """Take a connection whose database holds exactly the tables."""
        self._connection = connection
        self.tables = tables
        self.key = key
        """Differs whenever the content differs."""

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """Return a connection of its own for one thread."""
        return self._connection.cursor()


def cached_dataset(
    sources: Sequence[DataSource],
    settings: ToolSettings,
    cache: BoundedCache,
    interruption: Interruption,
) -> Dataset:
    """Return the dataset of these sources, loaded at most once while it stays in the cache.

    Raises:
        DataSourceError: a source cannot be read; says what to do.
        DataSourceNotFoundError: a source is named but does not exist.
        InterruptedWorkError: the caller has gone.
    """
    found = resolved(sources, settings)
    key = digest(found)
    return cache.get(("dataset", key), lambda: load(found, settings, interruption, key))


def load(
    sources: Sequence[DataSource], settings: ToolSettings, interruption: Interruption, key: str = ""
) -> Dataset:
    """Return a new dataset; arguments and errors as for `cached_dataset`."""
    connection = duckdb.connect(
        ":memory:",
        config={
            "threads": 1,
            "memory_limit": f"{settings.query_memory_mb}MB",
            "temp_directory": "",
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            # A table name in a query must never find a variable of this process.
            "python_enable_replacements": False,
        },
    )
    tables: list[Table] = []
    try:
        interruption.watch(connection)
        for source in sources:
            names = {table.name for table in tables}
            tables.extend(_Loader(connection, source, names, interruption).tables())
        if not any(table.row_count for table in tables):
            raise DataSourceError(
                sources[0].name, "it has column names but no rows; add rows and ask again"
            )
        # From here on the database sees its tables, and nothing can change that.
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
    except BaseException:  # Whatever ends the loading, the database must not stay behind.
        # First this: a closed database cannot be interrupted.
        interruption.watch(None)
        connection.close()
        raise
    interruption.watch(None)
    return Dataset(connection, tuple(tables), key)


class _Loader:
    """Reads one source into tables."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        source: DataSource,
        taken_names: set[str],
        interruption: Interruption,
    ) -> None:
        self._connection = connection
        self._source = source
        self._taken_names = taken_names
        self._interruption = interruption

    def tables(self) -> Iterator[Table]:
        content = self._source.content
        try:
            if content.startswith(PARQUET_MAGIC):
                yield self._parquet()
            elif content.startswith(SQLITE_MAGIC):
                yield from self._sqlite()
            elif content.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
                raise DataSourceError(
                    self._source.name,
                    "this is an Excel or ZIP file; save the sheet as CSV (UTF-8) and use that",
                )
            elif format_name := binary_format(self._source.name):
                raise DataSourceError(
                    self._source.name,
                    f"it is not a {format_name} file, whatever its name says; it is damaged, or "
                    "text that needs the suffix .csv",
                )
            else:
                yield self._csv()
        except duckdb.InterruptException:
            raise InterruptedWorkError from None
        except duckdb.OutOfMemoryException:
            raise DataSourceError(
                self._source.name, "it needs more memory than allowed; leave out columns or rows"
            ) from None
        except duckdb.Error as error:
            raise DataSourceError(
                self._source.name, f"it cannot be read: {_first_line(error)}"
            ) from None

    def _csv(self) -> Table:
        shape = shape_of(self._source.name, self._source.content)
        try:
            self._read_csv(shape.text, shape.column_names, shape.delimiter, shape.has_header)
        except duckdb.InvalidInputException as error:
            problem = broken_line(shape) or f"it cannot be read as CSV: {_first_line(error)}"
            raise DataSourceError(self._source.name, problem) from None
        return self._finished(Path(self._source.name).stem, shape.delimiter, shape.notes)

    def _read_csv(
        self, text: str, column_names: Sequence[str], delimiter: str, has_header: bool
    ) -> None:
        columns = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in column_names)
        with tempfile.TemporaryDirectory(prefix=TEMPORARY_PREFIX) as folder:
            file = Path(folder, "rows.csv")
            file.write_text(text, encoding="utf-8", newline="")
            self._connection.execute(
                f"CREATE TABLE {identifier(RAW_NAME)} AS SELECT * FROM read_csv("
                f"{literal(str(file))}, columns = {{{columns}}}, delim = {literal(delimiter)}, "
                f"header = {str(has_header).lower()}, quote = '\"', escape = '\"', "
                "auto_detect = false, strict_mode = true, null_padding = false, "
                "new_line = '\\n', max_line_size = 4194304)"
            )

    def _parquet(self) -> Table:
        with tempfile.TemporaryDirectory(prefix=TEMPORARY_PREFIX) as folder:
            file = Path(folder, "rows.parquet")
            file.write_bytes(self._source.content)
            self._connection.execute(
                f"CREATE TABLE {identifier(RAW_NAME)} AS "
                f"SELECT * FROM read_parquet({literal(str(file))})"
            )
        return self._finished(Path(self._source.name).stem, ",", ())

    def _sqlite(self) -> Iterator[Table]:
        with tempfile.TemporaryDirectory(prefix=TEMPORARY_PREFIX) as folder:
            file = Path(folder, "tables.sqlite")
            file.write_bytes(self._source.content)
            for name, columns, text in tables_as_csv(self._source.name, file, self._interruption):
                self._read_csv(text, columns, ",", has_header=False)
                yield self._finished(name, ",", ())

    def _finished(self, wanted_name: str, delimiter: str, notes: tuple[str, ...]) -> Table:
        name = self._table_name(wanted_name)
        columns, more_notes = type_columns(
            self._connection, RAW_NAME, name, delimiter=delimiter, check=self._interruption.check
        )
        counted = self._connection.execute(f"SELECT count(*) FROM {identifier(name)}").fetchone()
        row_count = int(counted[0]) if counted is not None else 0
        return Table(name, self._source.name, columns, row_count, notes + more_notes)

    def _table_name(self, wanted_name: str) -> str:
        plain = re.sub(r"\W+", "_", wanted_name).strip("_").lower() or "data"
        reserved = self._connection.execute(
            "SELECT 1 FROM duckdb_keywords() WHERE keyword_name = ? "
            "AND keyword_category <> 'unreserved'",
            [plain],
        ).fetchone()
        if plain[0].isdigit() or reserved:
            plain = f"t_{plain}"
        name, count = plain, 1
        while name in self._taken_names:
            count += 1
            name = f"{plain}_{count}"
        self._taken_names.add(name)
        return name


def _first_line(error: duckdb.Error) -> str:
    # The path of the temporary file says nothing to the owner of the data.
    line = str(error).strip().split("\n", maxsplit=1)[0]
    return re.sub(rf"['\"]?[^'\" ]*{TEMPORARY_PREFIX}[^'\" ]*['\"]?", "it", line)
