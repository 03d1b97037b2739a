"""Holds comparisons to the column that they name, or to a refusal."""

import pytest

from services.domain.metrics.errors import NotUnderstoodError
from tests.unit.domain.database import Database


@pytest.fixture
def sales(database: Database) -> Database:
    database.execute(
        "CREATE TABLE sales AS SELECT * FROM (VALUES "
        "(11, DATE '2026-07-01', 'North', 'Sofa', 7, 50.0, 'no'), "
        "(12, DATE '2026-08-02', 'North', 'Desk', 2, 900.0, 'no'), "
        "(13, DATE '2026-08-03', 'South', 'Sofa', 6, 300.0, 'yes'), "
        "(14, DATE '2026-09-04', 'South', 'Lamp', 1, 120.0, 'no'), "
        "(15, DATE '2026-09-05', 'North', 'Lamp', 9, 20.0, 'no'), "
        "(16, DATE '2026-09-05', 'North', 'Lamp', 1, 30.0, 'no')) "
        "AS v(order_id, order_date, region, product, quantity, revenue, returned)"
    )
    return database


@pytest.mark.parametrize(
    "question",
    [
        "Revenue of orders with quantity above 5",
        "Revenue where quantity > 5",
        "Revenue of orders where quantity exceeds 5",
        "Total revenue of orders whose quantity is more than 5",
        "Revenue of orders with more than 5 units",
        "Revenue of orders where quantity >= 6",
        "数量超过5的订单的销售额",
        "数量大于5的销售额是多少",
    ],
)
def test_comparison_filters_rows_by_the_column_beside_it(sales: Database, question: str) -> None:
    facts = sales.ask("sales", question)

    assert facts.headline.value == 370.0


def test_orders_are_counted_among_rows_that_pass(sales: Database) -> None:
    facts = sales.ask("sales", "Which region has most orders with revenue over 100?")

    assert (facts.headline.name, facts.headline.value) == ("South", 2.0)


def test_units_after_the_number_are_its_column(sales: Database) -> None:
    facts = sales.ask(
        "sales", "Which region had the highest revenue from orders with over 5 units?"
    )

    assert (facts.headline.name, facts.headline.value) == ("South", 300.0)


def test_year_after_a_measure_is_no_condition(sales: Database) -> None:
    assert sales.ask("sales", "What was the revenue of 2026?").headline.value == 1420.0


def test_groups_are_still_held_against_their_own_sum(sales: Database) -> None:
    query = sales.plan("sales", "Which regions have revenue above 500?")

    assert query.group_limit is not None


@pytest.mark.parametrize(
    "question",
    [
        "Revenue of orders with weight above 5",
        "Which region has the most revenue and quantity above 5?",
        "Revenue of orders with quantity above 5 and revenue below 100",
        "Revenue of orders with quantity above 5 and 9",
        "Revenue where quantity = 5",
        "Revenue where quantity is not above 5",
        "Revenue of orders with 5 or more units",
        "Revenue of orders with quantity 5+",
        "数量在5以上的订单的销售额",
        "What share of revenue comes from orders with quantity above 5?",
        "Revenue of orders with quantity equal to 7",
        "Revenue of orders with quantity between 5 and 9",
        "数量等于5的订单的销售额",
    ],
)
def test_condition_that_is_not_safe_is_refused(sales: Database, question: str) -> None:
    with pytest.raises(NotUnderstoodError, match=r"condition on a second column|另一列的条件"):
        sales.plan("sales", question)
