"""Holds the orders agent to telling about the right order, and nothing that is not in it."""

import pytest

from services.domain.agents.orders import AGENT
from services.domain.metrics.errors import NotUnderstoodError, ReadOnlyError
from services.domain.metrics.order_lookup import order_number
from services.domain.metrics.text import Text
from services.domain.ports import ToolResult
from tests.unit.domain.database import Database
from tests.unit.domain.running import Tools, answered, degraded_of, text_of


@pytest.fixture
def book(database: Database) -> Tools:
    database.execute(
        "CREATE TABLE orders AS SELECT * FROM (VALUES "
        "('SO-1043', DATE '2026-09-01', 'Mei Lind', 'shipped', 49.5, DATE '2026-09-07'), "
        "('SO-1044', DATE '2026-09-02', 'Ben Li', 'delivered', 12.0, DATE '2026-09-05'), "
        "('SO-1045', DATE '2026-09-03', 'Mei Lind', 'cancelled', 0.0, NULL), "
        "('SO-2043', DATE '2026-09-04', 'Ada O''Hara', 'shipped', 7.0, DATE '2026-09-09')) "
        "AS v(order_id, order_date, customer, status, revenue, expected_delivery)"
    )
    return Tools(database, "orders")


@pytest.mark.parametrize(
    "question",
    [
        "Where is order 1043?",
        "status of order SO-1043",
        "#1043",
        "where is so1043",
        "Track SO 1043",
    ],
)
async def test_order_is_found_by_its_number_in_any_spelling(book: Tools, question: str) -> None:
    _, events = await answered(AGENT, question, book)

    assert text_of(events) == (
        "Order SO-1043 is shipped. Order date: 2026-09-01; customer: Mei Lind; revenue: 49.5; "
        "expected delivery: 2026-09-07."
    )


async def test_order_is_found_in_chinese(book: Tools) -> None:
    _, events = await answered(AGENT, "订单1043在哪里？", book, language="zh")

    assert text_of(events).startswith("订单 SO-1043的状态为shipped。")


async def test_unknown_order_is_an_answer(book: Tools) -> None:
    answer, events = await answered(AGENT, "Where is order 9999?", book)

    assert text_of(events) == "There is no order 9999 in the data."
    assert (answer.missing, degraded_of(events)) == ((), [])


async def test_friendly_sentence_that_is_true_stands_before_the_facts(book: Tools) -> None:
    sentence = "Order SO-1043 has shipped and should arrive on 2026-09-07."
    book.prose = ToolResult({"text": sentence, "model": "tiny"})

    answer, events = await answered(AGENT, "Where is order 1043?", book)

    assert text_of(events).startswith(f"{sentence}\n\nOrder SO-1043 is shipped.")
    assert answer.model == "tiny"


@pytest.mark.parametrize(
    "sentence",
    [
        "Order SO-1043 was delivered on 2026-09-07.",
        "Order SO-1043 has shipped and arrives on 2026-10-12.",
        "Order SO-1043 has not shipped yet.",
        "Order SO-1043 has shipped and arrives tomorrow.",
        "Your order has shipped and arrives on 2026-09-07.",
        "Order SO-1043 has shipped for 49.5.",
        "Order SO-1043 has shipped and was returned.",
        "Order SO-1043 has shipped with 7 parcels, due 2026-09-07.",
        "Order SO-1043 has shipped in three parcels.",
        "Order SO-1043 of Mei Lind has shipped.",
    ],
)
async def test_false_sentence_is_replaced(book: Tools, sentence: str) -> None:
    book.prose = ToolResult({"text": sentence, "model": "tiny"})

    answer, events = await answered(AGENT, "Where is order 1043?", book)

    assert text_of(events).startswith("Order SO-1043 is shipped.")
    assert (answer.model, degraded_of(events)) == ("template", [("template", "prose")])


async def test_latest_orders_of_a_customer_come_newest_first(book: Tools) -> None:
    _, events = await answered(AGENT, "latest orders of Mei Lind", book)

    lines = text_of(events).splitlines()
    assert lines[0] == "The latest 2 orders of Mei Lind:"
    assert [line[2:9] for line in lines[1:]] == ["SO-1045", "SO-1043"]


async def test_unknown_customer_is_an_answer(book: Tools) -> None:
    _, events = await answered(AGENT, "Show the orders of Zoe Unknown", book)

    assert text_of(events) == "There are no orders of Zoe Unknown in the data."


