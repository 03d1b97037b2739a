"""Finds the type of a column from the way its values are written."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from services.tool.sql_text import literal


class Kind(StrEnum):
    """Names the types that a column can have for the rest of the suite."""

    DATE = "date"
    TIMESTAMP = "timestamp"
    NUMBER = "number"
    INTEGER = "integer"
    TEXT = "text"
    BOOLEAN = "boolean"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Says how the text of a column becomes values.

    The pattern is understood alike by Python's `re` and by the database's RE2.
    """

    kind: Kind
    pattern: str
    """What every value must match as a whole."""
    expression: str
    """SQL from the text `{v}` to the value; for numbers with `{type}` still open."""
    digits: str = ""
    """Numbers: SQL from `{v}` to its plain digits with a point, to measure their scale."""
    extra_scale: int = 0
    """Numbers: decimal places that the expression adds."""
    note: str = ""
    """What the owner of the data should know."""


# Written where a value is missing. Only columns of numbers, dates and booleans treat them so:
# in a column of text they may be meant.
MISSING = ("na", "n/a", "null", "none", "nan", "-", "--", "—", "/", "无")

_SIGN = r"[-+−]?"
_CURRENCY = r"(?:[$€£¥￥₩₹]|US\$|HK\$|NT\$|CN¥|RMB|CNY|USD|EUR|GBP|元|円)"
# Leading zeros and more than 15 digits mean identifiers; JSON readers would round the latter.
_WHOLE = r"(?:0|[1-9]\d{0,14})"
_GROUPED = rf"(?:[1-9]\d{{0,2}}(?:,\d{{3}})+|{_WHOLE})(?:\.\d+)?"
_MONEY = rf"\(?{_SIGN}\s*{_CURRENCY}?\s*{_SIGN}{_GROUPED}\s*{_CURRENCY}?\)?"
_COMMA_DECIMAL = (
    rf"{_SIGN}\s*{_CURRENCY}?\s*{_SIGN}(?:[1-9]\d{{0,2}}(?:[. ]\d{{3}})+|{_WHOLE})"
    rf"(?:,\d+)?\s*{_CURRENCY}?"
)
_NEGATIVE = "CASE WHEN {v} LIKE '(%' OR regexp_matches({v}, '[-−]') THEN -1 ELSE 1 END"
_POINT_DIGITS = "regexp_replace({v}, '[^0-9.]', '', 'g')"
_COMMA_DIGITS = "replace(regexp_replace({v}, '[^0-9,]', '', 'g'), ',', '.')"

_BOOLEAN = Reading(
    kind=Kind.BOOLEAN,
    pattern=r"(?i:true|false)",
    expression="lower({v}) = 'true'",
)
_INTEGER = Reading(
    kind=Kind.INTEGER,
    pattern=rf"[-+]?{_WHOLE}",
    expression="TRY_CAST({v} AS BIGINT)",
)
_DECIMAL = Reading(
    kind=Kind.NUMBER,
    pattern=rf"[-+]?{_WHOLE}?(?:\.\d+)?",
    expression="TRY_CAST({v} AS {type})",
    digits="ltrim({v}, '+-')",
)
_SCIENTIFIC = Reading(
    kind=Kind.NUMBER,
    pattern=rf"[-+]?(?:{_WHOLE}(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?",
    expression="TRY_CAST({v} AS DOUBLE)",
)
_MONEY_READING = Reading(
    kind=Kind.NUMBER,
    pattern=_MONEY,
    expression=f"{_NEGATIVE} * TRY_CAST({_POINT_DIGITS} AS {{type}})",
    digits=_POINT_DIGITS,
    note="currency signs and thousands separators were removed",
)
_COMMA_READING = Reading(
    kind=Kind.NUMBER,
    pattern=_COMMA_DECIMAL,
    expression=f"{_NEGATIVE} * TRY_CAST({_COMMA_DIGITS} AS {{type}})",
    digits=_COMMA_DIGITS,
    note="the comma was read as the decimal separator",
)
_PERCENT = Reading(
    kind=Kind.NUMBER,
    pattern=rf"{_SIGN}\d+(?:\.\d+)?\s*[%％]",
    expression=f"{_NEGATIVE} * TRY_CAST(TRY_CAST({_POINT_DIGITS} AS {{type}}) / 100 AS {{type}})",
    digits=_POINT_DIGITS,
    extra_scale=2,
    note="percentages were read as fractions: 12.5% is 0.125",
)

