"""Checks that a model's prose says nothing that the facts do not say."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from services.domain.metrics.facts import Facts, Group
from services.domain.metrics.objections import objection
from services.domain.metrics.period import Period
from services.domain.metrics.query import Intent, NumberFilter, Unit
from services.domain.metrics.text import Text, lower_of

_NUMBER = re.compile(
    r"(?<![A-Za-z0-9_.,])[-−+]?[$€¥£]?(?P<num>\d[\d,]*(?:\.\d+)?)\s*"
    r"(?P<tail>%|percent|per cent|percentage points?|个百分点|k\b|thousand|m\b|million|bn\b|"
    r"billion|万|亿|千)?",
    re.IGNORECASE,
)
_SCALES = {"k": 1e3, "thousand": 1e3, "千": 1e3, "万": 1e4, "m": 1e6, "million": 1e6, "bn": 1e9,
           "billion": 1e9, "亿": 1e8}  # fmt: skip
_MOST = re.compile(
    r"\b(?:most|highest|best|top|largest|biggest|greatest|leading|strongest|leader|first|"
    r"outperform\w*|dominat\w+)\b|最高|最多|最大|最好|最强|第一|领先|最快"
)
_LEAST = re.compile(
    r"\b(?:least|lowest|worst|bottom|smallest|weakest|fewest|poorest)\b|最低|最少|最小|最差|垫底|最慢"
)
_UP = re.compile(
    r"\b(?:grew|grow\w*|rose|rise\w*|rising|increas\w+|climb\w*|gain\w*|improv\w+|"
    r"(?<!made )(?<!make )up|surg\w+|jump\w*)\b|"
    r"增长|增加|上升|上涨|提高|提升"
)
_DOWN = re.compile(
    r"\b(?:fell|fall\w*|declin\w+|decreas\w+|drop\w*|shrank|shrink\w*|lost|los(?:e|ing)|down|slump\w*|"
    r"reduc\w+)\b|下降|减少|下滑|下跌|降低"
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|[。！？；;\n]+")
_JUNK = re.compile(
    r"[\U0001f000-\U0001ffff]|```|</?\w+>|\bas an ai\b|\bi (?:am|can|cannot|will)\b", re.I
)
_SPELLED = re.compile(
    r"\b(?:twice|double[ds]?|triple[ds]?|half|halved|two|three|four|five|six|seven|eight|nine|ten|eleven|"
    r"twelve|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundreds?|thousands?|millions?|"
    r"quarters of|thirds?)\b|翻倍|翻番|一半|百万|千万"
)
_OF_ALL = re.compile(r"(?:\bof|out of|total\w*)\s+(?:a |the )?$|总\S{0,3}$|合计$", re.IGNORECASE)
_TOO_SHORT = 20
_TOO_LONG = 1200


@dataclass(frozen=True, slots=True)
class Verdict:
    """Tells whether a text may be shown, and if not, why, in the language of the question."""

    accepted: bool
    reason: str = ""


def check_prose(text: str, facts: Facts) -> Verdict:
    """Check a model's text against the facts.

    Every number must be a number of the facts, and of the group that its sentence names; the
    headline must be named; most, least, rose and fell must not contradict the facts.
    """
    stripped, language = text.strip(), facts.query.language
    if not _TOO_SHORT <= len(stripped) <= _TOO_LONG:
        return Verdict(False, objection("length", language))
    if _JUNK.search(stripped):
        return Verdict(False, objection("junk", language))
    if language == "zh" and not re.search("[\u3400-\u9fff]{4}", stripped):
        return Verdict(False, objection("language", language))
    return _Checker(stripped, facts).verdict()


class _Checker:
    """Holds one text and what it may say."""

    def __init__(self, text: str, facts: Facts) -> None:
        self._text = text
        self._facts = facts
        self._common = _Numbers(_common_numbers(facts), facts)
        self._own = {group.name: _Numbers(_group_numbers(group), facts) for group in facts.groups}
        self._total = _Numbers(_group_numbers(facts.total), facts)
        self._dated = _blank(text, facts)

    def verdict(self) -> Verdict:
        """Return the first thing that is wrong, or acceptance."""
        headline = self._facts.headline.name
        if headline and not _names(self._text, headline):
            return Verdict(False, self._object("unnamed", name=headline))
        if not any(True for _ in _numbers(self._dated)):
            return Verdict(False, self._object("no-number"))
        if found := _SPELLED.search(lower_of(self._dated)):
            return Verdict(False, self._object("spelled", said=found.group()))
        for sentence in _SENTENCE.split(self._dated):
            problem = self._problem(sentence)
            if problem:
                return Verdict(False, problem)
        return Verdict(True)

    def _problem(self, sentence: str) -> str:
        named = self._named(sentence)
        low = lower_of(sentence)
        return (
            self._wrong_number(sentence, named)
            or self._wrong_order(low, [group for _, group in named])
            or self._wrong_way(low, [group for _, group in named])
        )

    def _named(self, sentence: str) -> list[tuple[int, Group]]:
        """Return the groups that a sentence names, with their places, in its order."""
        found = []
        for group in self._facts.groups[:200]:
            found += [(place, group) for place in _places(sentence, group.name)]
        return sorted(found, key=lambda pair: pair[0])

    def _wrong_number(self, sentence: str, named: list[tuple[int, Group]]) -> str:
        for place, number, said in _numbers(_without_names(sentence, named)):
            if self._common.has(number):
                continue
            owners = _nearest(place, named)
            if self._total.has(number) and (not owners or _OF_ALL.search(sentence[:place])):
                continue
            if any(self._own[group.name].has(number) for group in owners):
                continue
            if (
                owners
                and self._total.has(number)
                and re.search("total|all|overall|总|全部", sentence.lower())
            ):
                continue
            if owners:
                return self._object("number-of", said=said.strip(), name=owners[0].name)
            return self._object("number", said=said.strip())
        return ""

    def _wrong_order(self, sentence: str, named: list[Group]) -> str:
        """Find a superlative for a group that does not hold it."""
        facts = self._facts
        most, least = _MOST.search(sentence), _LEAST.search(sentence)
        if not (most or least):
            return ""
        if not facts.groups:
            return self._object("unranked")
        if most and least:
            return self._object("both-ends")
        ordered = _by_value(facts)
        high = bool(most)
        falling = facts.query.intent is Intent.GROWTH and not facts.query.descending
        if falling and _DOWN.search(sentence):
            # `fell most` is the lowest change.
            high = not high
        allowed = ordered[0] if high else ordered[-1]
        if not high and not facts.complete and facts.query.descending:
            return self._object("last-unknown")
        wanted = [allowed.name, *(tie.name for tie in facts.ties)]
        if named and named[0].name not in wanted:
            return self._object("rank", said=named[0].name, name=allowed.name)
        return "" if named else self._object("nameless-rank")

    def _wrong_way(self, sentence: str, named: list[Group]) -> str:
        """Find a rise that was a fall, a fall that was a rise, or either without a comparison."""
        up, down = _UP.search(sentence), _DOWN.search(sentence)
        if not (up or down):
            return ""
        if self._facts.query.intent is Intent.TREND:
            return self._wrong_trend(bool(up), bool(down))
        if self._facts.query.comparison is None:
            return self._object("no-comparison")
        if up and down:
            return self._object("both-ways")
        for group in named or [self._facts.total]:
            change = group.change or 0.0
            if (up and change <= 0) or (down and change >= 0):
                kind = "way-of" if group.name else "way-of-total"
                return self._object(kind, name=group.name)
        return ""

    def _wrong_trend(self, up: bool, down: bool) -> str:
        groups = self._facts.groups
        if up and down:
            return self._object("both-ways")
        if len(groups) < 2 or groups[0].value is None or groups[-1].value is None:
            return self._object("no-change")
        change = groups[-1].value - groups[0].value
        wrong = (change > 0) != up or change == 0
        return self._object("way") if wrong else ""

    def _object(self, kind: str, *, said: str = "", name: str = "") -> str:
        return objection(kind, self._facts.query.language, said=said, name=name)


class _Numbers:
    """Knows which printed numbers stand for one of some values."""

    def __init__(self, values: Iterable[float], facts: Facts) -> None:
        self._values = tuple(values)
        self._percent = facts.query.measure.unit is Unit.RATIO

    def has(self, printed: "_Printed") -> bool:
        return any(printed.stands_for(value) for value in self._values)


@dataclass(frozen=True, slots=True)
class _Printed:
    """Is a number as a text prints it."""

    value: float
    decimals: int
    percent: bool
    scale: float

    def stands_for(self, exact: float) -> bool:
        """Tell whether it is the exact number, rounded as printed."""
        target = abs(exact) * (100 if self.percent else 1) / self.scale
        if abs(round(target, self.decimals) - self.value) < 10 ** -(self.decimals + 6):
            return True
        # 18,400 for 18,423.5: at least three digits that count, the rest zeros.
        if self.decimals or self.scale != 1 or self.value < 1000:
            return False
        digits = str(int(self.value)).rstrip("0")
        step = 10 ** (len(str(int(self.value))) - len(digits))
        return len(digits) >= 3 and abs(round(target / step) * step - self.value) < 0.5


def _numbers(text: str) -> Iterator[tuple[int, _Printed, str]]:
    for found in _NUMBER.finditer(text):
        digits = found["num"].replace(",", "")
        tail = (found["tail"] or "").lower()
        decimals = len(digits.partition(".")[2])
        percent = tail.startswith(("%", "per", "个"))
        yield (
            found.start(),
            _Printed(float(digits), decimals, percent, _SCALES.get(tail, 1.0)),
            found.group(),
        )


def _group_numbers(group: Group) -> list[float]:
    found = (group.value, group.previous, group.change, group.change_ratio, group.share)
    return [number for number in found if number is not None]


def _common_numbers(facts: Facts) -> list[float]:
    """Return what any sentence may say: limits and how many groups there are."""
    found = [float(facts.group_count), float(facts.query.limit)] if facts.groups else []
    return found + [float(f.limit) for f in facts.query.filters if isinstance(f, NumberFilter)]


def _blank(text: str, facts: Facts) -> str:
    """Blank out the dates and the names of the periods, whose digits are no results."""
    phrases: list[str] = []
    for period in (facts.query.period, facts.query.comparison):
        if period is not None:
            phrases += _period_phrases(period)
    if facts.query.coverage is not None:
        phrases += [facts.query.coverage.first.isoformat(), facts.query.coverage.last.isoformat()]
    for phrase in sorted(phrases, key=len, reverse=True):
        text = re.sub(re.escape(phrase), " " * len(phrase), text, flags=re.IGNORECASE)
    return text


def _period_phrases(period: Period) -> list[str]:
    names = [period.name("en"), period.name("zh"), period.start.isoformat(), period.end.isoformat()]
    short = period.name("en").rsplit(" ", 1)
    if len(short) == 2 and short[1].isdigit():
        quarter = short[0].startswith("Q") and f"{short[0][1:]}"
        ordinal = {"1": "first", "2": "second", "3": "third", "4": "fourth"}.get(str(quarter), "")
        names += [f"{short[0]} of {short[1]}", short[0]]
        names += [f"{ordinal} quarter of {short[1]}", f"{ordinal} quarter"] if ordinal else []
    return [name for name in names if name]


def _names(text: str, name: str) -> bool:
    return bool(_places(text, name))


def _places(text: str, name: str) -> list[int]:
    return [span.start for span in Text.of(text).find(name)] or _plain(text, name)


def _plain(text: str, name: str) -> list[int]:
    pattern = rf"(?<![a-z0-9]){re.escape(lower_of(name))}(?![a-z0-9])"
    return [found.start() for found in re.finditer(pattern, lower_of(text))]


def _without_names(sentence: str, named: list[tuple[int, Group]]) -> str:
    for _, group in named:
        sentence = re.sub(
            re.escape(group.name), lambda found: "_" * len(found.group()), sentence, flags=re.I
        )
    return sentence


def _nearest(place: int, named: list[tuple[int, Group]]) -> list[Group]:
    """Return the group named last before the place, and the first after it."""
    before = [group for at, group in named if at <= place]
    after = [group for at, group in named if at > place]
    return before[-1:] + after[:1]


def _by_value(facts: Facts) -> list[Group]:
    """Return the groups from most to least, by what the answer ranks."""
    if facts.query.intent is Intent.TREND:
        known = [group for group in facts.groups if group.value is not None]
        return sorted(known, key=lambda group: -(group.value or 0.0))
    groups = list(facts.groups)
    return groups if facts.query.descending else groups[::-1]
