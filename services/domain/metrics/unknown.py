"""Refuses to answer past words that the data does not know and that would change the answer."""

import re

from services.domain.metrics.errors import NotUnderstoodError
from services.domain.metrics.grouping import Grouping
from services.domain.metrics.measuring import Measuring
from services.domain.metrics.reading import Reading, joined
from services.domain.metrics.text import Span, has_han

_PLACE_BEFORE = re.compile(
    r"(?:\b(?:in|for|from|at|of|by|per|which|what|each|to)\s+(?:the\s+)?|[\"'“‘])$"
)
_HAN_BEFORE = re.compile(r"(?:哪一?[个些种类家位]|各个?|每个?|按|不同|在|来自|对于)$")
_HAN_AFTER = re.compile(r"^(?:地区|大区|区域|店|门店|客户|产品|商品|公司|部门|的(?!时候))")


def refuse_unknown(reading: Reading, measuring: Measuring, grouping: Grouping) -> None:
    """Raise NotUnderstoodError when an unknown word names a group, a value or the measure."""
    if grouping.unknown is not None:
        raise _error(reading, grouping.unknown.said)
    for span in reading.leftover:
        if _decides(reading, span):
            raise _error(reading, " ".join(joined((span,), reading.text)))
    if not reading.leftover:
        return
    part = "share" in reading.cues or "rate" in reading.cues
    whole = part and grouping.dimension is None and not reading.values
    measured = measuring.used or "sold" in reading.cues or "frequent" in reading.cues
    if whole or not measured:
        raise _error(reading, joined(reading.leftover, reading.text)[0])


def _decides(reading: Reading, span: Span) -> bool:
    """Tell whether the word stands where a group or a value would."""
    before, after = reading.text.original[: span.start], reading.text.lower[span.end :]
    word = reading.text.part(span)
    if has_han(word):
        return bool(_HAN_BEFORE.search(before) or _HAN_AFTER.match(after))
    capital = word[0].isupper() and span.start > 0
    return bool(_PLACE_BEFORE.search(before.lower()) or capital)


def _error(reading: Reading, word: str) -> NotUnderstoodError:
    return reading.refusal(
        en=f"no column and no value of the data is called {word!r}",
        zh=f"数据中没有名为“{word}”的列或取值",
    )
