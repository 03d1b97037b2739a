"""Finds the column that a comparison is about: `orders with quantity above 5`."""

import re
from dataclasses import dataclass, replace

from services.domain.metrics.cues import Cues, Limit
from services.domain.metrics.errors import NotUnderstoodError
from services.domain.metrics.grouping import Grouping
from services.domain.metrics.lexicon import Kind
from services.domain.metrics.mentions import Mention
from services.domain.metrics.reading import Reading
from services.domain.metrics.text import Span

_BETWEEN = re.compile(
    r"(?:\s|\b(?:is|are|was|were|has|have|had|been|that|which|of|a|an|the|values?)\b|[的是为在])*"
)
_ROWS = (
    r"(?:orders?|transactions?|purchases?|sales?|rows?|lines?|deals?|items?|tickets?|entries|"
    r"records?|invoices?)"
)
_ROWS_BEFORE = re.compile(
    rf"(?:\b{_ROWS}\s+(?:with|whose|having|where|that (?:have|had|has)|which (?:have|had|has)|of)|"
    r"\bwhere|(?:订单|交易|记录|行)(?:中|里|的)?)"
    r"(?:\s|\b(?:a|an|the|its|their)\b|[，,])*$"
)
_ROWS_AFTER = re.compile(r"^\s*(?:件|个|台)?的?(?:订单|交易|记录|行|明细)")
_RELATIVE_BEFORE = re.compile(r"\b(where|whose|which|that|who)\b[^.;,?]{0,16}$")
"""Words that lead to a condition here, and ask for a place or a group elsewhere."""
_EXACT = re.compile(
    r"\s*(?:=+|!=|≠|is|are|was|of(?=\s*[\d.,]+\s*(?:\?|$))|equals?|"
    r"(?:is |are )?equal to|(?:is |are )?exactly|"
    r"(?:is |are )?(?:not )?between|等于|恰好|为|是|在|介于)\s*[$€¥£]?(?P<number>\d+(?:[.,]\d+)*)"
    r"(?![\d年月日号季])(?!\s*(?:days?|weeks?|months?|quarters?|years?)\b)"
)
"""Comparisons that no filter is made of."""
_OPEN = re.compile(
    r"\d\s*\+(?!\d)|\d\s*(?:or|and) (?:more|fewer|less|above|below|over|under|higher|lower|up)\b|"
    r"\d\s*(?:件|个|元|块)?(?:及|或)?以[上下内]"
)
"""Limits that are written after their number, which no filter is made of."""
_NEGATED = re.compile(r"(?:\bnot|n't|\bnever|不|没有?)\s*$")
_UNFINISHED = re.compile(r"^\s*(?:and|to|or|-|到|至|和|且|或)\s*[$€¥£]?\d")


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """Is a comparison of every row with a number."""

    mention: Mention
    """The column, as the question names it."""
    column: str
    """Its name in the data."""
    limit: Limit
    """What its values are compared with."""
    of_rows: bool
    """Whether the question says that single orders or rows are meant, not groups."""

    def without(self, reading: Reading) -> Reading:
        """Return the reading of the rest, in which the column is no measure."""
        words = [self.limit.span]
        lead = reading.text.lower[: self.mention.span.start]
        if found := _RELATIVE_BEFORE.search(lead):
            words.append(Span(*found.span(1)))
        places = {
            name: tuple(span for span in spans if not any(span.overlaps(word) for word in words))
            for name, spans in reading.cues.places.items()
        }
        cues: Cues = replace(reading.cues, places={k: v for k, v in places.items() if v})
        mentions = tuple(
            other
            for other in reading.mentions
            if other is not self.mention and not any(other.span.overlaps(word) for word in words)
        )
        return replace(reading, mentions=mentions, cues=cues)


