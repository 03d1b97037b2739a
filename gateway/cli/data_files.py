"""Reads the data files of a question, and refuses what no tool could use."""

from collections.abc import Sequence
from pathlib import Path
from stat import S_ISDIR, S_ISREG

from gateway.cli.console import size_text
from gateway.cli.events import DataFile
from gateway.cli.problem import RefusedError

SUFFIXES = (".csv", ".tsv", ".txt", ".parquet", ".sqlite", ".sqlite3", ".db")
MAX_FILE_BYTES = 16 * 1024 * 1024
MAX_TOTAL_BYTES = 32 * 1024 * 1024
"""All files travel in one message, which has room for 40 MiB."""
NAME_PREFIX = "name:"
"""Marks a dataset in the data folder of the tool hop."""


def read_data_files(values: Sequence[str]) -> tuple[DataFile, ...]:
    """Return the data of a question.

    Args:
        values: paths of files, or `name:orders` for a dataset of the suite.

    Raises:
        RefusedError: a file is missing, unreadable, empty, too large or of no known kind.
    """
    files: list[DataFile] = []
    total = 0
    for value in values:
        file = _named(value) if value.startswith(NAME_PREFIX) else _read(Path(value))
        if any(other.name == file.name for other in files):
            raise _refused(value, f"another file is named {file.name} as well; rename one of them")
        total += len(file.content)
        if total > MAX_TOTAL_BYTES:
            raise _refused(
                value,
                f"all files together have more than {size_text(MAX_TOTAL_BYTES)}; leave out "
                "columns or rows, or save them as Parquet",
            )
        files.append(file)
    return tuple(files)


def _named(value: str) -> DataFile:
    name = value.removeprefix(NAME_PREFIX).strip()
    if not name:
        raise _refused(value, "no name follows; write name:orders for the shipped sample")
    return DataFile(name)


def _read(path: Path) -> DataFile:
    try:
        # Looked at before it is opened: opening a pipe would wait for whoever writes to it.
        mode = path.stat().st_mode
        if S_ISDIR(mode):
            raise _refused(path, "it is a folder; name a file in it")
        if not S_ISREG(mode):
            raise _refused(path, "it is no regular file; save its content to one")
        _require_suffix(path)
        with path.open("rb") as file:
            # One byte more than allowed: a file that grows while it is read is noticed.
            content = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        raise _refused(
            path, "there is no such file; for a dataset of the suite write name:NAME"
        ) from None
    except PermissionError:
        raise _refused(path, "it may not be read; change its permissions") from None
    except (OSError, ValueError) as error:
        raise _refused(path, f"it cannot be read: {error}") from None
    if not content:
        raise _refused(path, "it is empty")
    if len(content) > MAX_FILE_BYTES:
        raise _refused(
            path,
            f"it has more than {size_text(MAX_FILE_BYTES)}; leave out columns or rows, save it as "
            "Parquet, or put it into the data folder of the tool hop and write name:NAME",
        )
    return DataFile(path.name.encode("utf-8", "replace").decode(), content)


def _require_suffix(path: Path) -> None:
    if path.suffix.casefold() not in SUFFIXES:
        raise _refused(
            path,
            f"its kind is not known; save it as one of {', '.join(SUFFIXES)}"
            if path.suffix
            else f"its name has no suffix; rename it to end in one of {', '.join(SUFFIXES)}",
        )


def _refused(value: object, problem: str) -> RefusedError:
    return RefusedError(f"--data {value}: {problem}", reason="BAD_FILE")
