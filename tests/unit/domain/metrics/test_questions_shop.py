"""Holds answers about an English shop's orders to what a spreadsheet shows."""

import pytest

from tests.unit.domain.database import Database
from tests.unit.domain.spreadsheet import (
    Row,
    add,
    by,
    distinct,
    highest,
    keep,
    lowest,
    read,
    weekday,
)

ROWS = read("shop")
DAY = "order_date"
ALL = ("2025-07-01", "2026-10-12")
Q2, Q3, Q3_2025 = (
    ("2026-04-01", "2026-06-30"),
    ("2026-07-01", "2026-09-30"),
    ("2025-07-01", "2025-09-30"),
)
"""The data ends on 2026-10-12, so the third quarter is the last complete one."""


def revenue(within: tuple[str, str] = ALL, **where: str) -> float:
    return add(keep(ROWS, DAY, within, **where), "revenue")


def revenues(column: str, within: tuple[str, str] = ALL) -> dict[str, float]:
    return {
        name: add(rows, "revenue") for name, rows in by(keep(ROWS, DAY, within), column).items()
    }


def changes(column: str, before: tuple[str, str], after: tuple[str, str]) -> dict[str, float]:
    old, new = revenues(column, before), revenues(column, after)
    return {name: new.get(name, 0) - old.get(name, 0) for name in {*old, *new}}


def return_rate(rows: list[Row]) -> float:
    return len([row for row in rows if row["returned"] == "yes"]) / len(rows)


GROWN = highest(changes("category", Q2, Q3))
FALLEN = lowest(changes("category", Q2, Q3))
FASTEST = highest(
    {n: c / revenues("category", Q2)[n] for n, c in changes("category", Q2, Q3).items()}
)
MONTHS = {
    month: add(rows, "revenue")
    for month, rows in by(ROWS, lambda row: row["order_date"][:7]).items()
    if month != "2026-10"
}
ORDERS = {order: add(rows, "revenue") for order, rows in by(ROWS, "order_id").items()}
RATES = {name: return_rate(rows) for name, rows in by(ROWS, "category").items()}
UNITS_2026 = {
    name: add(rows, "quantity")
    for name, rows in by(keep(ROWS, DAY, ("2026-01-01", "2026-10-12")), "product").items()
}
WEEKDAYS = {
    str(day): float(distinct(rows, "order_id"))
    for day, rows in by(ROWS, lambda row: str(weekday(row["order_date"]))).items()
}
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
TOYS_Q3 = revenue(Q3, category="Toys")