def condition_of(reading: Reading) -> Condition | None:
    """Return the comparison of a second column; None when the answer itself is compared.

    Raises:
        NotUnderstoodError: there are several comparisons, or one of a column that is not there.
    """
    limit, text = reading.cues.limit, reading.text.lower
    exact = any(_exact_after(reading, mention) for mention in reading.mentions)
    if exact or _OPEN.search(text):
        raise not_understood(reading)
    if limit is None:
        return None
    negated = _NEGATED.search(text[: limit.span.start])
    if negated or reading.cues.limit_count > 1 or _UNFINISHED.match(text[limit.span.end :]):
        raise not_understood(reading)
    mention = _beside(reading, limit)
    if mention is None:
        if _stranger_beside(reading, limit):
            raise not_understood(reading)
        return None
    start = min(mention.span.start, limit.span.start)
    of_rows = bool(_ROWS_BEFORE.search(text[:start]) or _ROWS_AFTER.match(text[limit.span.end :]))
    if not of_rows and not _measured_otherwise(reading, mention):
        return None
    # A part of the whole would be a part of the rows that pass.
    if mention.role is None or "share" in reading.cues:
        raise not_understood(reading)
    return Condition(mention=mention, column=mention.role.column.name, limit=limit, of_rows=of_rows)


def refuse_of_groups(reading: Reading, condition: Condition | None, grouping: Grouping) -> None:
    """Refuse a comparison of a second column that may be about rows or about groups."""
    if condition is not None and grouping.dimension is not None and not condition.of_rows:
        raise not_understood(reading)


def not_understood(reading: Reading) -> NotUnderstoodError:
    """Return the refusal of a condition that cannot be applied safely."""
    return reading.refusal(
        en="this condition on a second column is not understood; "
        "say which rows it is about, such as “orders with quantity above 5”",
        zh="无法理解针对另一列的条件；请说明针对哪些行，例如“数量超过5的订单”",
    )


def _beside(reading: Reading, limit: Limit) -> Mention | None:
    """Return the number that stands right before the comparison, or as its unit after it."""
    text, before, after = reading.text.lower, None, None
    for mention in reading.mentions:
        if not _numeric(mention):
            continue
        start, end = mention.span.start, mention.span.end
        if end <= limit.span.start and _BETWEEN.fullmatch(text[end : limit.span.start]):
            before = mention
        if start >= limit.span.end and not text[limit.span.end : start].strip():
            after = mention
    if before is not None and after is not None:
        raise not_understood(reading)
    return before or after


def _exact_after(reading: Reading, mention: Mention) -> bool:
    """Tell whether a number column is compared in a way that no filter is made of."""
    found = _EXACT.match(reading.text.lower, mention.span.end) if _numeric(mention) else None
    if found is None:
        return False
    place = Span(*found.span("number"))
    values = (value.span for value in reading.values)
    known = (*reading.scope.spans, *values, *reading.cues.all_spans)
    return not any(place.overlaps(span) for span in known)


def _numeric(mention: Mention) -> bool:
    if mention.value or (mention.role is not None and mention.role.flag is not None):
        return False
    return mention.kind is Kind.MEASURE or (
        mention.role is not None and mention.role.measurable and mention.kind is not Kind.DIMENSION
    )


def _stranger_beside(reading: Reading, limit: Limit) -> bool:
    """Tell whether an unknown word stands where the compared column would."""
    text = reading.text.lower
    return any(
        span.end <= limit.span.start and _BETWEEN.fullmatch(text[span.end : limit.span.start])
        for span in reading.leftover
    )


def _measured_otherwise(reading: Reading, mention: Mention) -> bool:
    """Tell whether the question asks for another number than the compared one."""
    if "count" in reading.cues:
        return True
    for other in reading.mentions:
        if other is mention or other.value:
            continue
        if other.kind is Kind.DERIVED:
            return True
        same = other.role is not None and other.role is mention.role
        if _numeric(other) and not same and other.concept is not mention.concept:
            return True
        if _numeric(other) and not same and other.concept is None:
            return True
    return False
