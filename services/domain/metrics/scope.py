"""Decides which period a question is about, and which one it compares with."""

import re
from dataclasses import dataclass, replace

from services.domain.metrics.calendar import place
from services.domain.metrics.coverage import Coverage
from services.domain.metrics.moments import Kind, Moment, find_moments
from services.domain.metrics.period import Grain, Period, containing, grain_name
from services.domain.metrics.text import Span, Text

_YEAR_EARLIER = re.compile(
    r"year[- ]over[- ]year|\by[/-]?o[/-]?y\b|\by/y\b|year[- ]on[- ]year|"
    r"\b(?:the )?same (?:\w+ )?(?:of |in )?(?:the )?(?:last|previous|prior) year|"
    r"\b(?:a|one) year (?:ago|earlier|before)|\bthe year (?:before|earlier)\b|"
    r"\bthe same (?:period|quarter|month|week|time) (?:a year (?:ago|earlier)|the year before)|"
    r"同比|(?:较|比|与|和|跟)?(?:去年|上年|上一年)(?:的)?(?:同期|同季度?|同月)(?:相比|比较|对比)?"
)
_PREVIOUS = re.compile(
    r"(?:month|quarter|week|period)[- ](?:over|on)[- ](?:month|quarter|week|period)|"
    r"\b[mqw]o[mqw]\b|"
    r"\bthe (?:month|quarter|week|period|one) (?:before|earlier)(?! last)\b|"
    r"\b(?:the )?(?:previous|prior|preceding) (?:period|one)\b|\bsequential(?:ly)?\b|"
    r"环比|(?:较|比|与|和|跟)?(?:上期|上一期|前期|前一个?(?:季度|季|月|周|期))(?:相比|比较|对比)?"
)
_SINCE_BEFORE = re.compile(r"(?:\b(?:since|from|starting(?: in| from)?|as of)|自从?|从)\s*$")
_SINCE_AFTER = re.compile(r"^\s*(?:以来|以后|起|开始|onwards?\b)")
_AFTER_BEFORE = re.compile(r"\bafter\s*$")
_AFTER_AFTER = re.compile(r"^\s*之后")
_UNTIL_BEFORE = re.compile(r"(?:\b(?:until|till|up to|through)|截至|截止到?)\s*$")
_BEFORE_BEFORE = re.compile(r"\bbefore\s*$")
_BEFORE_AFTER = re.compile(r"^\s*(?:之前|以前)")
_BASELINE_BEFORE = re.compile(
    r"(?:\b(?:compared? (?:with|to)|than(?: in)?|against|relative to|"
    r"over the|over|on)|相比于?|对比|比起?|较|相对于?)\s*(?:the |in )?$"
)
_BASELINE_AFTER = re.compile(r"^\s*的?(?:相比|比较|对比|比)")
_RANGE = re.compile(r"^\s*(?:to|-|–|—|~|through|thru|till|until|up to|到|至)\s*(?:the |end of )?$")
_DIRECTED = re.compile(
    r"^[\s,，]*(?:was |is |are |were |do |did )?(?:compared? (?:with|to)|than|against|over|"
    r"relative to|比|较|相比|对比)\s*(?:the |in )?$"
)
_PAIRED = re.compile(r"^\s*(?:and|&|,|，|和|与|跟|及|、|or|versus|vs\.?|对比)\s*(?:the |in )?$")
_YEAR_BEFORE = re.compile(r"\b(?:in|since|during|for|of|year|until|before|after|from|to)\s+$")
_WEEK_BEFORE = re.compile(r"\bweek (?:of|starting|beginning)(?: on)?\s*$")
_WEEK_AFTER = re.compile(r"^\s*(?:那|所在|当)(?:一)?周")
_BETWEEN = re.compile(r"\bbetween\s*(?:the )?$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Holds the time of a question."""

    period: Period | None = None
    """What the question is about; None when it names no time."""
    comparison: Period | None = None
    """What it is compared with, when the question says so."""
    year_earlier: bool = False
    """Whether the question wants the comparison with the year before."""
    previous: bool = False
    """Whether the question wants the comparison with the period before."""
    spans: tuple[Span, ...] = ()
    """The words that were used up."""
    notes: tuple[str, ...] = ()
    """How the words were read."""


def time_spans(text: Text) -> tuple[Span, ...]:
    """Return the words that speak of a time, without knowing the data."""
    phrases = [match.span() for match in (*_YEAR_EARLIER.finditer(text.lower),)]
    phrases += [match.span() for match in _PREVIOUS.finditer(text.lower)]
    moments = [moment.span for moment in find_moments(text)]
    return (*moments, *(Span(start, end) for start, end in phrases))


def scope_of(text: Text, coverage: Coverage, *, changing: bool, language: str) -> Scope:
    """Read the time of a question; `changing` tells that it asks for a change between two times."""
    yearly = [Span(*match.span()) for match in _YEAR_EARLIER.finditer(text.lower)]
    before = [Span(*match.span()) for match in _PREVIOUS.finditer(text.lower)]
    moments = [
        moment
        for moment in _shared_year(find_moments(text))
        if _plausible(moment, coverage, text)
        and not any(moment.span.overlaps(span) for span in (*yearly, *before))
    ]
    reader = _Reader(text, coverage, changing, language)
    period, comparison = reader.read(moments)
    if period is not None and comparison is None:
        if yearly:
            comparison = period.year_earlier()
        elif before:
            comparison = period.previous()
    return Scope(
        period=period,
        comparison=comparison,
        year_earlier=bool(yearly),
        previous=bool(before),
        spans=(*(moment.span for moment in moments), *yearly, *before),
        notes=tuple(dict.fromkeys(reader.notes)),
    )


def _plausible(moment: Moment, coverage: Coverage, text: Text) -> bool:
    """Drop a bare number that only looks like a year."""
    if moment.grain is not Grain.YEAR or moment.year is None or "年" in text.part(moment.span):
        return True
    if _YEAR_BEFORE.search(text.lower[: moment.span.start]):
        return True
    return coverage.first.year - 3 <= moment.year <= coverage.last.year + 3


def _shared_year(moments: tuple[Moment, ...]) -> tuple[Moment, ...]:
    """Give the one year of the question to the months and quarters that name none."""
    years = [m for m in moments if m.grain is Grain.YEAR and m.kind is Kind.ABSOLUTE]
    bare = [m for m in moments if _bare(m)]
    given = [m for m in moments if m.year is not None and m.grain is not Grain.YEAR]
    if len(years) == 1 and bare:
        year = years[0]
        return tuple(
            replace(m, year=year.year, year_offset=year.year_offset) if _bare(m) else m
            for m in moments
            if m is not year
        )
    if len(given) == 1 and bare and given[0] is moments[-1]:
        return tuple(replace(m, year=given[0].year) if _bare(m) else m for m in moments)
    return moments


def _bare(moment: Moment) -> bool:
    return (
        moment.kind is Kind.ABSOLUTE
        and moment.grain is not Grain.YEAR
        and moment.year is None
        and moment.year_offset is None
    )


class _Reader:
    """Combines the moments of one question."""

    def __init__(self, text: Text, coverage: Coverage, changing: bool, language: str) -> None:
        self._text = text
        self._coverage = coverage
        self._changing = changing
        self._language = language
        self.notes: list[str] = []

    def read(self, moments: list[Moment]) -> tuple[Period | None, Period | None]:
        """Return the period and what it is compared with."""
        if not moments:
            return None, None
        if len(moments) == 1:
            return self._single(moments[0])
        if len(moments) == 2:
            return self._pair(moments[0], moments[1])
        placed = [period for moment in moments if (period := self._place(moment))]
        if not placed:
            return None, None
        return _span_of(placed), None

    def _single(self, moment: Moment) -> tuple[Period | None, Period | None]:
        before, after = self._around(moment)
        if _is_baseline(moment, before, after) and moment.kind is Kind.LAST:
            current = self._coverage.current(moment.grain)
            self._note_current(moment, current)
            return current, current.previous()
        period = self._place(moment)
        if period is None:
            return None, None
        if _WEEK_BEFORE.search(before) or _WEEK_AFTER.search(after):
            period = containing(period.start, Grain.WEEK)
        opened = self._opened(period, before, after)
        if opened is None and _is_baseline(moment, before, after):
            current = self._coverage.current(moment.grain)
            return current, period
        return opened or period, None

    def _opened(self, period: Period, before: str, after: str) -> Period | None:
        """Return `since March`, `before July` and the like, None when it is none of them."""
        data = self._coverage
        if _AFTER_BEFORE.search(before) or _AFTER_AFTER.search(after):
            following = Period(start=period.end, end=period.end).previous()
            start = period.end + (period.end - following.end)
            return Period(start=start, end=max(start, data.last))
        if _SINCE_BEFORE.search(before) or _SINCE_AFTER.search(after):
            return Period(start=period.start, end=max(period.end, data.last))
        if _BEFORE_BEFORE.search(before) or _BEFORE_AFTER.search(after):
            end = Period(start=period.start, end=period.start).previous().end
            return Period(start=min(data.first, end), end=end)
        if _UNTIL_BEFORE.search(before):
            return Period(start=min(data.first, period.end), end=period.end)
        return None

    def _pair(self, one: Moment, two: Moment) -> tuple[Period | None, Period | None]:
        between = self._text.lower[one.span.end : two.span.start]
        first = self._place(one)
        second = self._second(one, two, first)
        if first is None or second is None:
            return first or second, None
        before, _ = self._around(one)
        step = Grain.DAY not in (one.grain, two.grain)
        if _RANGE.match(between) or (_BETWEEN.search(before) and _PAIRED.match(between)):
            if self._changing and step:
                return second, first
            return _span_of([first, second]), None
        if _DIRECTED.match(between) or self._baseline(two):
            return first, second
        if self._baseline(one):
            return second, first
        return self._unjoined(first, second)

    def _unjoined(self, first: Period, second: Period) -> tuple[Period, Period | None]:
        """Read two times that no word orders: two to compare, one after the other, or nested."""
        for inner, outer in ((first, second), (second, first)):
            if outer.contains(inner.start) and outer.contains(inner.end):
                return inner, None
        early, late = sorted((first, second), key=lambda period: period.start)
        return late, early

    def _second(self, one: Moment, two: Moment, first: Period | None) -> Period | None:
        """Place the second time, which may be meant relative to the first."""
        relative = two.kind is Kind.LAST or (two.year_offset == -1 and two.grain is Grain.YEAR)
        if first is not None and relative:
            if two.grain is Grain.YEAR and one.grain is not Grain.YEAR:
                return first.year_earlier()
            if two.grain is one.grain and one.kind in (Kind.LAST, Kind.CURRENT, Kind.TO_DATE):
                return first.previous()
            if two.grain is one.grain and self._baseline(two):
                return first.previous()
        if first is not None and _bare(two) and one.year is not None:
            placed = place(replace(two, year=one.year), self._coverage)
            between = self._text.lower[one.span.end : two.span.start]
            if placed is not None and placed.start < first.start and _RANGE.match(between):
                placed = place(replace(two, year=one.year + 1), self._coverage)
            return placed
        return self._place(two)

    def _baseline(self, moment: Moment) -> bool:
        return _is_baseline(moment, *self._around(moment))

    def _around(self, moment: Moment) -> tuple[str, str]:
        return self._text.lower[: moment.span.start], self._text.lower[moment.span.end :]

    def _place(self, moment: Moment) -> Period | None:
        period = place(moment, self._coverage)
        if period is None:
            return None
        whole_year = moment.grain is Grain.YEAR and (moment.year_offset or 0) < 0
        if moment.kind is Kind.LAST or whole_year:
            self._note_last(moment, period)
        elif moment.kind in (Kind.CURRENT, Kind.ROLLING, Kind.TO_DATE):
            self._note_current(moment, period)
        elif _bare(moment):
            self._note_year(moment, period)
        return period

    def _note_last(self, moment: Moment, period: Period) -> None:
        said, last = self._text.part(moment.span), self._coverage.last.isoformat()
        grain, name = grain_name(moment.grain, self._language), period.full_name(self._language)
        if self._language == "zh":
            self.notes.append(f"“{said}”指数据中最后一个完整的{grain}：{name}；数据截至{last}。")
        else:
            self.notes.append(
                f"“{said}” is the last complete calendar {grain} in the data: {name}; "
                f"the data ends on {last}."
            )

    def _note_current(self, moment: Moment, period: Period) -> None:
        said, last = self._text.part(moment.span), self._coverage.last.isoformat()
        dates = period.dates(self._language)
        if self._language == "zh":
            self.notes.append(f"“{said}”以数据的最后日期{last}为准：{dates}。")
        else:
            self.notes.append(f"“{said}” is counted from the data's latest day, {last}: {dates}.")

    def _note_year(self, moment: Moment, period: Period) -> None:
        said, name = self._text.part(moment.span), period.full_name(self._language)
        if self._language == "zh":
            self.notes.append(f"“{said}”未注明年份，按数据中最近的一个理解：{name}。")
        else:
            self.notes.append(
                f"“{said}” names no year; it is read as the latest in the data: {name}."
            )


def _is_baseline(moment: Moment, before: str, after: str) -> bool:
    if moment.kind is Kind.ROLLING:
        return False
    found = _BASELINE_BEFORE.search(before)
    if found and found.group().split()[:1] in (["over"], ["on"]):
        return moment.kind is Kind.LAST and "the" in found.group().split()
    return bool(found or _BASELINE_AFTER.search(after))


def _span_of(periods: list[Period]) -> Period:
    start = min(period.start for period in periods)
    return Period(start=start, end=max(period.end for period in periods))