async def test_quote_in_a_name_stays_data(book: Tools) -> None:
    _, events = await answered(AGENT, "latest orders of Ada O'Hara", book)

    assert "SO-2043" in text_of(events)


async def test_orders_by_their_state(book: Tools) -> None:
    _, events = await answered(AGENT, "Which orders are cancelled?", book)

    assert "SO-1045" in text_of(events)
    assert "SO-1044" not in text_of(events)


async def test_wish_to_change_an_order_touches_no_tool(book: Tools) -> None:
    with pytest.raises(ReadOnlyError):
        await answered(AGENT, "Please delete order 1043", book)

    assert book.calls == []


async def test_data_without_orders_is_an_error_that_names_the_columns(database: Database) -> None:
    database.execute("CREATE TABLE t AS SELECT 'x' AS team, 1.5 AS amount")

    with pytest.raises(NotUnderstoodError, match="team, amount"):
        await answered(AGENT, "Where is order 1043?", Tools(database, "t"))


async def test_no_time_for_a_model_means_the_template(book: Tools) -> None:
    _, events = await answered(AGENT, "Where is order 1043?", book, time_s=1.0)

    assert "summarise" not in book.names
    assert text_of(events).startswith("Order SO-1043 is shipped.")


@pytest.fixture
def sales(database: Database) -> Tools:
    database.execute(
        "CREATE TABLE sales AS SELECT * FROM (VALUES "
        "(17, DATE '2025-07-01', 'Sofa', 7, 50.0, FALSE), "
        "(2025, DATE '2026-08-02', 'Sofa', 2, 900.0, FALSE), "
        "(19, DATE '2025-09-05', 'Desk', 1, 30.0, TRUE)) "
        "AS v(order_id, order_date, product, quantity, revenue, returned)"
    )
    return Tools(database, "sales")


async def test_number_of_orders_in_a_year_is_counted_and_no_order_is_looked_up(
    sales: Tools,
) -> None:
    _, events = await answered(AGENT, "Number of Sofa orders in 2025", sales, time_s=1.0)

    assert "Order 2025" not in text_of(events)
    assert "was 1." in text_of(events) or "were 1." in text_of(events)


@pytest.mark.parametrize(
    "question",
    [
        "Show the orders in 2025",
        "orders of March 2025",
        "Sofa orders 2025",
        "2025年的订单",
        "Show orders from 2024 and 2025",
        "orders of the last 30 days",
    ],
)
def test_time_is_no_order_number(question: str) -> None:
    assert order_number(Text.of(question)) == ""


@pytest.mark.parametrize(
    "question",
    ["Where is order 2025?", "#2025", "No. 2025 please", "订单2025在哪里", "Where is 2025?"],
)
def test_number_that_is_named_an_order_is_one_though_it_looks_like_a_year(question: str) -> None:
    assert order_number(Text.of(question)) == "2025"


@pytest.mark.parametrize(
    "sentence",
    [
        "Order 17 was placed on 2025-07-01 and resulted in 7 returns.",
        "Order 17 was placed on 2025-07-01 and was returned.",
        "Order 17 was delivered on 2025-07-01.",
        "Order 17 of 50 was placed on 2025-07-01.",
        "Order 17, placed on July 2, 2025.",
        "Order 17 was placed on 2025-07-01 for seven sofas.",
        "Order 171 was placed on 2025-07-01.",
    ],
)
async def test_sentence_with_more_than_number_date_and_state_is_replaced(
    sales: Tools, sentence: str
) -> None:
    sales.prose = ToolResult({"text": sentence, "model": "tiny"})

    answer, events = await answered(AGENT, "Where is my order 17?", sales)

    assert text_of(events).startswith("Order 17 is in the data.")
    assert (answer.model, degraded_of(events)) == ("template", [("template", "prose")])


@pytest.mark.parametrize(
    "sentence",
    ["Your order 17 was placed on 2025-07-01.", "Order 17 was placed on July 1, 2025."],
)
async def test_sentence_with_number_and_date_is_used(sales: Tools, sentence: str) -> None:
    sales.prose = ToolResult({"text": sentence, "model": "tiny"})

    _, events = await answered(AGENT, "Where is my order 17?", sales)

    assert text_of(events).startswith(sentence)
