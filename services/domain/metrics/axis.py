"""Finds the column, or the columns, that tell when a row happened."""

import re
from dataclasses import dataclass
from enum import StrEnum

from services.domain.metrics.names import ColumnName, parse_name
from services.domain.metrics.schema import Column, ColumnType, JsonValue, Table

_ORDERED = (
    "order",
    "sale",
    "sales",
    "transaction",
    "purchase",
    "invoice",
    "订单",
    "下单",
    "销售",
    "成交",
    "交易",
)
_LATER = ("ship", "shipping", "shipped", "delivery", "delivered", "return", "returned", "refund",
    "due",
          "update", "updated", "modified", "birth", "expiry", "end", "paid", "payment", "发货",
          "到货", "退货",
          "送达", "签收", "更新", "出生", "付款")  # fmt: skip
_DATE_WORDS = ("date", "day", "time", "timestamp", "datetime", "created", "on", "at")
_DATE_HAN = ("日期", "时间", "日", "下单", "年月日")
_PATTERNS: tuple[tuple[str, str], ...] = (
    (r"\d{4}-\d{1,2}-\d{1,2}([ T].*)?", "%Y-%m-%d"),
    (r"\d{4}/\d{1,2}/\d{1,2}( .*)?", "%Y/%m/%d"),
    (r"\d{4}\.\d{1,2}\.\d{1,2}", "%Y.%m.%d"),
    (r"\d{4}年\d{1,2}月\d{1,2}日", "%Y年%m月%d日"),
    (r"\d{4}年\d{1,2}月", "%Y年%m月"),
    (r"\d{4}-\d{2}", "%Y-%m"),
    (r"\d{4}/\d{2}", "%Y/%m"),
    (r"\d{8}", "%Y%m%d"),
    (r"\d{6}", "%Y%m"),
)


class Encoding(StrEnum):
    """Tells how a date is written in the data."""

    NATIVE = "native"
    """A DATE or a TIMESTAMP."""
    PARSED = "parsed"
    """Text or digits, read with a format."""
    YEAR_MONTH = "year_month"
    """One column with the year, one with the month."""
    YEAR_QUARTER = "year_quarter"
    """One column with the year, one with the quarter."""
    YEAR = "year"
    """One column with the year."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DateAxis:
    """Is where a row's day comes from."""

    column: Column
    """The date, or the year."""
    encoding: Encoding = Encoding.NATIVE
    """How it is written."""
    format: str = ""
    """The format, when it must be read."""
    part: Column | None = None
    """The month or the quarter, when it has a column of its own."""

    @property
    def label(self) -> str:
        """Return its name, as the file spells it."""
        return f"{self.column.name} + {self.part.name}" if self.part else self.column.name


def date_axes(table: Table) -> tuple[DateAxis, ...]:
    """Return every way to date a row, the likeliest first."""
    found = [
        axis
        for column in table.columns
        if (axis := _native(column) or _parsed(column, parse_name(column.name)))
    ]
    found.sort(key=lambda axis: _rank(axis.column, table))
    return tuple(found) or _by_parts(table)


def _native(column: Column) -> DateAxis | None:
    return DateAxis(column=column) if column.temporal and column.distinct_count else None


def _parsed(column: Column, name: ColumnName) -> DateAxis | None:
    """Read dates written as text, or as whole numbers like 20260731 in a column that says date."""
    if column.type not in (ColumnType.TEXT, ColumnType.INTEGER):
        return None
    ends = [
        _plain(value) for value in (column.min, column.max, *column.values[:5]) if value is not None
    ]
    if not ends:
        return None
    for pattern, form in _PATTERNS:
        if not all(re.fullmatch(pattern, end.strip()) for end in ends):
            continue
        digits = form in ("%Y%m%d", "%Y%m")
        if digits and not (_says_date(name) and all(_plausible_digits(end) for end in ends)):
            return None
        return DateAxis(column=column, encoding=Encoding.PARSED, format=form)
    return None


def _plain(value: JsonValue) -> str:
    """Return a value as text; a wire that knows only floats sends 20260731.0 for 20260731."""
    whole = isinstance(value, float) and value == int(value)
    return str(int(value)) if whole and isinstance(value, float) else str(value)


def _plausible_digits(text: str) -> bool:
    year, month = int(text[:4]), int(text[4:6])
    day = int(text[6:8]) if len(text) == 8 else 1
    return 1900 <= year <= 2100 and 1 <= month <= 12 and 1 <= day <= 31


def _says_date(name: ColumnName) -> bool:
    words = {*name.words}
    return bool(words & {*_DATE_WORDS, "month", "period", "yearmonth", "ym"}) or any(
        name.head.endswith(end) for end in (*_DATE_HAN, "月", "月份", "年月")
    )


def _rank(column: Column, table: Table) -> tuple[int, float, int]:
    """Sort an order's own date first, then plain dates, then what happens later."""
    name = parse_name(column.name)
    words = name.words
    late = any(word in _LATER for word in words) or any(
        late in name.head for late in _LATER if not late.isascii()
    )
    ordered = any(word in _ORDERED for word in words) or any(
        word in name.head for word in _ORDERED if not word.isascii()
    )
    kind = 3 if late else 0 if ordered else 1
    return kind, column.null_count / max(1, table.row_count), table.columns.index(column)


def _by_parts(table: Table) -> tuple[DateAxis, ...]:
    """Build dates from columns named year and month, or year and quarter, or year alone."""
    year = _named(table, ("year", "年", "年份", "年度"), 1900, 2100)
    if year is None:
        return ()
    month = _named(table, ("month", "月", "月份"), 1, 12)
    quarter = _named(table, ("quarter", "季度", "季"), 1, 4)
    if month is not None:
        return (DateAxis(column=year, encoding=Encoding.YEAR_MONTH, part=month),)
    if quarter is not None:
        return (DateAxis(column=year, encoding=Encoding.YEAR_QUARTER, part=quarter),)
    return (DateAxis(column=year, encoding=Encoding.YEAR),)


def _named(table: Table, heads: tuple[str, ...], low: int, high: int) -> Column | None:
    for column in table.columns:
        name = parse_name(column.name)
        if name.head in heads and column.numeric and _within(column, low, high):
            return column
    return None


def _within(column: Column, low: int, high: int) -> bool:
    if not isinstance(column.min, int | float) or not isinstance(column.max, int | float):
        return False
    return low <= column.min and column.max <= high
