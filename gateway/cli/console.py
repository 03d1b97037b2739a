"""Opens consoles, and makes text of others safe to show."""

import errno
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TextIO

from rich import box
from rich.console import Console
from rich.table import Table

from gateway.cli.problem import FailedError

PIPED_WIDTH = 120
"""Columns when nobody looks at a terminal: enough for every table."""

# What moves the cursor, colours, rings or turns the direction of text has no place in an answer.
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)


def clean(text: str) -> str:
    """Return text without control characters but for line ends and tabs."""
    return _CONTROL.sub("", text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """Return clean text in one line."""
    return " ".join(clean(text).split())


class _PlainConsole(Console):
    """Leaves it to its owner what a reader means that has left."""

    def on_broken_pipe(self) -> None:
        # The library's own way is to end the process as failed.
        raise BrokenPipeError


def open_console(stream: TextIO) -> Console:
    """Return a console that shows text as it is and no colours where they do not belong."""
    return _PlainConsole(
        file=stream,
        width=None if stream.isatty() else PIPED_WIDTH,
        highlight=False,
        markup=False,
        emoji=False,
    )


def tolerate_any_text() -> None:
    """Let the standard streams replace what their encoding does not know."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


@contextmanager
def until_reader_leaves() -> Iterator[None]:
    """End the block quietly when nobody reads what it writes any more, as with `| head -1`.

    Raises:
        FailedError: the output goes where there is no room left.
    """
    try:
        yield
    except BrokenPipeError:
        silence_stdout()
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        silence_stdout()
        raise FailedError("no space is left where the output goes; write it elsewhere") from None


def silence_stdout() -> None:
    """Write to nowhere from here on, so that the interpreter's last flush complains of nothing."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def write_json(stream: TextIO, document: Mapping[str, Any]) -> None:
    """Write one JSON document as one line."""
    wide = (stream.encoding or "").lower().replace("-", "") == "utf8"
    stream.write(json.dumps(document, ensure_ascii=not wide) + "\n")
    stream.flush()


def length_text(length_s: float) -> str:
    """Return a length for people: milliseconds below one second."""
    if 0 < length_s < 0.0005:
        return "<1 ms"
    if abs(length_s) < 0.9995:
        return f"{round(length_s * 1000)} ms"
    return f"{length_s:.2f} s" if abs(length_s) < 100 else f"{length_s:.0f} s"


def size_text(byte_count: int) -> str:
    """Return a size for people."""
    if byte_count < 1024:
        return f"{byte_count} bytes"
    if byte_count < 1024 * 1024:
        return f"{byte_count / 1024:.0f} KiB"
    return f"{byte_count / 1024 / 1024:.1f} MiB"


def columns_table(left: Iterable[str], right: Iterable[str]) -> Table:
    """Return an empty table: first the columns of words, then those of numbers."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for heading in left:
        table.add_column(heading, no_wrap=True)
    for heading in right:
        table.add_column(heading, justify="right", no_wrap=True)
    return table
