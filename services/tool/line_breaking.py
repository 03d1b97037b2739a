"""Breaks text into lines, English between words and Chinese between characters."""

import re
from collections.abc import Callable, Iterator

Measure = Callable[[str], float]
"""Returns the width of a text in points."""

ELLIPSIS = "…"

_CJK = r"\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef"
# Names such as order_date may end a line after the underscore.
_PIECES = re.compile(rf"[{_CJK}]|[^\s_{_CJK}]+_*|_+|\s+")
_NEVER_FIRST = frozenset("，。、；：！？）」』】》〉”’％…·,.;:!?)]}%")
_NEVER_LAST = frozenset("（「『【《〈“‘([{¥￥$€£")


def wrapped(text: str, width: float, measure: Measure) -> list[str]:
    """Return the lines of a text, none wider than `width` unless a single character is.

    Line ends in the text are kept. A closing mark never begins a line, an opening one never
    ends it.
    """
    return [line for part in text.split("\n") for line in _lines(part, width, measure)]


def shortened(text: str, width: float, measure: Measure) -> str:
    """Return the text, or as much of its beginning as fits with an ellipsis."""
    if measure(text) <= width:
        return text
    kept = text
    while kept and measure(kept.rstrip() + ELLIPSIS) > width:
        kept = kept[:-1]
    return kept.rstrip() + ELLIPSIS


def longest_piece(text: str, measure: Measure) -> float:
    """Return the width below which `wrapped` would have to break a word."""
    return max((measure(unit.rstrip()) for unit in _units(text)), default=0.0)


def _lines(text: str, width: float, measure: Measure) -> Iterator[str]:
    line = ""
    for unit in _units(text):
        if not line.strip():
            line = unit.lstrip()
        elif measure((line + unit).rstrip()) <= width:
            line += unit
            continue
        else:
            yield line.rstrip()
            line = unit.lstrip()
        while len(line) > 1 and measure(line.rstrip()) > width:
            head = _longest_head(line, width, measure)
            yield line[:head]
            line = line[head:]
    yield line.rstrip()


def _units(text: str) -> Iterator[str]:
    """Yield the pieces between which a line may end."""
    unit = ""
    for piece in _PIECES.findall(text):
        glued = bool(unit) and (piece[0] in _NEVER_FIRST or unit.rstrip()[-1:] in _NEVER_LAST)
        if unit and not piece.isspace() and not glued:
            yield unit
            unit = piece
        else:
            unit += piece
    if unit:
        yield unit


def _longest_head(line: str, width: float, measure: Measure) -> int:
    head = 1
    while head < len(line) and measure(line[: head + 1]) <= width:
        head += 1
    return head
