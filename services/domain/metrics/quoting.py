"""Writes names and values into SQL so that nothing in them can become SQL."""

import math
from datetime import date


def identifier(name: str) -> str:
    """Quote a table's or a column's name; a name with a NUL is refused."""
    if not name or "\0" in name:
        raise ValueError("a name must not be empty or hold a NUL character")
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """Quote a text value; a value with a NUL is refused."""
    if "\0" in value:
        raise ValueError("a value must not hold a NUL character")
    return "'" + value.replace("'", "''") + "'"


def number(value: float) -> str:
    """Write a finite number."""
    if not math.isfinite(value):
        raise ValueError("a number must be finite")
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))


def day(value: date) -> str:
    """Write a day."""
    return f"DATE '{value.isoformat()}'"
