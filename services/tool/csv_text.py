"""Finds out how a CSV file is written: encoding, delimiter, header, the line where it breaks."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from services.tool.errors import DataSourceError

DELIMITERS = (",", ";", "\t", "|")
SAMPLE_CHARS = 64 * 1024
MAX_SAMPLE_ROWS = 200
MAX_PREAMBLE_ROWS = 20
MAX_COLUMN_COUNT = 500

# In Chinese text of the GB family nearly every pair has a second byte of A1 or above; in a Western
# file a high byte is followed by an ordinary letter.
_GB_PAIR = re.compile(rb"[\x81-\xfe][\xa1-\xfe]")
_OTHER_PAIR = re.compile(rb"[\x81-\xfe][\x20-\x7e]")
_BYTE_ORDER_MARKS = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
_DATA_LIKE = re.compile(
    r"[-+]?[$€£¥￥]?\s*\d[\d,]*(?:\.\d+)?%?"
    r"|\d{4}[-/.年]\d{1,2}[-/.月]\d{1,2}日?(?:[ T].*)?"
    r"|\d{1,2}[-/.]\d{1,2}[-/.]\d{4}(?: .*)?"
)
_YEAR = re.compile(r"(?:19|20)\d\d")


@dataclass(frozen=True, slots=True)
class CsvShape:
    """Says how to read one CSV text."""

    text: str
    """The whole file from the header on, with LF line ends."""
    delimiter: str
    """One character."""
    has_header: bool
    """Whether the first row names the columns."""
    column_names: tuple[str, ...]
    """Distinct names, as the file spells them; made up where it has none."""
    notes: tuple[str, ...]
    """What was assumed or left out, for the owner of the data."""


def decode(source_name: str, content: bytes) -> str:
    """Return the text of a file whose encoding nobody declared.

    Raises:
        DataSourceError: it is no text.
    """
    marked = [name for mark, name in _BYTE_ORDER_MARKS if content.startswith(mark)]
    encoding = marked[0] if marked else _guess_encoding(source_name, content)
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        raise DataSourceError(
            source_name, f"its text is broken at byte {error.start}; save it as UTF-8 CSV"
        ) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _guess_encoding(source_name: str, content: bytes) -> str:
    if b"\x00" in content:
        raise DataSourceError(
            source_name, "this is not a text file; give a CSV, Parquet or SQLite file"
        )
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        chinese = sum(1 for _ in _GB_PAIR.finditer(content))
        western = sum(1 for _ in _OTHER_PAIR.finditer(content))
        return "gb18030" if chinese > western else "cp1252"
    return "utf-8"


def shape_of(source_name: str, content: bytes) -> CsvShape:
    """Return how to read a CSV file.

    Raises:
        DataSourceError: it is empty, no text, or has no rows.
    """
    text = decode(source_name, content).lstrip("\n")
    if not text.strip():
        raise DataSourceError(source_name, "the file is empty; it needs a header and rows")
    delimiter = _delimiter(text)
    rows = list(islice(_rows(_sample(text), delimiter), MAX_SAMPLE_ROWS))
    width = _usual_width(rows)
    skipped = _preamble(rows, width)
    first = rows[skipped] if skipped < len(rows) else []
    if width > MAX_COLUMN_COUNT:
        raise DataSourceError(source_name, f"more than {MAX_COLUMN_COUNT} columns; remove some")
    has_header = not _looks_like_data(first)
    names = first if has_header else [""] * len(first)
    notes = []
    if skipped:
        text = "\n".join(text.split("\n")[_line_count(text, delimiter, skipped) :])
        notes.append(f"{skipped} lines above the header were left out")
    if not has_header:
        notes.append("the first row holds values, so the columns are named column_1, column_2 …")
    return CsvShape(text, delimiter, has_header, distinct_names(names), tuple(notes))


def distinct_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return usable column names: trimmed, none empty, no two alike in any case."""
    taken: set[str] = set()
    found: list[str] = []
    for position, name in enumerate(names, start=1):
        plain = " ".join(name.split()).lstrip("\ufeff") or f"column_{position}"
        candidate, count = plain, 1
        while candidate.casefold() in taken:
            count += 1
            candidate = f"{plain}_{count}"
        taken.add(candidate.casefold())
        found.append(candidate)
    return tuple(found)


def broken_line(shape: CsvShape) -> str:
    """Return a sentence about the first line that does not fit; empty if all do."""
    width = len(shape.column_names)
    reader = csv.reader(io.StringIO(shape.text), delimiter=shape.delimiter, strict=True)
    line = 1
    try:
        for row in reader:
            if row and len(row) != width:
                return (
                    f"line {line} has {len(row)} values but there are {width} columns; "
                    "correct that line or quote values that contain the delimiter"
                )
            line = reader.line_num + 1
    except csv.Error as error:
        return f"line {line} cannot be read ({error}); look for a quotation mark without its pair"
    return ""


def _sample(text: str) -> str:
    if len(text) <= SAMPLE_CHARS:
        return text
    return text[: text.rfind("\n", 0, SAMPLE_CHARS) + 1] or text[:SAMPLE_CHARS]


def _rows(text: str, delimiter: str) -> Iterator[list[str]]:
    reader = csv.reader(io.StringIO(text), delimiter=delimiter)
    try:
        yield from reader
    except csv.Error:
        # A sample may end within quotes; what came before is enough to judge by.
        return


def _delimiter(text: str) -> str:
    sample = _sample(text)

    def fit(delimiter: str) -> tuple[float, int]:
        rows = [row for row in islice(_rows(sample, delimiter), MAX_SAMPLE_ROWS) if row]
        width = _usual_width(rows)
        if width < 2:
            return (0.0, 0)
        return (sum(len(row) == width for row in rows) / len(rows), width)

    return max(DELIMITERS, key=fit)


def _usual_width(rows: Sequence[Sequence[str]]) -> int:
    widths = Counter(len(row) for row in rows if row)
    return max(widths, key=lambda width: (widths[width], width)) if widths else 0


def _preamble(rows: Sequence[Sequence[str]], width: int) -> int:
    for position, row in enumerate(rows[:MAX_PREAMBLE_ROWS]):
        filled = sum(bool(cell.strip()) for cell in row)
        if len(row) == width and (width < 3 or filled > 1):
            return position
    return 0


def _line_count(text: str, delimiter: str, row_count: int) -> int:
    reader = csv.reader(io.StringIO(text), delimiter=delimiter)
    for _ in islice(reader, row_count):
        pass
    return reader.line_num


def _looks_like_data(row: Sequence[str]) -> bool:
    # Years are fair column names ("2025", "2026"); other numbers and dates are values.
    cells = [cell.strip() for cell in row]
    return any(_DATA_LIKE.fullmatch(cell) and not _YEAR.fullmatch(cell) for cell in cells)
