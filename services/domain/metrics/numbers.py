"""Prints the numbers of an answer, the same way everywhere."""

from services.domain.metrics.query import Measure, Unit

_HAN_FIRST = "\u3400"


def value_text(measure: Measure, value: float | None, language: str) -> str:
    """Print a value with its unit; a missing one is a dash."""
    if value is None:
        return "–"
    if measure.unit is Unit.RATIO:
        return percent_text(value)
    return with_suffix(plain_text(value), measure.suffix, language)


def change_text(measure: Measure, change: float, language: str) -> str:
    """Print the size of a change, without its sign; of a ratio, in percentage points."""
    if measure.unit is Unit.RATIO:
        points = _trimmed(abs(change) * 100, 2)
        return f"{points}个百分点" if language == "zh" else f"{points} percentage points"
    return with_suffix(plain_text(abs(change)), measure.suffix, language)


def plain_text(value: float) -> str:
    """Print a number, thousands separated: whole, or two decimals, four below one."""
    if value < 0:
        return "−" + plain_text(-value)
    if abs(value - round(value)) < 1e-9:
        return f"{round(value):,}"
    if abs(value) < 1:
        return _trimmed(value, 4)
    return f"{value:,.2f}"


def percent_text(ratio: float) -> str:
    """Print a ratio as percent with one decimal, two below one percent."""
    percent = ratio * 100
    return f"{_trimmed(percent, 1 if abs(percent) >= 1 else 2)}%"


def signed_percent_text(ratio: float) -> str:
    """Print a change ratio as percent with its sign."""
    sign = "+" if ratio > 0 else "−" if ratio < 0 else ""
    return sign + percent_text(abs(ratio))


def with_suffix(number: str, suffix: str, language: str) -> str:
    """Add the unit that the column's name carries."""
    if not suffix:
        return number
    close = language == "zh" or suffix[0] >= _HAN_FIRST
    return f"{number}{suffix}" if close else f"{number} {suffix}"


def _trimmed(value: float, decimals: int) -> str:
    text = f"{value:,.{decimals}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "") else text
