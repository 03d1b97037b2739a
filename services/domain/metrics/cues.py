"""Finds the words of a question that tell what to do with the numbers."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from services.domain.metrics.moments import number_word
from services.domain.metrics.period import Grain
from services.domain.metrics.phrases import cue_patterns
from services.domain.metrics.query import Aggregation
from services.domain.metrics.text import Span, Text

_E = r"(?<![a-z0-9])"
_N = r"(?:\d{1,3}|one|two|three|four|five|six|seven|eight|nine|ten)"
_HN = r"(?:\d{1,3}|十|[一二两三四五六七八九])"
_WHICH_STEP = "day|week|month|quarter|year"
_ZH_STEP = "日|天|周|星期|月|季度?|年"
_BUCKET = re.compile(
    rf"{_E}(?:by|per|each|every|which|what|best|worst|busiest|strongest|weakest|top|peak)\s"
    rf"(?:calendar |single )?(?P<g1>{_WHICH_STEP})s?(?![a-z])|"
    rf"{_E}(?P<g2>daily|weekly|monthly|quarterly|yearly|annual(?:ly)?)(?![a-z])|"
    rf"{_E}(?P<g3>{_WHICH_STEP})[- ](?:by|after)[- ](?:{_WHICH_STEP})(?![a-z])|"
    rf"(?:over|through) the (?P<g4>{_WHICH_STEP})s(?![a-z])|"
    rf"{_E}(?:highest|lowest|most|least|best|worst|strongest|weakest)[a-z -]{{0,24}}\s"
    rf"(?P<g9>{_WHICH_STEP})(?![a-z])|"
    rf"(?:每一?个?|按|各个?|逐|分|哪一?个?|[好差高低多少]的(?:{_HN}个|一?个?)|"
    rf"什么)(?P<g5>{_ZH_STEP})"
    r"(?!均|度目标)(?:份|度)?|"
    r"(?P<g6>月|季|年|日)(?:度|均)(?!目标)|(?P<g7>月)份|(?P<g8>周)均|什么时候|"
    r"(?<![a-z])when(?![a-z])"
)
_TOP = re.compile(
    rf"{_E}(?:top|bottom|best|worst|first|largest|biggest|smallest|highest|lowest|leading)\s*-?\s*"
    rf"(?P<n1>{_N})(?![a-z0-9])|{_E}(?P<n2>{_N})\s+(?:most|best|top|largest|biggest|highest|lowest|"
    rf"worst|smallest|least|leading|weakest|strongest|cheapest)(?![a-z])|"
    rf"(?P<b>最后|后|倒数)的?(?P<n3>{_HN})(?:名|位|个|家|款|种|大|类)?|"
    rf"(?:排名|排行)?前的?(?P<n4>{_HN})(?:名|位|个|家|款|种|大|类)?|[好差高低多少]的(?P<n6>{_HN})(?:个|名|家|款|种|类|位)|哪(?P<n5>{_HN})(?:个|家|款|种|类|名|位)"
)
_LIMIT = re.compile(
    rf"(?:{_E}(?P<op>above|over|more than|greater than|at least|under|below|less than|at most|"
    rf"exceeding|exceeds|exceeded|exceed|"
    r"no more than|no less than|higher than|lower than|fewer than|larger than|bigger than)|"
    r"(?P<os>>=|<=|>|<|≥|≤)|"
    r"(?P<oz>超过|大于|高于|多于|不少于|不低于|至少|小于|低于|少于|不到|不超过|至多))\s*[$€¥£]?\s*"
    r"(?P<num>\d[\d,]*(?:\.\d+)?)\s*(?P<mul>k|thousand|million|m|万|千|亿)?(?![a-z0-9])"
    r"(?!\s*(?:days|weeks|months|年|月|天))"
)
_NEGATIVE = re.compile(r"\bnegative\b|\bbelow zero\b|\bloss-making\b|亏损|为负")
_OPERATORS = {
    "above": ">", "over": ">", "more than": ">", "greater than": ">", "exceeding": ">",
    "exceed": ">", "exceeds": ">", "exceeded": ">",
    "higher than": ">",
    "larger than": ">", "bigger than": ">", "at least": ">=", "no less than": ">=", "under": "<",
        "below": "<",
    "less than": "<", "lower than": "<", "fewer than": "<", "at most": "<=", "no more than": "<=",
    "超过": ">", "大于": ">", "高于": ">", "多于": ">", "不少于": ">=", "不低于": ">=",
        "至少": ">=",
    "小于": "<", "低于": "<", "少于": "<", "不到": "<", "不超过": "<=", "至多": "<=",
    ">": ">", ">=": ">=", "<": "<", "<=": "<=", "≥": ">=", "≤": "<=",
}  # fmt: skip
_SCALES = {"k": 1e3, "thousand": 1e3, "千": 1e3, "万": 1e4, "m": 1e6, "million": 1e6, "亿": 1e8}
_GRAINS = {
    "day": Grain.DAY, "daily": Grain.DAY, "日": Grain.DAY, "天": Grain.DAY, "week": Grain.WEEK,
    "weekly": Grain.WEEK, "周": Grain.WEEK, "星期": Grain.WEEK, "month": Grain.MONTH,
    "monthly": Grain.MONTH,
    "月": Grain.MONTH, "quarter": Grain.QUARTER, "quarterly": Grain.QUARTER, "季": Grain.QUARTER,
    "季度": Grain.QUARTER, "year": Grain.YEAR, "yearly": Grain.YEAR, "annual": Grain.YEAR,
    "annually": Grain.YEAR, "年": Grain.YEAR,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """Is a number that values are compared with."""

    operator: str
    limit: float
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Cues:
    """Holds where each kind of word stands in the question."""

    places: dict[str, tuple[Span, ...]]
    """The spans, by the name of the kind."""
    top_count: int = 0
    """How many groups are asked for; 0 when the question does not say."""
    from_bottom: bool = False
    """Whether these are counted from the end."""
    grain: Grain | None = None
    """The step of time to group by."""
    limit: Limit | None = None
    """The number that values are compared with."""
    limit_count: int = 0
    """How many such numbers the question has."""

    def __contains__(self, name: str) -> bool:
        return bool(self.places.get(name))

    def spans(self, name: str) -> tuple[Span, ...]:
        """Return where words of the kind stand."""
        return self.places.get(name, ())

    @property
    def changing(self) -> bool:
        """Tell whether a change between two times is asked for."""
        return "up" in self or "down" in self or "change" in self

    @property
    def superlative(self) -> bool:
        """Tell whether the first of an order is asked for."""
        return any(name in self for name in ("desc", "asc", "frequent")) or self.top_count > 0

    @property
    def aggregation(self) -> Aggregation | None:
        """Return the aggregation that the question names."""
        for name in (Aggregation.MEDIAN, Aggregation.AVERAGE):
            if name.value in self:
                return name
        return None

    @property
    def all_spans(self) -> tuple[Span, ...]:
        """Return every place that a cue uses."""
        found = [span for spans in self.places.values() for span in spans]
        return (*found, *((self.limit.span,) if self.limit else ()))


def find_cues(text: Text, taken: Iterable[Span]) -> Cues:
    """Find the cues outside the places that already mean a time."""
    used = tuple(taken)

    def free(found: re.Match[str]) -> bool:
        return not any(Span(*found.span()).overlaps(span) for span in used)

    matches = {
        name: [found for found in pattern.finditer(text.lower) if free(found)]
        for name, pattern in cue_patterns().items()
    }
    matches["bucket"] = [found for found in _BUCKET.finditer(text.lower) if free(found)]
    places = {name: tuple(Span(*m.span()) for m in found) for name, found in matches.items()}
    top = next((found for found in _TOP.finditer(text.lower) if free(found)), None)
    if top is not None:
        places["top"] = (Span(*top.span()),)
    limits = _limits(text, free_only=used)
    return Cues(
        places={name: spans for name, spans in places.items() if spans},
        top_count=_top_count(top),
        from_bottom=bool(top and (top["b"] or re.search("bottom|worst|smallest|lowest", top[0]))),
        grain=_grain(matches["bucket"]),
        limit=limits[0] if limits else None,
        limit_count=len(limits),
    )


def _top_count(found: re.Match[str] | None) -> int:
    if found is None:
        return 0
    word = next(value for key, value in found.groupdict().items() if key != "b" and value)
    return number_word(word)


def _grain(found: list[re.Match[str]]) -> Grain | None:
    for match in found:
        word = next((value for value in match.groupdict().values() if value), None)
        return _GRAINS[word] if word else Grain.MONTH
    return None


def _limits(text: Text, free_only: tuple[Span, ...]) -> list[Limit]:
    negative = _NEGATIVE.search(text.lower)
    if negative is not None:
        return [Limit(operator="<", limit=0.0, span=Span(*negative.span()))]
    limits = []
    for found in _LIMIT.finditer(text.lower):
        span = Span(*found.span())
        if any(span.overlaps(other) for other in free_only):
            continue
        scale = _SCALES.get(found["mul"] or "", 1.0)
        value = float(found["num"].replace(",", "")) * scale
        operator = _OPERATORS[found["op"] or found["oz"] or found["os"]]
        limits.append(Limit(operator=operator, limit=value, span=span))
    return limits
