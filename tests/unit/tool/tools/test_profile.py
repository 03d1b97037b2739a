"""Tests what the profile tells about data that nobody described."""

from typing import Any

from services.tool.source import DataSource
from services.tool.tools.profile import TOOL, ProfileArguments
from tests.unit.tool.conftest import MakeContext


async def test_every_column_is_described(make_context: MakeContext) -> None:
    text = (
        "day,region,revenue,paid\n"
        "2025-01-02,East,10.5,true\n2025-03-01,East,,false\n2025-02-01,West,3,true\n"
    )

    result = await TOOL.run(
        ProfileArguments(), make_context(DataSource("sales.csv", text.encode()))
    )

    assert result.data == {
        "tables": [
            {
                "name": "sales",
                "source": "sales.csv",
                "row_count": 3,
                "columns": [
                    {
                        "name": "day",
                        "type": "date",
                        "null_count": 0,
                        "distinct_count": 3,
                        "min": "2025-01-02",
                        "max": "2025-03-01",
                    },
                    {
                        "name": "region",
                        "type": "text",
                        "null_count": 0,
                        "distinct_count": 2,
                        "min": "East",
                        "max": "West",
                        "values": ["East", "West"],
                    },
                    {
                        "name": "revenue",
                        "type": "number",
                        "null_count": 1,
                        "distinct_count": 2,
                        "min": 3.0,
                        "max": 10.5,
                    },
                    {
                        "name": "paid",
                        "type": "boolean",
                        "null_count": 0,
                        "distinct_count": 2,
                        "min": False,
                        "max": True,
                        "values": [True, False],
                    },
                ],
                "notes": [],
            }
        ]
    }


async def test_frequent_values_come_first_and_many_are_not_listed(
    make_context: MakeContext,
) -> None:
    lines = ["rare,x0", *(f"often,x{number}" for number in range(1, 60))]
    source = DataSource("f.csv", ("a,b\n" + "\n".join(lines)).encode())

    result = await TOOL.run(ProfileArguments(), make_context(source))

    tables: Any = result.data["tables"]
    (table,) = tables
    first, second = table["columns"]
    assert first["values"] == ["often", "rare"]
    assert "values" not in second


async def test_the_sample_is_described_without_sources(make_context: MakeContext) -> None:
    result = await TOOL.run(ProfileArguments(), make_context())

    tables: Any = result.data["tables"]
    (table,) = tables
    assert table["name"] == "orders"
    types = {column["name"]: column["type"] for column in table["columns"]}
    assert types["order_date"] == "date"
    assert types["revenue"] == "number"
    assert types["quantity"] == "integer"
    assert types["expected_delivery"] == "date"
