"""Reads lengths of time as manifests write them."""

import re
from typing import Any

_UNITS_S = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)")


def seconds(text: Any) -> float | None:
    """Return a length such as `1.5s`, `250ms` or `1m30s` in seconds; None when it is none.

    A bare number is none: the cluster refuses it as well.
    """
    if not isinstance(text, str) or not text:
        return None
    parts = list(_PART.finditer(text))
    if "".join(part.group(0) for part in parts) != text:
        return None
    return sum(float(part.group(1)) * _UNITS_S[part.group(2)] for part in parts)
