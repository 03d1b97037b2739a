"""Holds the answers to the awkward data that real files have."""

import pytest

from services.domain.metrics.errors import NoDataError, NoDateColumnError, NotUnderstoodError
from services.domain.metrics.prose import prose_of
from services.domain.metrics.query import Intent
from services.domain.metrics.sql import query_sql
from tests.unit.domain.database import Database

GROWTH = "Which team grew most last quarter?"


def growth_table(database: Database, rows: str) -> str:
    database.execute(
        "CREATE TABLE t AS SELECT CAST(d AS DATE) AS day, team, amount FROM "
        f"(VALUES {rows}) AS v(d, team, amount)"
    )
    return "t"


def test_names_and_values_with_quotes_stay_data(database: Database) -> None:
    database.execute(
        """CREATE TABLE odd AS SELECT * FROM (VALUES ('O''Brien; DROP TABLE odd', 2.0),
        ('plain', 5.0), ('say "hi"', 1.0)) AS v("cust""omer'x", "sales amount; --")"""
    )

    facts = database.ask("odd", """sales amount for "O'Brien; DROP TABLE odd" """)

    assert facts.headline.value == 2.0
    assert database.rows("SELECT COUNT(*) AS n FROM odd") == [{"n": 3}]


def test_group_without_a_previous_value_is_new_and_has_no_ratio(database: Database) -> None:
    table = growth_table(
        database, "('2026-04-01','A',10.0),('2026-07-01','A',12.0),('2026-09-30','B',50.0)"
    )

    facts = database.ask(table, GROWTH)

    assert (facts.headline.name, facts.headline.change_ratio, facts.headline.new) == (
        "B",
        None,
        True,
    )
    assert "New, without any amount before: B." in prose_of(facts).text


def test_new_group_does_not_win_a_ranking_by_percent(database: Database) -> None:
    table = growth_table(
        database, "('2026-04-01','A',10.0),('2026-07-01','A',12.0),('2026-09-30','B',50.0)"
    )

    facts = database.ask(table, "Which team grew fastest in percent last quarter?")

    assert facts.headline.name == "A"
    assert facts.headline.change_ratio == pytest.approx(0.2)


def test_ties_are_all_named(database: Database) -> None:
    table = growth_table(
        database,
        "('2026-04-01','A',10.0),('2026-07-01','A',15.0),('2026-05-01','B',1.0),"
        "('2026-09-30','B',6.0),('2026-09-30','C',1.0)",
    )

    facts = database.ask(table, GROWTH)

    assert [facts.headline.name, *(tie.name for tie in facts.ties)] == ["A", "B"]
    assert prose_of(facts).headline.startswith("A and B ")


def test_growth_from_a_negative_value_is_positive(database: Database) -> None:
    table = growth_table(
        database, "('2026-04-01','A',-10.0),('2026-07-01','A',5.0),('2026-09-30','B',1.0)"
    )

    facts = database.ask(table, GROWTH)

    assert facts.headline.change == 15.0
    assert facts.headline.change_ratio == pytest.approx(1.5)


def test_when_all_fell_the_answer_says_that_none_grew(database: Database) -> None:
    table = growth_table(
        database,
        "('2026-04-01','A',10.0),('2026-07-01','A',8.0),('2026-05-01','B',9.0),('2026-09-30','B',1.0)",
    )

    headline = prose_of(database.ask(table, GROWTH)).headline

    assert headline.startswith("No team grew; A fell least")


def test_one_single_period_ranks_by_value_and_says_that_nothing_can_be_compared(
    database: Database,
) -> None:
    table = growth_table(
        database, "('2026-07-01','A',10.0),('2026-08-01','B',30.0),('2026-09-30','A',5.0)"
    )

    facts = database.ask(table, GROWTH)

    assert (facts.query.intent, facts.headline.name) == (Intent.RANK, "B")
    assert any("a change cannot be computed" in note for note in facts.query.notes)


def test_empty_cells_are_no_group_and_no_value(database: Database) -> None:
    table = growth_table(
        database, "('2026-07-01','A',10.0),('2026-08-01',NULL,30.0),('2026-09-30','B',NULL)"
    )

    facts = database.ask(table, "amount by team")

    assert [(group.name, group.value) for group in facts.groups] == [("A", 10.0), ("B", 0.0)]
    assert (facts.total.value, facts.unnamed_count) == (40.0, 1)


def test_period_without_rows_says_so_and_what_there_is(database: Database) -> None:
    table = growth_table(database, "('2026-07-01','A',10.0),('2026-09-30','B',1.0)")

    facts = database.ask(table, "total amount in 2019")

    assert facts.empty
    assert "2026-07-01" in prose_of(facts).text


def test_time_without_dates_is_refused_with_the_columns_and_an_example(database: Database) -> None:
    database.execute("CREATE TABLE plain AS SELECT 'x' AS team, 1.0 AS amount")

    with pytest.raises(NoDateColumnError) as caught:
        database.plan("plain", "Which team grew most last quarter?")

    assert caught.value.columns == ("team", "amount")
    assert caught.value.example == "Which team had the highest amount?"


