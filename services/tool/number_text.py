"""Writes numbers for people."""

from collections.abc import Sequence

from services.tool.chart_spec import Language

MISSING = "–"
MAX_DECIMALS = 2
LEAST_AMOUNT = 100

_SHORT_UNITS: dict[Language, tuple[tuple[float, str], ...]] = {
    "en": ((1e9, "bn"), (1e6, "m"), (1e3, "k")),
    "zh": ((1e8, "亿"), (1e4, "万")),
}


def short(value: float, language: Language) -> str:
    """Return a number for an axis: 40k, 1.5m; 4万, 1.5亿."""
    size = abs(value)
    if size >= 10_000:
        for unit, name in _SHORT_UNITS[language]:
            if size >= unit:
                return f"{_trimmed(value / unit, 2)}{name}"
    return _trimmed(value, 4)


def compact(value: float) -> str:
    """Return a number beside a bar: 34,860; 48.9; 0.153."""
    size = abs(value)
    return _trimmed(value, 0 if size >= 1000 else 1 if size >= 10 else 3)


def decimals_of(values: Sequence[float | None]) -> int:
    """Return how many decimal places a column needs: none for whole numbers, else 1 to 2."""
    present = [value for value in values if value is not None]
    if all(float(value).is_integer() for value in present):
        return 0
    one_place = all(round(value, 1) == round(value, 6) for value in present)
    # Large fractions are amounts of money and keep two places; small ones are ratios.
    large = any(abs(value) >= LEAST_AMOUNT for value in present)
    return 1 if one_place and not large else MAX_DECIMALS


def full(value: float | None, decimals: int) -> str:
    """Return a number with thousands separators; a dash when there is none."""
    if value is None:
        return MISSING
    written = f"{value:,.{decimals}f}"
    # Minus zero is what rounding leaves of a small negative number.
    bare = written.lstrip("-")
    return bare if not bare.strip("0.,") else written.replace("-", "−")


def _trimmed(value: float, decimals: int) -> str:
    written = f"{value:,.{decimals}f}"
    return (written.rstrip("0").rstrip(".") if "." in written else written).replace("-", "−")
