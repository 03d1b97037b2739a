"""Knows which days the data speaks about, and which periods it covers whole."""

from dataclasses import dataclass
from datetime import date, timedelta

from services.domain.metrics.period import Grain, Period, add_months, containing

_SLACK_DAYS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Tells the first and the last day of the data, and how dense its days are."""

    first: date
    """The earliest day in the data."""
    last: date
    """The latest day in the data: all relative periods are relative to it, never to today."""
    day_count: int = 0
    """How many different days have rows; 0 when unknown."""

    @property
    def step_days(self) -> float:
        """Return the mean distance of two days that have rows: 1 for daily, 30 for monthly data."""
        if self.day_count < 2:
            return 1.0
        return max(1.0, (self.last - self.first).days / (self.day_count - 1))

    def reaches(self, end: date) -> bool:
        """Tell whether the data goes on to that day.

        A shop is closed at times, and monthly figures carry the first of the month, so the
        next row may be due only after the mean step and two days more.
        """
        return self.last + timedelta(days=self.step_days + _SLACK_DAYS) > end

    def begins_by(self, start: date) -> bool:
        """Tell whether the data begins early enough to cover a period from that day."""
        return self.first - timedelta(days=self.step_days + _SLACK_DAYS) < start

    def covers(self, period: Period) -> bool:
        """Tell whether the data covers the period whole."""
        return self.begins_by(period.start) and self.reaches(period.end)

    def touches(self, period: Period) -> bool:
        """Tell whether the period and the data share a day."""
        return period.start <= self.last and period.end >= self.first

    def last_complete(self, grain: Grain) -> Period:
        """Return the last step of the calendar that the data reaches the end of."""
        period = containing(self.last, grain)
        return period if self.reaches(period.end) else period.previous()

    def current(self, grain: Grain) -> Period:
        """Return the step that the latest day is in, cut there when it is not complete."""
        period = containing(self.last, grain)
        if self.reaches(period.end):
            return period
        return Period(start=period.start, end=self.last, grain=grain, to_date=True)

    def rolling(self, count: int, grain: Grain) -> Period:
        """Return the last so many steps: days and weeks to the latest day, else complete steps."""
        if grain in (Grain.DAY, Grain.WEEK):
            days = count * (7 if grain is Grain.WEEK else 1)
            return Period(start=self.last - timedelta(days=days - 1), end=self.last)
        last = self.last_complete(grain)
        months = last.month_count * count
        start = add_months(last.start, last.month_count - months)
        return Period(start=start, end=last.end, grain=grain if count == 1 else Grain.RANGE)

    def whole(self) -> Period:
        """Return all days of the data."""
        return Period(start=self.first, end=self.last)

    def best_grain(self) -> Grain:
        """Return the largest step that the data has two complete ones of, from quarter down."""
        for grain in (Grain.QUARTER, Grain.MONTH, Grain.WEEK):
            last = self.last_complete(grain)
            if self.covers(last) and self.covers(last.previous()):
                return grain
        return Grain.MONTH

    def trend_grain(self, period: Period) -> Grain:
        """Return the step that draws the period as a line of some points."""
        days = (min(period.end, self.last) - max(period.start, self.first)).days + 1
        if days <= 45:
            return Grain.DAY if self.step_days < 5 else Grain.WEEK
        if days <= 75 and self.step_days < 10:
            return Grain.WEEK
        return Grain.MONTH if days <= 1100 else Grain.QUARTER
