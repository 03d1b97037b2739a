"""Holds the words of time to the days that they mean, in both languages."""

from datetime import date

import pytest

from services.domain.metrics.coverage import Coverage
from services.domain.metrics.period import Grain
from services.domain.metrics.scope import scope_of
from services.domain.metrics.text import Text

DATA = Coverage(first=date(2025, 1, 1), last=date(2026, 10, 12), day_count=650)
"""Daily data that ends in the middle of October 2026."""

Q2, Q3 = "2026-04-01 to 2026-06-30", "2026-07-01 to 2026-09-30"


@pytest.mark.parametrize(
    ("question", "days"),
    [
        ("revenue last quarter", Q3),
        ("revenue in the previous quarter", Q3),
        ("上个季度的销售额", Q3),
        ("revenue in Q2", Q2),
        ("revenue in Q4", "2026-10-01 to 2026-10-12"),
        ("2026年第二季度", Q2),
        ("二季度", Q2),
        ("Q2 2026", Q2),
        ("2026Q2", Q2),
        ("the third quarter of 2025", "2025-07-01 to 2025-09-30"),
        ("去年第三季度", "2025-07-01 to 2025-09-30"),
        ("last month", "2026-09-01 to 2026-09-30"),
        ("上个月", "2026-09-01 to 2026-09-30"),
        ("last year", "2025-01-01 to 2025-12-31"),
        ("去年", "2025-01-01 to 2025-12-31"),
        ("this quarter", "2026-10-01 to 2026-10-12"),
        ("本季度", "2026-10-01 to 2026-10-12"),
        ("this year", "2026-01-01 to 2026-10-12"),
        ("今年以来", "2026-01-01 to 2026-10-12"),
        ("last week", "2026-10-05 to 2026-10-11"),
        ("the last 30 days", "2026-09-13 to 2026-10-12"),
        ("最近30天", "2026-09-13 to 2026-10-12"),
        ("the past three months", Q3),
        ("最近三个月", Q3),
        ("since March", "2026-03-01 to 2026-10-12"),
        ("自3月以来", "2026-03-01 to 2026-10-12"),
        ("after July 1", "2026-07-02 to 2026-10-12"),
        ("before March 2025", "2025-01-01 to 2025-02-28"),
        ("between 2026-02-01 and 2026-02-15", "2026-02-01 to 2026-02-15"),
        ("from November 2025 to March", "2025-11-01 to 2026-03-31"),
        ("7月到9月", Q3),
        ("7月1日至8月15日", "2026-07-01 to 2026-08-15"),
        ("in May", "2026-05-01 to 2026-05-31"),
        ("in December", "2025-12-01 to 2025-12-31"),
        ("on 4 July 2026", "2026-07-04"),
        ("上半年", "2026-01-01 to 2026-06-30"),
        ("the first half of 2025", "2025-01-01 to 2025-06-30"),
        ("前三季度", "2026-01-01 to 2026-09-30"),
        ("in 2024", "2024-01-01 to 2024-12-31"),
    ],
)
def test_period_is_what_the_words_mean(question: str, days: str) -> None:
    scope = scope_of(Text.of(question), DATA, changing=False, language="en")

    assert scope.period is not None
    assert scope.period.dates("en") == days


@pytest.mark.parametrize(
    ("question", "days", "before"),
    [
        ("Q3 vs Q2", Q3, Q2),
        ("compare Q2 and Q3", Q3, Q2),
        ("how did revenue change from Q2 to Q3", Q3, Q2),
        ("last quarter compared with the quarter before", Q3, Q2),
        ("last quarter versus the previous quarter", Q3, Q2),
        ("上个季度环比", Q3, Q2),
        ("Q3 year over year", Q3, "2025-07-01 to 2025-09-30"),
        ("Q3 compared with the same quarter last year", Q3, "2025-07-01 to 2025-09-30"),
        ("Q3 compared with last year", Q3, "2025-07-01 to 2025-09-30"),
        ("第三季度同比", Q3, "2025-07-01 to 2025-09-30"),
        ("今年8月与去年8月相比", "2026-08-01 to 2026-08-31", "2025-08-01 to 2025-08-31"),
        ("this month vs last month", "2026-10-01 to 2026-10-12", "2026-09-01 to 2026-09-12"),
        ("本月比上个月", "2026-10-01 to 2026-10-12", "2026-09-01 to 2026-09-12"),
        ("this year against last year", "2026-01-01 to 2026-10-12", "2025-01-01 to 2025-10-12"),
        ("2025 vs 2026", "2026-01-01 to 2026-10-12", "2025-01-01 to 2025-12-31"),
    ],
)
def test_comparison_is_what_the_words_mean(question: str, days: str, before: str) -> None:
    scope = scope_of(Text.of(question), DATA, changing=True, language="en")

    assert scope.period is not None
    assert scope.comparison is not None
    assert (scope.period.dates("en"), scope.comparison.dates("en")) == (days, before)


@pytest.mark.parametrize(
    "question", ["Where is order 2043?", "It may rain", "top 5 products", "前5名"]
)
def test_numbers_and_words_that_look_like_times_are_none(question: str) -> None:
    assert scope_of(Text.of(question), DATA, changing=False, language="en").period is None


@pytest.mark.parametrize(
    ("last", "day_count", "quarter_end"),
    [
        (date(2026, 9, 30), 638, date(2026, 9, 30)),
        (date(2026, 9, 28), 636, date(2026, 9, 30)),
        (date(2026, 9, 20), 628, date(2026, 6, 30)),
        (date(2026, 9, 1), 21, date(2026, 9, 30)),
        (date(2026, 8, 1), 20, date(2026, 6, 30)),
    ],
)
def test_quarter_is_complete_when_the_next_row_is_due_after_it(
    last: date, day_count: int, quarter_end: date
) -> None:
    coverage = Coverage(first=date(2025, 1, 1), last=last, day_count=day_count)

    assert coverage.last_complete(Grain.QUARTER).end == quarter_end
