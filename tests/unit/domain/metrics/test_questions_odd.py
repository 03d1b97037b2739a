"""Holds answers about a table with odd names, digits for dates and empty cells to a spreadsheet."""

import pytest

from tests.unit.domain.database import Database
from tests.unit.domain.spreadsheet import add, by, highest, keep, lowest, read

ROWS = read("odd")
DAY = "dt"
ALL = ("20260102", "20260815")
Q1, Q2 = ("20260101", "20260331"), ("20260401", "20260630")
"""The data ends in August, so the second quarter is the last complete one."""


def amount(within: tuple[str, str] = ALL, **where: str) -> float:
    return add(keep(ROWS, DAY, within, **where), "amt")


def amounts(column: str, within: tuple[str, str] = ALL) -> dict[str, float]:
    return {name: add(rows, "amt") for name, rows in by(keep(ROWS, DAY, within), column).items()}


CHANGES = {
    n: amounts("prod_cat", Q2)[n] - amounts("prod_cat", Q1)[n] for n in ("AUDIO", "VIDEO", "CABLE")
}
GROWN, FALLEN = highest(CHANGES), lowest(CHANGES)
RATES = {name: len(keep(rows, rtn="Y")) / len(rows) for name, rows in by(ROWS, "prod_cat").items()}
DISCOUNTS = {name: add(rows, "disc_pct") / len(rows) for name, rows in by(ROWS, "rgn").items()}

CASES: list[tuple[str, str, float, float | None]] = [
    # question, headline's name, its value, its previous value
    (
        "Which category grew most last quarter?",
        GROWN,
        amount(Q2, prod_cat=GROWN),
        amount(Q1, prod_cat=GROWN),
    ),
    (
        "Which product category shrank last quarter?",
        FALLEN,
        amount(Q2, prod_cat=FALLEN),
        amount(Q1, prod_cat=FALLEN),
    ),
    (
        "Which region had the highest total amount?",
        highest(amounts("rgn")),
        max(amounts("rgn").values()),
        None,
    ),
    ("Which prod_cat has the highest return rate?", highest(RATES), max(RATES.values()), None),
    ("what were sales in June?", "", amount(("20260601", "20260630")), None),
    (
        "Which customer has the highest turnover?",
        highest(amounts("CustName")),
        max(amounts("CustName").values()),
        None,
    ),
    (
        "Which region gives the highest average discount?",
        highest(DISCOUNTS),
        max(DISCOUNTS.values()),
        None,
    ),
    (
        "how many units did Acme Corp buy in Q2?",
        "",
        add(keep(ROWS, DAY, Q2, CustName="Acme Corp"), "qty"),
        None,
    ),
    ("share of CABLE in sales last quarter", "CABLE", amount(Q2, prod_cat="CABLE"), None),
    ("lowest amt", "", min(float(row["amt"]) for row in ROWS if row["amt"]), None),
    (
        "highest amt in emea",
        "",
        max(float(r["amt"]) for r in keep(ROWS, rgn="EMEA") if r["amt"]),
        None,
    ),
    (
        "number of transactions per region",
        highest({n: len(r) for n, r in by(ROWS, "rgn").items()}),
        max(len(r) for r in by(ROWS, "rgn").values()),
        None,
    ),
    (
        "EMEA vs APAC in May",
        highest({n: amount(("20260501", "20260531"), rgn=n) for n in ("EMEA", "APAC")}),
        max(amount(("20260501", "20260531"), rgn=n) for n in ("EMEA", "APAC")),
        None,
    ),
    ("How many returns were there?", "", len(keep(ROWS, rtn="Y")), None),
    ("哪个品类销售额最高？", highest(amounts("prod_cat")), max(amounts("prod_cat").values()), None),
    ("上个月的销售额是多少", "", amount(("20260701", "20260731")), None),
    (
        "EMEA地区上季度的退货率",
        "",
        len(keep(ROWS, DAY, Q2, rgn="EMEA", rtn="Y")) / len(keep(ROWS, DAY, Q2, rgn="EMEA")),
        None,
    ),
    (
        "哪个客户的数量最多",
        highest({n: add(r, "qty") for n, r in by(ROWS, "CustName").items()}),
        max(add(r, "qty") for r in by(ROWS, "CustName").values()),
        None,
    ),
]


@pytest.mark.parametrize(
    ("question", "name", "value", "previous"), CASES, ids=[c[0] for c in CASES]
)
def test_headline_is_what_a_spreadsheet_shows(
    tables: Database, question: str, name: str, value: float, previous: float | None
) -> None:
    facts = tables.ask("odd", question)

    assert facts.headline.name == name
    assert facts.headline.value == pytest.approx(value)
    assert facts.headline.previous == (None if previous is None else pytest.approx(previous))


def test_empty_cells_are_left_out_and_said_so(tables: Database) -> None:
    facts = tables.ask("odd", "total amount by region")

    empty = len([row for row in ROWS if not row["amt"]])
    assert facts.total.value == pytest.approx(amount())
    assert f"amt is empty in {empty} of {len(ROWS)} rows; these are left out." in facts.query.notes