CASES: list[tuple[str, str, float, float | None]] = [
    # question, headline's name, its value, its previous value
    (
        "Which category grew most last quarter?",
        GROWN,
        revenue(Q3, category=GROWN),
        revenue(Q2, category=GROWN),
    ),
    (
        "Which category grew fastest last quarter?",
        FASTEST,
        revenue(Q3, category=FASTEST),
        revenue(Q2, category=FASTEST),
    ),
    (
        "Which category fell the most last quarter?",
        FALLEN,
        revenue(Q3, category=FALLEN),
        revenue(Q2, category=FALLEN),
    ),
    ("What was the total revenue in Q3 2026?", "", revenue(Q3), None),
    ("what was turnover in the third quarter of 2026", "", revenue(Q3), None),
    (
        "How many orders did we have in July 2026?",
        "",
        distinct(keep(ROWS, DAY, ("2026-07-01", "2026-07-31")), "order_id"),
        None,
    ),
    (
        "How many units were sold in the North region last quarter?",
        "",
        add(keep(ROWS, DAY, Q3, region="North"), "quantity"),
        None,
    ),
    (
        "What are the top 3 products by revenue?",
        highest(revenues("product")),
        max(revenues("product").values()),
        None,
    ),
    (
        "bottom 2 products by sales",
        lowest(revenues("product")),
        min(revenues("product").values()),
        None,
    ),
    ("Which product sold best this year?", highest(UNITS_2026), max(UNITS_2026.values()), None),
    ("Which category has the highest return rate?", highest(RATES), max(RATES.values()), None),
    ("What is the return rate in Q3 2026?", "", return_rate(keep(ROWS, DAY, Q3)), None),
    ("What share of revenue came from Toys last quarter?", "Toys", TOYS_Q3, None),
    (
        "North vs South revenue",
        highest({n: revenue(region=n) for n in ("North", "South")}),
        max(revenue(region="North"), revenue(region="South")),
        None,
    ),
    (
        "What was the average order value in Q2 2026?",
        "",
        revenue(Q2) / distinct(keep(ROWS, DAY, Q2), "order_id"),
        None,
    ),
    ("Which month had the highest revenue?", "February 2026", max(MONTHS.values()), None),
    ("Which month had the lowest revenue?", "April 2026", min(MONTHS.values()), None),
    (
        "Did revenue grow last quarter compared with the same quarter last year?",
        "",
        revenue(Q3),
        revenue(Q3_2025),
    ),
    ("year over year revenue in Q3 2026", "", revenue(Q3), revenue(Q3_2025)),
    (
        "How much did the North region grow last month?",
        "",
        revenue(("2026-09-01", "2026-09-30"), region="North"),
        revenue(("2026-08-01", "2026-08-31"), region="North"),
    ),
    (
        "revenue from Ben Li in 2026",
        "",
        revenue(("2026-01-01", "2026-12-31"), customer="Ben Li"),
        None,
    ),
    ("How much did Eve O'Hara spend?", "", revenue(customer="Eve O'Hara"), None),
    ("revenue excluding Toys last quarter", "", revenue(Q3) - TOYS_Q3, None),
    (
        "Which customer bought the least?",
        lowest(revenues("customer")),
        min(revenues("customer").values()),
        None,
    ),
    (
        "What is the average unit price of Kitchen?",
        "",
        add(keep(ROWS, category="Kitchen"), "unit_price") / len(keep(ROWS, category="Kitchen")),
        None,
    ),
    (
        "How many customers ordered in August 2026?",
        "",
        distinct(keep(ROWS, DAY, ("2026-08-01", "2026-08-31")), "customer"),
        None,
    ),
    (
        "Which weekday has the most orders?",
        DAYS[int(highest(WEEKDAYS)) - 1],
        max(WEEKDAYS.values()),
        None,
    ),
    (
        "How many orders were returned in Q3 2026?",
        "",
        distinct(keep(ROWS, DAY, Q3, returned="yes"), "order_id"),
        None,
    ),
    ("revenue in the last 30 days", "", revenue(("2026-09-13", "2026-10-12")), None),
    ("total sales since March 2026", "", revenue(("2026-03-01", "2026-10-12")), None),
    ("sales between 2026-02-10 and 2026-05-20", "", revenue(("2026-02-10", "2026-05-20")), None),
    ("What was the largest order?", highest(ORDERS), max(ORDERS.values()), None),
    ("average revenue per customer", "", revenue() / distinct(ROWS, "customer"), None),
    ("What was the revenue this month?", "", revenue(("2026-10-01", "2026-10-12")), None),
    (
        "Compare this month with last month",
        "",
        revenue(("2026-10-01", "2026-10-12")),
        revenue(("2026-09-01", "2026-09-12")),
    ),
    ("average monthly revenue in 2025", "", revenue(("2025-07-01", "2025-12-31")) / 6, None),
    ("revenue year to date", "", revenue(("2026-01-01", "2026-10-12")), None),
    (
        "Which region had the biggest drop in revenue last quarter?",
        lowest(changes("region", Q2, Q3)),
        revenue(Q3, region=lowest(changes("region", Q2, Q3))),
        revenue(Q2, region=lowest(changes("region", Q2, Q3))),
    ),
    (
        "how much revenue did products above 1000 make",
        highest(revenues("product")),
        max(revenues("product").values()),
        None,
    ),
    ("2026年第三季度销售额是多少？", "", revenue(Q3), None),
    ("上个季度哪个品类增长最多？", GROWN, revenue(Q3, category=GROWN), revenue(Q2, category=GROWN)),
]


@pytest.mark.parametrize(
    ("question", "name", "value", "previous"), CASES, ids=[c[0] for c in CASES]
)
def test_headline_is_what_a_spreadsheet_shows(
    tables: Database, question: str, name: str, value: float, previous: float | None
) -> None:
    facts = tables.ask("shop", question)

    assert facts.headline.name == name
    assert facts.headline.value == pytest.approx(value)
    assert facts.headline.previous == (None if previous is None else pytest.approx(previous))


def test_share_is_the_part_of_the_whole(tables: Database) -> None:
    facts = tables.ask("shop", "What share of revenue came from Toys last quarter?")

    assert facts.headline.share == pytest.approx(TOYS_Q3 / revenue(Q3))


def test_trend_has_every_month_in_order_with_its_sum(tables: Database) -> None:
    facts = tables.ask("shop", "Show revenue by month since March 2026")

    months = [f"2026-{month:02}" for month in range(3, 10)]
    assert [group.value for group in facts.groups[:-1]] == [
        pytest.approx(MONTHS[month]) for month in months
    ]
    assert facts.groups[-1].partial


def test_ranking_lists_all_groups_and_the_total_includes_rows_without_one(tables: Database) -> None:
    facts = tables.ask("shop", "revenue by category")

    assert {group.name: group.value for group in facts.groups} == {
        name: pytest.approx(value) for name, value in revenues("category").items()
    }
    assert facts.total.value == pytest.approx(revenue())
    assert facts.unnamed_count == len(keep(ROWS, category=""))


def test_top_n_shows_so_many(tables: Database) -> None:
    facts = tables.ask("shop", "top 3 products by revenue")

    assert [group.name for group in facts.shown] == sorted(
        revenues("product"), key=lambda name: -revenues("product")[name]
    )[:3]
