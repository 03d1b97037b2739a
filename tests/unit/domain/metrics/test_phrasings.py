"""Holds unusual phrasings, and tables that are no sales, to the right query."""

import pytest

from services.domain.metrics.errors import NotUnderstoodError
from services.domain.metrics.prose import prose_of
from services.domain.metrics.query import Intent
from tests.unit.domain.database import Database
from tests.unit.domain.spreadsheet import add, by, highest, keep, read

ROWS = read("shop")
DAY = "order_date"


@pytest.fixture
def staff(database: Database) -> Database:
    database.execute(
        "CREATE TABLE staff AS SELECT * FROM (VALUES "
        "(1, 'Ann', 'IT', 50.0, TRUE), (2, 'Bob', 'IT', 70.0, FALSE), "
        "(3, 'Cy', 'HR', 30.0, FALSE)) "
        "AS v(employee_id, name, dept, salary, is_manager)"
    )
    return database


@pytest.fixture
def tickets(database: Database) -> Database:
    database.execute(
        "CREATE TABLE gd AS SELECT * FROM (VALUES "
        "('GD1', TIMESTAMP '2026-08-02 10:00:00', '张三', '高', 3.5, '是'), "
        "('GD2', TIMESTAMP '2026-08-31 11:00:00', '张三', '低', 1.5, '否'), "
        "('GD3', TIMESTAMP '2026-09-02 12:00:00', '李四', '高', 2.0, '否')) "
        'AS v("工单号", "创建时间", "负责人", "优先级", "处理时长", "是否超时")'
    )
    return database


@pytest.mark.parametrize(
    ("question", "name", "value"),
    [
        ("Who earns the most?", "Bob", 70.0),
        ("How many managers are there?", "", 1.0),
        ("How many employees are in IT?", "", 2.0),
        ("Which department has the most employees?", "IT", 2.0),
        ("average salary of managers", "", 50.0),
        ("average salary by dept", "IT", 60.0),
        ("median salary", "", 50.0),
    ],
)
def test_staff_is_asked_about_people_and_pay(
    staff: Database, question: str, name: str, value: float
) -> None:
    facts = staff.ask("staff", question)

    assert (facts.headline.name, facts.headline.value) == (name, value)


@pytest.mark.parametrize(
    ("question", "name", "value"),
    [
        ("上个月有多少工单", "", 2.0),
        ("哪个负责人处理的工单最多", "张三", 2.0),
        ("高优先级的工单有多少", "", 2.0),
        ("高优先级的超时率", "", 0.5),
        ("平均处理时长是多少", "", 7.0 / 3),
    ],
)
def test_tickets_are_counted_by_the_word_of_their_id(
    tickets: Database, question: str, name: str, value: float
) -> None:
    facts = tickets.ask("gd", question)

    assert facts.headline.name == name
    assert facts.headline.value == pytest.approx(value)


@pytest.mark.parametrize(
    "question", ["forecast revenue next month", "revenue next quarter", "预测下个月的销售额"]
)
def test_question_about_later_days_is_refused(tables: Database, question: str) -> None:
    with pytest.raises(NotUnderstoodError, match="2026-10-12"):
        tables.plan("shop", question)


def test_three_groups_stand_side_by_side(tables: Database) -> None:
    headline = prose_of(tables.ask("shop", "compare Toys, Garden and Office in Q3 2026")).headline

    assert all(name in headline for name in ("Toys", "Garden", "Office"))
    assert "Kitchen" not in headline


def test_units_per_order_are_one_number(tables: Database) -> None:
    facts = tables.ask("shop", "units per order")

    assert facts.query.intent is Intent.TOTAL
    assert facts.total.value == pytest.approx(add(ROWS, "quantity") / len(by(ROWS, "order_id")))


def test_named_week_is_seven_days(tables: Database) -> None:
    facts = tables.ask("shop", "revenue in the week of 2026-03-18")

    assert facts.total.value == add(keep(ROWS, DAY, ("2026-03-16", "2026-03-22")), "revenue")


def test_best_months_in_chinese_are_months(tables: Database) -> None:
    facts = tables.ask("shop", "2026年销售额最高的三个月")

    months = {
        month: add(rows, "revenue")
        for month, rows in by(
            keep(ROWS, DAY, ("2026-01-01", "2026-10-12")), lambda r: r[DAY][:7]
        ).items()
    }
    assert len(facts.shown) == 3
    assert facts.headline.value == months[highest(months)]


def test_groups_below_a_limit_are_left_out_and_not_added_up(tables: Database) -> None:
    facts = tables.ask("shop", "which products have revenue above 5,000")

    products = {name: add(rows, "revenue") for name, rows in by(ROWS, "product").items()}
    assert {group.name for group in facts.groups} == {n for n, v in products.items() if v > 5000}
    assert "together" not in prose_of(facts).text


def test_no_group_below_zero_is_said(tables: Database) -> None:
    headline = prose_of(tables.ask("shop", "which region has negative revenue?")).headline

    assert headline.startswith("No region has revenue < 0")


def test_why_is_answered_with_where(tables: Database) -> None:
    facts = tables.ask("shop", "Why did revenue rise last quarter?")

    assert facts.query.intent is Intent.GROWTH
    assert "The data shows where it changed, not why." in facts.query.notes


def test_question_names_the_dates_it_means(database: Database) -> None:
    database.execute(
        "CREATE TABLE o AS SELECT * FROM (VALUES "
        "(1, DATE '2026-07-30', DATE '2026-08-02'), (2, DATE '2026-08-01', DATE '2026-08-09')) "
        "AS v(order_id, order_date, delivery_date)"
    )

    ordered = database.ask("o", "how many orders in August 2026")
    delivered = database.ask("o", "how many orders with delivery in August 2026")

    assert (ordered.total.value, delivered.total.value) == (1.0, 2.0)


def test_values_of_one_column_do_not_become_groups_of_another(database: Database) -> None:
    database.execute(
        "CREATE TABLE s AS SELECT * FROM (VALUES ('Home Office', 'Ann', 2.0), "
        "('Home Office', 'Bob', 3.0), ('Consumer', 'Ann', 9.0)) AS v(segment, customer, sales)"
    )

    facts = database.ask("s", "total sales for Home Office customers")

    assert (facts.query.intent, facts.total.value) == (Intent.TOTAL, 5.0)


def test_common_reason_is_counted_among_rows_that_have_one(database: Database) -> None:
    database.execute(
        "CREATE TABLE r AS SELECT * FROM (VALUES (1, 'late'), (2, NULL), (3, 'late'), "
        "(4, 'broken'), (5, NULL)) AS v(order_id, return_reason)"
    )

    prose = prose_of(database.ask("r", "What is the most common return reason?"))

    assert prose.headline.startswith("late had the most orders: 2")
    assert "All 2 return reasons together: 3." in prose.support
