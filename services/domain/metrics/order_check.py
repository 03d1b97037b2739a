"""Checks a model's sentence about one order: its number, its dates and its state, nothing else."""

import re
from collections.abc import Mapping, Sequence

from services.domain.metrics.objections import objection
from services.domain.metrics.order_lookup import OrderBook, shown
from services.domain.metrics.schema import ColumnType, JsonValue
from services.domain.metrics.text import stem

_NUMBER_WORDS = re.compile(
    r"\b(?:zero|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|hundred|"
    r"dozen|thousand|once|twice|several)\b|[一二两三四五六七八九十百千]\s*(?:件|个|台|次|天|元|笔|箱)"
)
_UNCHECKED = re.compile(r"\bnot\b|n't\b|\bno\b|tomorrow|today|yesterday|未|没有|明天|今天|昨天")
_STATES = re.compile(
    r"return|refund|cancel|\bpaid\b|lost\b|damage|deliver(?:ed|s)\b|shipped|dispatched|complete[ds]?|"
    r"arrived|delayed|\blate\b|on (?:its|the) way|in transit|"
    r"退货|退款|取消|已付|丢失|损坏|送达|签收|已发货|完成|延误|在途|运输中"
)
"""What an order can be said to be; only the data may say it."""
_MONTHS = (
    "january|jan", "february|feb", "march|mar", "april|apr", "may", "june|jun", "july|jul",
    "august|aug", "september|sept|sep", "october|oct", "november|nov", "december|dec",
)  # fmt: skip
_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})")


def check_order_prose(
    prose: str, book: OrderBook, rows: Sequence[Mapping[str, JsonValue]], language: str
) -> str:
    """Return what is wrong with a model's sentence about one order; empty when nothing is.

    Args:
        prose: the sentence.
        book: the table of orders.
        rows: the order, first.
        language: of what is returned, `en` or `zh`.
    """
    row, low = rows[0], prose.lower()
    number = shown(row.get(book.order.column.name))
    named = re.compile(rf"(?<![\w.]){re.escape(number.lower())}(?!\w|[.,]\d)")
    if not named.search(low):
        return objection("order-unnamed", language, name=number)
    rest = named.sub(" ", low)
    if _UNCHECKED.search(rest):
        return objection("unchecked", language)
    if found := _wrong_number(rest, _dates(book, rows)):
        return objection("order-number", language, said=found)
    problem = _wrong_state(rest, book, row, language)
    if not problem and (column := _other_column(rest, book, rows)):
        return objection("not-asked", language, name=column)
    return problem


def _dates(book: OrderBook, rows: Sequence[Mapping[str, JsonValue]]) -> list[tuple[str, str, str]]:
    """Return year, month and day of every date of the order."""
    axis = book.axis()
    names = [c.name for c in book.table.columns if c.temporal]
    if axis is not None and axis.column.name not in names:
        names.append(axis.column.name)
    found = (_DATE.match(str(row.get(name))) for row in rows for name in names)
    return [(date[1], date[2], date[3]) for date in found if date]


def _wrong_number(rest: str, dates: list[tuple[str, str, str]]) -> str:
    """Return a number that is in no date of the order; whole dates and those in words are fine."""
    for year, month, day in dates:
        for written in (f"{year}-{month}-{day}", f"{int(month)}月{int(day)}日"):
            rest = rest.replace(written, " ")
        months = rf"(?:{_MONTHS[int(month) - 1]})"
        days = rf"0?{int(day)}(?:st|nd|rd|th)?"
        words = rf"{months}\.?\s+{days}\b(?!\s*%)|\b{days}\s+(?:of\s+)?{months}\b"
        rest = re.sub(rf"(?:{words})(?:,?\s+{year}\b)?", " ", rest)
        rest = re.sub(rf"\b{year}年", " ", rest)
    found = re.search(r"\d[\d.,/-]*", rest) or _NUMBER_WORDS.search(rest)
    return found.group() if found else ""


def _wrong_state(rest: str, book: OrderBook, row: Mapping[str, JsonValue], language: str) -> str:
    status = book.status()
    state = ""
    if status is not None and row.get(status.column.name) is not None:
        state = shown(row[status.column.name]).lower()
        others = {value.lower() for value in status.column.values} - {state}
        if state not in rest:
            return objection("state-unnamed", language, name=state)
        if any(other in rest for other in others if other not in state):
            return objection("other-state", language)
    found = _STATES.search(rest.replace(state, " ") if state else rest)
    return objection("state", language, said=found.group()) if found else ""


def _other_column(rest: str, book: OrderBook, rows: Sequence[Mapping[str, JsonValue]]) -> str:
    """Return the column of a name or a value that is none of number, date and state."""
    status = book.status()
    skipped = {book.order.column.name, status.column.name if status else ""}
    allowed = {
        stem(word)
        for column in book.table.columns
        if column.name in skipped or column.temporal
        for word in re.findall(r"[^\W_]+", column.name.lower())
    } | {"order", "status", "state"}
    said = {stem(word) for word in re.findall(r"[^\W\d_]+", rest)}
    for column in book.table.columns:
        if column.name in skipped or column.temporal:
            continue
        words = {stem(word) for word in re.findall(r"[^\W\d_]+", column.name.lower())} - allowed
        if words and words <= said:
            return column.name
        values = (shown(row.get(column.name)).lower() for row in rows)
        if column.type is ColumnType.TEXT and any(len(v) > 3 and v in rest for v in values):
            return column.name
    return ""
