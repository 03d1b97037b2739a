"""Defines what a call brings along as data, and finds what it only names."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from services.tool.config import ToolSettings
from services.tool.errors import DataSourceError, DataSourceNotFoundError

SUFFIXES = (".csv", ".tsv", ".txt", ".parquet", ".sqlite", ".sqlite3", ".db")
PARQUET_MAGIC = b"PAR1"
SQLITE_MAGIC = b"SQLite format 3\x00"
_BINARY_FORMATS = {
    ".parquet": "Parquet",
    ".sqlite": "SQLite",
    ".sqlite3": "SQLite",
    ".db": "SQLite",
}


@dataclass(frozen=True, slots=True)
class DataSource:
    """Carries one file of the caller's, or names a dataset of the configured folder."""

    name: str
    """File name with its suffix, such as `sales.csv`, or the name of a configured dataset."""

    content: bytes = b""
    """The file's bytes; empty means the dataset of the configured folder with this name."""


def resolved(sources: Sequence[DataSource], settings: ToolSettings) -> tuple[DataSource, ...]:
    """Return the sources with their bytes; without any, the default dataset.

    Raises:
        DataSourceNotFoundError: the data folder has no dataset of a name that was given alone.
        DataSourceError: a source is larger than the settings allow.
    """
    wanted = tuple(sources) or (DataSource(settings.default_source),)
    found = tuple(source if source.content else _from_folder(source, settings) for source in wanted)
    for source in found:
        if len(source.content) > settings.max_source_bytes:
            raise DataSourceError(
                source.name,
                f"it has {len(source.content) / 2**20:.1f} MiB and "
                f"{settings.max_source_bytes / 2**20:.1f} MiB are allowed; "
                "leave out columns or rows, or save it as Parquet",
            )
    return found


def binary_format(name: str) -> str:
    """Return the binary format that a file's suffix promises; empty when it promises text."""
    return _BINARY_FORMATS.get(Path(name).suffix.casefold(), "")


def digest(sources: Sequence[DataSource]) -> str:
    """Return a text that differs whenever the name or content of any source differs."""
    total = hashlib.sha256()
    for source in sources:
        total.update(f"{len(source.name)}:{source.name}:{len(source.content)}:".encode())
        total.update(source.content)
    return total.hexdigest()


def _from_folder(source: DataSource, settings: ToolSettings) -> DataSource:
    # Looking the name up in a listing keeps it from being a path to somewhere else.
    datasets = {file.stem: file for file in _dataset_files(settings.data_dir)}
    by_file_name = {file.name: file for file in datasets.values()}
    file = datasets.get(source.name) or by_file_name.get(source.name)
    if file is None:
        if Path(source.name).suffix.casefold() in SUFFIXES:
            raise DataSourceError(source.name, "the file is empty; it needs a header and rows")
        raise DataSourceNotFoundError(source.name, tuple(datasets))
    return DataSource(file.name, file.read_bytes())


def _dataset_files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.glob("*") if file.suffix.casefold() in SUFFIXES)
