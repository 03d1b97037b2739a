"""Holds settings to the ranges that their fields declare, and says what a range is."""

import math
from collections.abc import Hashable, Iterable, Mapping
from functools import cache
from typing import Any, get_type_hints

from pydantic.fields import FieldInfo

from services.runtime.setting_text import SettingError


def check_ranges(settings: Any) -> None:
    """Refuse a value outside of what its field declares: `Annotated[int, Field(ge=1, le=5)]`.

    Pydantic does so where a file is read, and this where settings are made in code, so that each
    range stands in one place.

    Args:
        settings: the instance of a dataclass.

    Raises:
        SettingError: names the first value that is outside.
    """
    for name, bounds in declared_bounds(type(settings)).items():
        value = getattr(settings, name)
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if number and not (math.isfinite(value) and _inside(value, bounds)):
            raise SettingError(name, value, number_advice(bounds, whole=isinstance(value, int)))


def number_advice(bounds: Iterable[Any], *, whole: bool) -> str:
    """Return what number to write: `write a whole number from 1 to 5`."""
    what = "write a whole number" if whole else "write a number"
    low, high = _ends(bounds, whole=whole)
    return " ".join(filter(None, (what, _words(low, high))))


End = tuple[float, bool]
"""A bound, and whether it is inside itself."""


def _ends(bounds: Iterable[Any], *, whole: bool) -> tuple[End | None, End | None]:
    low: End | None = None
    high: End | None = None
    for bound in bounds:
        if getattr(bound, "ge", None) is not None:
            low = (bound.ge, True)
        if getattr(bound, "gt", None) is not None:
            low = (bound.gt + 1, True) if whole else (bound.gt, False)
        if getattr(bound, "le", None) is not None:
            high = (bound.le, True)
        if getattr(bound, "lt", None) is not None:
            high = (bound.lt - 1, True) if whole else (bound.lt, False)
    return low, high


def _words(low: End | None, high: End | None) -> str:
    if low is not None and high is not None:
        if low[1] and high[1]:
            return f"from {low[0]:g} to {high[0]:g}"
        first = f"from {low[0]:g}" if low[1] else f"above {low[0]:g}"
        return f"{first} and {'up to' if high[1] else 'below'} {high[0]:g}"
    if low is not None:
        return f"of {low[0]:g} or more" if low[1] else f"above {low[0]:g}"
    if high is not None:
        return f"of {high[0]:g} or less" if high[1] else f"below {high[0]:g}"
    return ""


def _inside(value: float, bounds: Iterable[Any]) -> bool:
    return all(
        (getattr(bound, "ge", None) is None or value >= bound.ge)
        and (getattr(bound, "gt", None) is None or value > bound.gt)
        and (getattr(bound, "le", None) is None or value <= bound.le)
        and (getattr(bound, "lt", None) is None or value < bound.lt)
        for bound in bounds
    )


def declared_bounds(kind: Any) -> Mapping[str, list[Any]]:
    """Return the bounds of each field of a dataclass; an empty list for what has no range."""
    return _bounds(kind)


@cache
def _bounds(kind: Hashable) -> Mapping[str, list[Any]]:
    hints = get_type_hints(kind, include_extras=True)
    return {
        name: [
            bound
            for extra in getattr(hint, "__metadata__", ())
            for bound in (extra.metadata if isinstance(extra, FieldInfo) else [extra])
        ]
        for name, hint in hints.items()
    }