_TIME = r"[ T]\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?"
_ISO_TIMESTAMP = Reading(
    kind=Kind.TIMESTAMP,
    pattern=rf"\d{{4}}-\d{{1,2}}-\d{{1,2}}{_TIME}",
    expression="TRY_CAST({v} AS TIMESTAMP)",
)
_ZONED_TIMESTAMP = Reading(
    kind=Kind.TIMESTAMP,
    pattern=rf"\d{{4}}-\d{{1,2}}-\d{{1,2}}{_TIME}(?:Z|[-+]\d\d:?\d\d)",
    expression="TRY_CAST(regexp_replace({v}, '(Z|[-+]\\d\\d:?\\d\\d)$', '') AS TIMESTAMP)",
    note="times were kept as written; their offset from UTC was left out",
)
_COMPACT_DATE = re.compile(r"date|day|日期|时间|日$", re.IGNORECASE)
_MONTHS_NOTE = "months were read as their first day"
_DATE_FORMATS: tuple[tuple[str, str, str], ...] = (
    (r"\d{4}-\d{1,2}-\d{1,2}", "%Y-%m-%d", ""),
    (r"\d{4}/\d{1,2}/\d{1,2}", "%Y/%m/%d", ""),
    (r"\d{4}\.\d{1,2}\.\d{1,2}", "%Y.%m.%d", ""),
    (r"\d{4}年\d{1,2}月\d{1,2}日", "%Y年%m月%d日", ""),
    (r"\d{1,2}\.\d{1,2}\.\d{4}", "%d.%m.%Y", ""),
    (r"\d{1,2}[ -][A-Za-z]{3}[ -]\d{4}", "%d-%b-%Y", ""),
    (r"\d{1,2} [A-Za-z]{4,9} \d{4}", "%d-%B-%Y", ""),
    (r"[A-Za-z]{3} \d{1,2}, \d{4}", "%b-%d,-%Y", ""),
    (r"[A-Za-z]{4,9} \d{1,2}, \d{4}", "%B-%d,-%Y", ""),
    (r"\d{4}-\d{1,2}", "%Y-%m", _MONTHS_NOTE),
    (r"\d{4}年\d{1,2}月", "%Y年%m月", _MONTHS_NOTE),
)


def readings(values: Sequence[str], *, column_name: str, delimiter: str) -> Iterator[Reading]:
    """Yield the readings that fit all sampled values, the most telling first.

    Args:
        values: distinct values without blanks at their ends, none empty.
        column_name: decides whether eight digits are a date.
        delimiter: of the file; a semicolon points to a country with decimal commas.
    """
    present = [value for value in values if value.casefold() not in MISSING]
    if not present:
        return
    for reading in _candidates(column_name, delimiter):
        pattern = re.compile(reading.pattern)
        if all(pattern.fullmatch(value) for value in present):
            yield reading


def _candidates(column_name: str, delimiter: str) -> Iterator[Reading]:
    yield _BOOLEAN
    if _COMPACT_DATE.search(column_name):
        yield _date(r"(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])", "%Y%m%d", "")
    yield from (_INTEGER, _DECIMAL, _SCIENTIFIC)
    comma_country = delimiter == ";"
    yield from (_COMMA_READING, _MONEY_READING) if comma_country else (_MONEY_READING,)
    yield _PERCENT
    yield from (_ISO_TIMESTAMP, _ZONED_TIMESTAMP)
    orders = ("day/month/year", "month/day/year")
    for order in orders if comma_country else reversed(orders):
        month_first = order.startswith("month")
        for mark in "/-":
            form = "%m{0}%d{0}%Y" if month_first else "%d{0}%m{0}%Y"
            pattern = rf"\d{{1,2}}{mark}\d{{1,2}}{mark}\d{{4}}"
            note = f"dates were read as {order}"
            yield _date(pattern, form.format(mark), note)
            yield from _timed(pattern, form.format(mark), note)
    for pattern, form, note in _DATE_FORMATS:
        yield _date(pattern, form, note)
        yield from _timed(pattern, form, note)


def _date(pattern: str, form: str, note: str) -> Reading:
    # Names of months are separated by blanks or hyphens; the format knows hyphens only.
    value = "replace({v}, ' ', '-')" if "%b" in form.lower() else "{v}"
    return Reading(
        kind=Kind.DATE,
        pattern=pattern,
        expression=f"CAST(TRY_STRPTIME({value}, {literal(form)}) AS DATE)",
        note=note,
    )


def _timed(pattern: str, form: str, note: str) -> Iterator[Reading]:
    for time_pattern, time_form in ((r"\d{1,2}:\d\d", "%H:%M"), (r"\d{1,2}:\d\d:\d\d", "%H:%M:%S")):
        yield Reading(
            kind=Kind.TIMESTAMP,
            pattern=f"{pattern} {time_pattern}",
            expression=f"TRY_STRPTIME({{v}}, {literal(f'{form} {time_form}')})",
            note=note,
        )
