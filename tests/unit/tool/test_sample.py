"""Tests that the shipped sample is what its script makes, and worth asking about."""

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from services.tool.config import ToolSettings
from services.tool.dataset import Dataset, load
from services.tool.interruption import Interruption
from services.tool.source import resolved

SCRIPT = Path(__file__).parents[3] / "scripts" / "make_sample.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_sample", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up by its name.
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "make_sample", module)
        spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def orders() -> Dataset:
    return load(resolved((), ToolSettings()), ToolSettings(), Interruption())


@pytest.fixture
def ask(orders: Dataset) -> Callable[[str], list[tuple[object, ...]]]:
    return lambda query: orders.cursor().execute(query).fetchall()


Ask = Callable[[str], list[tuple[object, ...]]]


def test_the_script_makes_the_shipped_file_byte_for_byte(script: ModuleType) -> None:
    shipped = (ToolSettings().data_dir / "orders.csv").read_bytes()

    assert script.make().encode() == shipped
    assert len(shipped) < 400_000


def test_it_covers_one_year_day_by_day(ask: Ask) -> None:
    ((first, last, days),) = ask(
        "SELECT min(order_date)::VARCHAR, max(order_date)::VARCHAR, "
        "count(DISTINCT order_date) FROM orders"
    )

    assert (first, last, days) == ("2025-11-01", "2026-10-31", 365)


def test_revenue_is_quantity_times_price_unless_cancelled(ask: Ask) -> None:
    assert (
        ask(
            "SELECT * FROM orders WHERE revenue <> "
            "CASE WHEN status = 'cancelled' THEN 0 ELSE quantity * unit_price END"
        )
        == []
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (("2026-04-01", "2026-06-30"), ("2026-07-01", "2026-09-30")),
        (("2026-05-01", "2026-07-31"), ("2026-08-01", "2026-10-31")),
    ],
)
def test_electronics_grew_most_in_the_last_quarter_however_it_is_counted(
    ask: Ask, before: tuple[str, str], after: tuple[str, str]
) -> None:
    rows = ask(
        "SELECT category, "
        f"sum(revenue) FILTER (order_date BETWEEN '{after[0]}' AND '{after[1]}') / "
        f"sum(revenue) FILTER (order_date BETWEEN '{before[0]}' AND '{before[1]}') AS growth "
        "FROM orders GROUP BY category ORDER BY growth DESC"
    )

    assert rows[0][0] == "Electronics"
    assert float(str(rows[0][1])) > 1.15 * float(str(rows[1][1]))


def test_the_west_returns_far_more_than_the_others(ask: Ask) -> None:
    rows = ask(
        "SELECT region, avg((returned = 'yes')::INTEGER) AS rate FROM orders "
        "WHERE status = 'delivered' GROUP BY region ORDER BY rate DESC"
    )

    assert rows[0][0] == "West"
    assert float(str(rows[0][1])) > 2 * float(str(rows[1][1]))


def test_one_product_declines_all_year(ask: Ask) -> None:
    ((first, second),) = ask(
        "SELECT sum(quantity) FILTER (order_date < '2026-05-01'), "
        "sum(quantity) FILTER (order_date >= '2026-05-01') "
        "FROM orders WHERE product = 'Classic Desk Lamp'"
    )

    assert float(str(second)) < 0.8 * float(str(first))


def test_only_delivered_orders_are_returned_and_each_return_has_a_reason(ask: Ask) -> None:
    assert ask(
        "SELECT DISTINCT status, return_reason IS NULL FROM orders WHERE returned = 'yes'"
    ) == [("delivered", False)]
