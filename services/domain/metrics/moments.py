"""Finds the words of a question that name a time, in English and in Chinese."""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files

from services.domain.metrics.period import Grain
from services.domain.metrics.text import Span, Text


class Kind(StrEnum):
    """Tells how a moment is meant."""

    ABSOLUTE = "absolute"
    """A year, half, quarter, month or day by name; without a year, the latest in the data."""
    CURRENT = "current"
    """The step of the calendar that the latest day is in."""
    LAST = "last"
    """The last complete step."""
    BEFORE_LAST = "before_last"
    """The one before the last complete step."""
    ROLLING = "rolling"
    """The last so many days, weeks, months, quarters or years."""
    TO_DATE = "to_date"
    """From the beginning of the latest step to the latest day."""
    FIRST_QUARTERS = "first_quarters"
    """The first so many quarters of a year."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """Is one time that a question names, not yet placed in the calendar."""

    span: Span
    """Where it stands."""
    kind: Kind
    """How it is meant."""
    grain: Grain
    """The step of the calendar."""
    year: int | None = None
    """The year, when given."""
    year_offset: int | None = None
    """0 for this year, -1 for last year, -2 for the one before, when said so."""
    index: int = 0
    """Which month, quarter or half, from 1."""
    day: int = 0
    """Which day of the month, from 1."""
    count: int = 0
    """How many steps."""


_EN_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan", "february feb", "march mar", "april apr", "may", "june jun", "july jul",
            "august aug", "september sept sep", "october oct", "november nov", "december dec",
        ),
        start=1,
    )
    for name in names.split()
}  # fmt: skip
_EN_NUMBERS = {
    name: number
    for number, name in enumerate(
        "one two three four five six seven eight nine ten eleven twelve".split(), start=1
    )
}
_ORDINALS = {"first": 1, "1st": 1, "second": 2, "2nd": 2, "third": 3, "3rd": 3, "fourth": 4,
             "4th": 4}  # fmt: skip
_ZH_NUMBERS = {name: number for number, name in enumerate("一二三四五六七八九十", start=1)} | {
    "十一": 11, "十二": 12, "两": 2, "三十": 30, "二十": 20, "十五": 15, "六十": 60, "九十": 90,
}  # fmt: skip
_GRAINS = {
    "day": Grain.DAY, "week": Grain.WEEK, "month": Grain.MONTH, "quarter": Grain.QUARTER,
    "year": Grain.YEAR, "half": Grain.HALF, "half-year": Grain.HALF, "天": Grain.DAY,
    "日": Grain.DAY, "周": Grain.WEEK, "星期": Grain.WEEK, "礼拜": Grain.WEEK, "月": Grain.MONTH,
    "季度": Grain.QUARTER, "季": Grain.QUARTER, "年": Grain.YEAR, "年度": Grain.YEAR,
}  # fmt: skip

_MONTH = "|".join(sorted(_EN_MONTHS, key=len, reverse=True))
_NUMBER = r"\d{1,3}|" + "|".join(_EN_NUMBERS)
_ZH_NUMBER = r"\d{1,3}|十[一二五]?|[二三六九]十|[一二两三四五六七八九]"
_YEAR = r"(?:19|20)\d\d"
_ZH_YEAR = rf"(?:(?P<year>{_YEAR})年?的?|(?P<rel>今年|本年|去年|上年|前年)的?)?"
_EN_YEAR = rf"(?:,?\s*(?:of\s+|in\s+)?(?:(?P<year>{_YEAR})(?!\d)|(?P<rel>this year|last year)))?"
_STEP = "day|week|month|quarter|year"

_PARTS = {
    "MONTH": _MONTH, "NUMBER": _NUMBER, "ZH_NUMBER": _ZH_NUMBER, "STEP": _STEP, "YEAR": _YEAR,
    "EN_YEAR": _EN_YEAR, "ZH_YEAR": _ZH_YEAR,
}  # fmt: skip


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Return the patterns of `moments.toml`, each with its kind; read once."""
    text = files(__package__ or __name__).joinpath("moments.toml").read_text(encoding="utf-8")
    return tuple(
        (str(entry["kind"]), re.compile(re.sub("@(\\w+)@", _part, str(entry["regex"]))))
        for entry in tomllib.loads(text)["pattern"]
    )


