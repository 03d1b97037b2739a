"""Places a named time in the calendar, relative to the days of the data."""

from dataclasses import replace
from datetime import date

from services.domain.metrics.coverage import Coverage
from services.domain.metrics.moments import Kind, Moment
from services.domain.metrics.period import Grain, Period, add_months, containing, month_end


def place(moment: Moment, coverage: Coverage) -> Period | None:
    """Return the period that a moment means; None when there is no such day."""
    match moment.kind:
        case Kind.CURRENT:
            return coverage.current(moment.grain)
        case Kind.LAST if moment.grain is Grain.DAY:
            return containing(coverage.last, Grain.DAY).previous()
        case Kind.LAST:
            return coverage.last_complete(moment.grain)
        case Kind.BEFORE_LAST:
            return coverage.last_complete(moment.grain).previous()
        case Kind.ROLLING:
            return coverage.rolling(max(1, moment.count), moment.grain)
        case Kind.TO_DATE:
            return _to_date(coverage, moment.grain)
        case Kind.FIRST_QUARTERS:
            start = date(_year(moment, coverage), 1, 1)
            end = month_end(add_months(start, 3 * moment.count - 1))
            return _cut(Period(start=start, end=end), coverage)
        case Kind.ABSOLUTE:
            return _absolute(moment, coverage)


def _to_date(coverage: Coverage, grain: Grain) -> Period:
    start = containing(coverage.last, grain).start
    return Period(start=start, end=coverage.last, grain=grain, to_date=True)


def _absolute(moment: Moment, coverage: Coverage) -> Period | None:
    if moment.grain is Grain.YEAR:
        return _whole_year(moment, coverage)
    if moment.grain in (Grain.DAY, Grain.MONTH):
        month = moment.index
    else:
        month = (moment.index - 1) * (3 if moment.grain is Grain.QUARTER else 6) + 1
    try:
        first = date(_year(moment, coverage), month, max(1, moment.day))
        if moment.year is None and moment.year_offset is None and first > coverage.last:
            first = date(first.year - 1, month, max(1, moment.day))
    except ValueError:
        return None
    return _cut(containing(first, moment.grain), coverage)


def _whole_year(moment: Moment, coverage: Coverage) -> Period:
    if moment.year is not None:
        return _cut(containing(date(moment.year, 1, 1), Grain.YEAR), coverage)
    offset = moment.year_offset or 0
    if offset == 0:
        return coverage.current(Grain.YEAR)
    last = coverage.last_complete(Grain.YEAR)
    return last if offset == -1 else last.previous()


def _year(moment: Moment, coverage: Coverage) -> int:
    if moment.year is not None:
        return moment.year
    return coverage.last.year + (moment.year_offset or 0)


def _cut(period: Period, coverage: Coverage) -> Period:
    """End a period that the data has only begun on the data's latest day."""
    if period.start <= coverage.last < period.end and not coverage.reaches(period.end):
        return replace(period, end=coverage.last, to_date=True)
    return period