@pytest.mark.parametrize(
    "question",
    [
        "What is the weather like?",
        "Which department had the highest churn?",
        "How much revenue did Atlantis make?",
        "revenue by planet",
        "total churn by category",
        "哪个部门的离职率最高？",
        "东北的销售额",
        "今天天气怎么样",
    ],
)
def test_question_past_the_data_is_refused_with_an_example(tables: Database, question: str) -> None:
    with pytest.raises(NotUnderstoodError) as caught:
        tables.plan("shop", question)

    assert "category" in caught.value.columns
    assert caught.value.example in str(caught.value)


@pytest.mark.parametrize("table", ["shop", "xiaoshou", "odd"])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_example_question_works(tables: Database, table: str, language: str) -> None:
    with pytest.raises(NotUnderstoodError) as caught:
        tables.plan(table, "???", language)

    facts = tables.ask(table, caught.value.example, language)

    assert not facts.empty


def test_table_without_rows_is_refused(database: Database) -> None:
    database.execute("CREATE TABLE nothing (day DATE, amount DOUBLE)")

    with pytest.raises(NoDataError):
        database.plan("nothing", "total amount")


def test_dates_of_year_and_month_columns(database: Database) -> None:
    database.execute(
        "CREATE TABLE ym AS SELECT * FROM (VALUES (2026, 4, 'A', 1.0), (2026, 5, 'A', 1.0), "
        "(2026, 6, 'A', 1.0), (2026, 7, 'A', 5.0), (2026, 8, 'A', 1.0), (2026, 9, 'A', 1.0)) "
        'AS v("Year", "Month", team, amount)'
    )

    facts = database.ask("ym", "How much did amount grow last quarter?")

    assert (facts.total.value, facts.total.previous) == (7.0, 3.0)


def test_dates_written_as_chinese_text(database: Database) -> None:
    database.execute(
        "CREATE TABLE zh AS SELECT * FROM (VALUES ('2026年9月30日', 4.0), ('2026年10月5日', 1.0), "
        '(\'2026年12月31日\', 2.0)) AS v("日期", "金额")'
    )

    facts = database.ask("zh", "上个季度的金额")

    assert facts.total.value == 3.0


def test_monthly_figures_dated_on_the_first_cover_their_month(database: Database) -> None:
    database.execute(
        "CREATE TABLE monthly AS SELECT * FROM (VALUES (DATE '2026-04-01', 1.0), "
        "(DATE '2026-05-01', 1.0), (DATE '2026-06-01', 1.0), (DATE '2026-07-01', 2.0), "
        "(DATE '2026-08-01', 2.0), (DATE '2026-09-01', 2.0)) AS v(month, sales)"
    )

    facts = database.ask("monthly", "How much did sales grow last quarter?")

    assert (facts.total.value, facts.total.previous) == (6.0, 3.0)


def test_revenue_is_made_of_quantity_and_price_when_it_has_no_column(database: Database) -> None:
    database.execute(
        "CREATE TABLE lines AS SELECT * FROM (VALUES ('A', 2, 10.0), ('B', 1, 50.0)) "
        "AS v(product, qty, unit_price)"
    )

    facts = database.ask("lines", "Which product had the highest revenue?")

    assert (facts.headline.name, facts.headline.value) == ("B", 50.0)
    assert any("qty × unit_price" in note for note in facts.query.notes)


def test_profit_and_margin_are_made_of_revenue_and_cost(database: Database) -> None:
    database.execute(
        "CREATE TABLE pl AS SELECT * FROM (VALUES ('A', 100.0, 60.0), ('B', 200.0, 150.0)) "
        "AS v(team, revenue, cost)"
    )

    profit = database.ask("pl", "total profit")
    margin = database.ask("pl", "profit margin by team")

    assert profit.total.value == 90.0
    assert margin.headline.name == "A"
    assert margin.headline.value == pytest.approx(0.4)


def test_status_that_says_returned_is_a_return(database: Database) -> None:
    database.execute(
        "CREATE TABLE o AS SELECT * FROM (VALUES (1, 'Returned'), (2, 'Delivered'), "
        "(3, 'Delivered'), (4, 'Returned'), (5, 'Shipped')) AS v(order_id, status)"
    )

    facts = database.ask("o", "What is the return rate?")

    assert facts.total.value == pytest.approx(0.4)


def test_value_among_many_is_looked_up(database: Database) -> None:
    database.execute(
        "CREATE TABLE many AS SELECT 'Customer ' || i AS customer, i * 1.0 AS amount "
        "FROM range(1, 200) AS r(i)"
    )

    facts = database.ask("many", "total amount of Customer 137")

    assert facts.total.value == 137.0


def test_question_chooses_the_table_that_it_fits(database: Database) -> None:
    from services.domain.metrics.analysis import Analysis
    from services.domain.metrics.schema import tables_of

    database.execute("CREATE TABLE staff AS SELECT 'x' AS department, 3 AS age")
    database.execute("CREATE TABLE sales AS SELECT 'y' AS category, 2.0 AS revenue")
    tables = [*tables_of(database.profile("staff")), *tables_of(database.profile("sales"))]

    analysis = Analysis("revenue by category", tables, "en")

    assert analysis.table.name == "sales"


def test_sql_parses_in_the_dialect_that_the_tool_checks(tables: Database) -> None:
    import sqlglot

    questions = ["Which category grew fastest last quarter?", "return rate by month",
                 "revenue over 50 by region", "average monthly revenue"]  # fmt: skip

    for question in questions:
        parsed = sqlglot.parse(query_sql(tables.plan("shop", question)), dialect="duckdb")
        assert len(parsed) == 1