def _part(found: re.Match[str]) -> str:
    return _PARTS[found.group(1)]


def find_moments(text: Text) -> tuple[Moment, ...]:
    """Return the times in the order of the question; of two that overlap, the longer."""
    found = sorted(_all(text), key=lambda moment: (-len(moment.span), moment.span.start))
    kept: list[Moment] = []
    for moment in found:
        if not any(moment.span.overlaps(other.span) for other in kept):
            kept.append(moment)
    return tuple(sorted(kept, key=lambda moment: moment.span.start))


def _all(text: Text) -> Iterator[Moment]:
    for name, pattern in _patterns():
        for match in pattern.finditer(text.lower):
            if _is_modal_may(text, match):
                continue
            moment = _moment(name, match)
            if moment is not None:
                yield moment


def _is_modal_may(text: Text, match: re.Match[str]) -> bool:
    """Tell `it may` from `in May`: the month is written with a capital, or after in, of, since."""
    if match.group() not in ("may", "mar", "sep", "dec", "jan", "march"):
        return False
    if text.original[match.start()].isupper() and match.start() > 0:
        return False
    before = text.lower[: match.start()].rstrip().rsplit(" ", 1)[-1]
    return before not in {
        "in", "of", "during", "since", "from", "until", "till", "to", "and", "for", "after",
        "before", "last", "by", "with", "vs", "versus", "between", "than", "through",
    }  # fmt: skip


def _moment(name: str, match: re.Match[str]) -> Moment | None:
    got = {key: value for key, value in match.groupdict().items() if value}
    said = match.group()
    start = match.start() + len(said) - len(said.lstrip())
    span = Span(start, start + len(said.strip(" /-'")))
    year = int(got["year"]) if "year" in got else None
    offset = _year_offset(got.get("rel", ""))
    if name == "rolling_half":
        return Moment(span=span, kind=Kind.ROLLING, grain=Grain.MONTH, count=6)
    if name == "relative_day":
        today = (got.get("word") or got.get("word2")) in ("today", "今天", "今日")
        kind = Kind.CURRENT if today else Kind.LAST
        return Moment(span=span, kind=kind, grain=Grain.DAY)
    if name in ("last", "before_last", "current", "to_date", "rolling"):
        return Moment(
            span=span, kind=Kind(name), grain=_grain(got), count=number_word(got.get("count", ""))
        )
    if name == "first_quarters":
        count = number_word(got["count"])
        return Moment(span=span, kind=Kind.FIRST_QUARTERS, grain=Grain.QUARTER, year=year,
                      year_offset=offset, count=count)  # fmt: skip
    return _absolute(name.partition("_")[0], span, got, year, offset)


def _absolute(
    what: str, span: Span, got: dict[str, str], year: int | None, offset: int | None
) -> Moment | None:
    if what == "year":
        return Moment(
            span=span, kind=Kind.ABSOLUTE, grain=Grain.YEAR, year=year, year_offset=offset
        )
    index = number_word(got["index"])
    day = int(got.get("day", 0))
    grain = Grain.DAY if what in ("date", "day") else Grain(what)
    if (grain in (Grain.DAY, Grain.MONTH) and not 1 <= index <= 12) or day > 31:
        return None
    return Moment(
        span=span, kind=Kind.ABSOLUTE, grain=grain, year=year, year_offset=offset, index=index,
        day=day,
    )  # fmt: skip


def _grain(got: dict[str, str]) -> Grain:
    if "short" in got:
        return {"y": Grain.YEAR, "m": Grain.MONTH, "q": Grain.QUARTER}[got["short"][0]]
    word = got.get("grain") or got.get("grain2") or got.get("grain3")
    return _GRAINS[word] if word else Grain.YEAR


def number_word(word: str) -> int:
    """Return the number that a word or digits name; 0 for none."""
    if word.isdigit():
        return int(word)
    for known in (_EN_MONTHS, _EN_NUMBERS, _ORDINALS, _ZH_NUMBERS, {"上": 1, "下": 2}):
        if word in known:
            return known[word]
    return 0


def _year_offset(word: str) -> int | None:
    if not word:
        return None
    if word in ("去年", "last year") or word.startswith("上"):
        return -1
    return -2 if word == "前年" else 0
