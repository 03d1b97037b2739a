"""Does the arithmetic of calendar periods, and names them."""

from calendar import monthrange
from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum

_MONTHS_EN = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
_QUARTERS_ZH = "一二三四"


class Grain(StrEnum):
    """Names the calendar's steps."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    QUARTER = "quarter"
    HALF = "half"
    YEAR = "year"
    RANGE = "range"
    """Any two dates."""


MONTHS_IN = {Grain.MONTH: 1, Grain.QUARTER: 3, Grain.HALF: 6, Grain.YEAR: 12}
"""How many months a step has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """Is a stretch of days, both ends included."""

    start: date
    """Its first day."""
    end: date
    """Its last day."""
    grain: Grain = Grain.RANGE
    """The step of the calendar that it is, or is the beginning of."""
    to_date: bool = False
    """Whether it is only the beginning of its step, as far as the data goes."""

    @property
    def day_count(self) -> int:
        """Return how many days it has."""
        return (self.end - self.start).days + 1

    @property
    def month_count(self) -> int:
        """Return how many whole calendar months it is; 0 when it is none."""
        if self.start.day != 1 or self.end != month_end(self.end):
            return 0
        return (self.end.year - self.start.year) * 12 + self.end.month - self.start.month + 1

    def contains(self, day: date) -> bool:
        """Tell whether the day is inside."""
        return self.start <= day <= self.end

    def previous(self) -> "Period":
        """Return the period of the same length right before; for a begun step, its same days."""
        if self.to_date and self.grain is not Grain.RANGE:
            whole = containing(self.start, self.grain).previous()
            end = min(whole.end, whole.start + timedelta(days=self.day_count - 1))
            return Period(start=whole.start, end=end)
        if self.month_count and self.grain is not Grain.DAY:
            return self._moved(-self.month_count)
        back = timedelta(days=self.day_count)
        return Period(start=self.start - back, end=self.end - back, grain=self.grain)

    def year_earlier(self) -> "Period":
        """Return the same days of the year before."""
        return self._moved(-12)

    def _moved(self, months: int) -> "Period":
        end = add_months(self.end, months)
        if self.end == month_end(self.end):
            end = month_end(end)
        grain = Grain.RANGE if self.to_date else self.grain
        return Period(start=add_months(self.start, months), end=end, grain=grain)

    def name(self, language: str) -> str:
        """Return the short name: "Q3 2026", "2026年第三季度"; the dates when it has none."""
        name = _name_zh(self) if language == "zh" else _name_en(self)
        if name and self.to_date:
            return f"{name}（至今）" if language == "zh" else f"{name} to date"
        return name or self.dates(language)

    def dates(self, language: str) -> str:
        """Return its first and last day."""
        if self.start == self.end:
            return self.start.isoformat()
        joint = "至" if language == "zh" else " to "
        return f"{self.start.isoformat()}{joint}{self.end.isoformat()}"

    def full_name(self, language: str) -> str:
        """Return the short name with the dates in brackets."""
        name, dates = self.name(language), self.dates(language)
        if name == dates:
            return name
        return f"{name}（{dates}）" if language == "zh" else f"{name} ({dates})"


def containing(day: date, grain: Grain) -> Period:
    """Return the whole step of the calendar that the day is in."""
    if grain is Grain.WEEK:
        start = day - timedelta(days=day.weekday())
        return Period(start=start, end=start + timedelta(days=6), grain=grain)
    if grain in MONTHS_IN:
        size = MONTHS_IN[grain]
        start = date(day.year, (day.month - 1) // size * size + 1, 1)
        return Period(start=start, end=month_end(add_months(start, size - 1)), grain=grain)
    return Period(start=day, end=day, grain=Grain.DAY)


def add_months(day: date, months: int) -> date:
    """Return the same day of another month, or that month's last."""
    index = day.year * 12 + day.month - 1 + months
    year, month = index // 12, index % 12 + 1
    return date(year, month, min(day.day, monthrange(year, month)[1]))


def month_end(day: date) -> date:
    """Return the last day of the day's month."""
    return date(day.year, day.month, monthrange(day.year, day.month)[1])


def grain_name(grain: Grain, language: str) -> str:
    """Return what the step is called."""
    if language == "zh":
        names = {
            "day": "日",
            "week": "周",
            "month": "月",
            "quarter": "季度",
            "half": "半年",
            "year": "年",
        }
        return names.get(grain.value, "时间段")
    return {"half": "half-year", "range": "period"}.get(grain.value, grain.value)


def _name_en(period: Period) -> str:
    start = period.start
    match period.grain:
        case Grain.MONTH:
            return f"{_MONTHS_EN[start.month - 1]} {start.year}"
        case Grain.QUARTER:
            return f"Q{(start.month - 1) // 3 + 1} {start.year}"
        case Grain.HALF:
            return f"H{(start.month - 1) // 6 + 1} {start.year}"
        case Grain.YEAR:
            return str(start.year)
        case Grain.WEEK:
            return f"the week of {start.isoformat()}"
        case _:
            return ""


def _name_zh(period: Period) -> str:
    start = period.start
    match period.grain:
        case Grain.MONTH:
            return f"{start.year}年{start.month}月"
        case Grain.QUARTER:
            return f"{start.year}年第{_QUARTERS_ZH[(start.month - 1) // 3]}季度"
        case Grain.HALF:
            return f"{start.year}年{'上' if start.month <= 6 else '下'}半年"
        case Grain.YEAR:
            return f"{start.year}年"
        case Grain.WEEK:
            return f"{start.isoformat()}起的一周"
        case _:
            return ""
