"""Sets a table for paper: widths, alignment, zebra rows, heads on every page."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from reportlab.lib.colors import HexColor
from reportlab.platypus import LongTable, TableStyle

from services.tool.line_breaking import longest_piece, wrapped
from services.tool.number_text import MISSING, decimals_of, full
from services.tool.paper_drawing import BOLD_NAME, REGULAR_NAME, measure
from services.tool.report_spec import Cell, TableSpec

NAVY = "#1f3a5f"
INK = "#1f2933"
ZEBRA = "#f3f6f9"
RULE = "#c3ccd6"

SIZES = (9.0, 8.0, 7.0, 6.2)
PADDING_RATIO = 0.65
MAX_PIECE_WIDTH = 150.0
MAX_SPARE_WIDTH = 72.0

_NUMBER_LIKE = re.compile(
    r"[-+−]?[$€£¥￥]?\s*\d[\d,]*(?:\.\d+)?\s*(?:%|％|万|亿|[kmKM]|bn)?|[–—-]?"
)


@dataclass(frozen=True, slots=True)
class _Column:
    """Holds one column as text."""

    head: str
    cells: tuple[str, ...]
    numeric: bool


def fits(spec: TableSpec, width: float) -> bool:
    """Return whether the table can be set in this width without breaking a word."""
    return _least_width(_columns(spec), SIZES[-1]) <= width


def table_flowable(spec: TableSpec, width: float) -> LongTable:
    """Return the table in the given width, in points.

    The letters get smaller until no word is broken, or as small as can be read.
    """
    columns = _columns(spec)
    size = next((size for size in SIZES if _least_width(columns, size) <= width), SIZES[-1])
    widths = _widths(columns, size, width)
    heads = [column.head for column in columns]
    cells = [[column.cells[number] for column in columns] for number in range(len(spec.rows))]
    rows = [_row(heads, widths, size, bold=True)]
    rows.extend(_row(row, widths, size, bold=False) for row in cells)
    table = LongTable(rows, colWidths=widths, repeatRows=1, hAlign="LEFT")
    table.setStyle(_style(columns, size))
    return table


def _columns(spec: TableSpec) -> list[_Column]:
    return [
        _column(head, [row[position] for row in spec.rows])
        for position, head in enumerate(spec.columns)
    ]


def _column(head: str, values: Sequence[Cell]) -> _Column:
    numbers = [value for value in values if isinstance(value, (int, float))]
    decimals = decimals_of(numbers)
    cells = tuple(
        (value or MISSING) if isinstance(value, str) else full(value, decimals) for value in values
    )
    numeric = bool(values) and all(
        not isinstance(value, str) or _NUMBER_LIKE.fullmatch(value.strip()) for value in values
    )
    return _Column(head, cells, numeric)


def _least_width(columns: Sequence[_Column], size: float) -> float:
    """Return the width that the table needs if no word is broken."""
    return sum(_least_column_width(column, size) for column in columns)


def _least_column_width(column: _Column, size: float) -> float:
    texts = [(cell, False) for cell in column.cells] + [(column.head, True)]
    widest = max(
        longest_piece(text, partial(measure, size=size, bold=bold)) for text, bold in texts
    )
    return min(widest, MAX_PIECE_WIDTH) + 2 * PADDING_RATIO * size


def _natural_column_width(column: _Column, size: float) -> float:
    cells = max((measure(cell, size) for cell in column.cells), default=0.0)
    return max(cells, measure(column.head, size, bold=True)) + 2 * PADDING_RATIO * size


def _widths(columns: Sequence[_Column], size: float, width: float) -> list[float]:
    natural = [_natural_column_width(column, size) for column in columns]
    if sum(natural) <= width:
        # What is left over goes to all alike; few columns would be too far apart to read across.
        more = min(MAX_SPARE_WIDTH, (width - sum(natural)) / len(natural))
        return [one + more for one in natural]
    least = [_least_column_width(column, size) for column in columns]
    if sum(least) >= width:
        return [one * width / sum(least) for one in least]
    spare = (width - sum(least)) / (sum(natural) - sum(least))
    return [low + (high - low) * spare for low, high in zip(least, natural, strict=True)]


def _row(cells: Sequence[str], widths: Sequence[float], size: float, *, bold: bool) -> list[str]:
    # A hair more than measured, or the widest cell of a column would be wrapped by rounding.
    rooms = [width - 2 * PADDING_RATIO * size + 0.01 for width in widths]
    style = partial(measure, size=size, bold=bold)
    return ["\n".join(wrapped(cell, room, style)) for cell, room in zip(cells, rooms, strict=True)]


def _style(columns: Sequence[_Column], size: float) -> TableStyle:
    padding = PADDING_RATIO * size
    commands: list[tuple[str, tuple[int, int], tuple[int, int], Any] | tuple[Any, ...]] = [
        ("FONT", (0, 0), (-1, 0), BOLD_NAME, size, size * 1.3),
        ("FONT", (0, 1), (-1, -1), REGULAR_NAME, size, size * 1.3),
        ("TEXTCOLOR", (0, 0), (-1, 0), HexColor("#ffffff")),
        ("BACKGROUND", (0, 0), (-1, 0), HexColor(NAVY)),
        ("TEXTCOLOR", (0, 1), (-1, -1), HexColor(INK)),
        ("ROWBACKGROUNDS", (0, 1), (-1, -1), [HexColor("#ffffff"), HexColor(ZEBRA)]),
        ("LINEBELOW", (0, -1), (-1, -1), 0.6, HexColor(RULE)),
        ("LEFTPADDING", (0, 0), (-1, -1), padding),
        ("RIGHTPADDING", (0, 0), (-1, -1), padding),
        ("TOPPADDING", (0, 0), (-1, -1), size * 0.42),
        ("BOTTOMPADDING", (0, 0), (-1, -1), size * 0.58),
        ("VALIGN", (0, 0), (-1, -1), "MIDDLE"),
    ]
    commands += [
        ("ALIGN", (position, 0), (position, -1), "RIGHT")
        for position, column in enumerate(columns)
        if column.numeric
    ]
    return TableStyle(commands)
