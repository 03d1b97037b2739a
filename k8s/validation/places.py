"""Tells where in an object something is."""

from collections.abc import Iterable


def place(path: Iterable[str | int]) -> str:
    """Return a path as people write it: `spec.ports[0].name`."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}"
    return text.removeprefix(".") or "the whole object"
