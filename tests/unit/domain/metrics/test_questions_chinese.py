"""Holds answers about a table with Chinese columns to what a spreadsheet shows."""

import pytest

from tests.unit.domain.database import Database
from tests.unit.domain.spreadsheet import add, by, distinct, highest, keep, lowest, read

ROWS = read("xiaoshou")
DAY, MONEY, GROUP = "下单日期", "销售额(元)", "产品类别"
ALL = ("2025-01-03", "2026-09-30")
Q2, Q3, Q3_2025 = (
    ("2026-04-01", "2026-06-30"),
    ("2026-07-01", "2026-09-30"),
    ("2025-07-01", "2025-09-30"),
)
"""The data ends on the last day of September 2026."""


def money(within: tuple[str, str] = ALL, **where: str) -> float:
    return add(keep(ROWS, DAY, within, **where), MONEY)


def moneys(column: str, within: tuple[str, str] = ALL) -> dict[str, float]:
    return {name: add(rows, MONEY) for name, rows in by(keep(ROWS, DAY, within), column).items()}


def changes(column: str) -> dict[str, float]:
    old, new = moneys(column, Q2), moneys(column, Q3)
    return {name: new.get(name, 0) - old.get(name, 0) for name in {*old, *new}}


GROWN = highest(changes(GROUP))
FASTEST = highest(
    {name: change / moneys(GROUP, Q2)[name] for name, change in changes(GROUP).items()}
)
FALLEN = lowest(changes("地区"))
UNITS = {name: add(rows, "销售数量") for name, rows in by(ROWS, "产品名称").items()}
UNITS_2026 = {
    name: add(rows, "销售数量")
    for name, rows in by(keep(ROWS, DAY, ("2026-01-01", "2026-09-30")), "产品名称").items()
}
RATES = {name: len(keep(rows, 是否退货="是")) / len(rows) for name, rows in by(ROWS, GROUP).items()}
MONTHS = {month: add(rows, MONEY) for month, rows in by(ROWS, lambda row: row[DAY][:7]).items()}

CASES: list[tuple[str, str, float, float | None]] = [
    # question, headline's name, its value, its previous value
    ("上个季度哪个品类增长最多？", GROWN, money(Q3, 产品类别=GROWN), money(Q2, 产品类别=GROWN)),
    (
        "上个季度哪个品类增长最快？",
        FASTEST,
        money(Q3, 产品类别=FASTEST),
        money(Q2, 产品类别=FASTEST),
    ),
    (
        "上季度增长率最高的品类是哪个",
        FASTEST,
        money(Q3, 产品类别=FASTEST),
        money(Q2, 产品类别=FASTEST),
    ),
    ("2026年第三季度的总销售额是多少？", "", money(Q3), None),
    ("今年三季度的营业额", "", money(Q3), None),
    ("销量前三的产品有哪些？", highest(UNITS), max(UNITS.values()), None),
    ("今年卖得最好的产品是什么？", highest(UNITS_2026), max(UNITS_2026.values()), None),
    ("哪个产品类别的退货率最高？", highest(RATES), max(RATES.values()), None),
    (
        "华北和华南的销售额对比",
        highest({n: money(地区=n) for n in ("华北", "华南")}),
        max(money(地区="华北"), money(地区="华南")),
        None,
    ),
    ("线上渠道占总销售额的比例是多少？", "线上", money(销售渠道="线上"), None),
    ("上个月有多少订单？", "", len(keep(ROWS, DAY, ("2026-09-01", "2026-09-30"))), None),
    ("客单价是多少？", "", money() / distinct(ROWS, "订单编号"), None),
    ("第三季度销售额同比增长多少？", "", money(Q3), money(Q3_2025)),
    ("上个季度销售额环比增长多少", "", money(Q3), money(Q2)),
    ("上个季度环比下降最多的地区是哪个？", FALLEN, money(Q3, 地区=FALLEN), money(Q2, 地区=FALLEN)),
    ("王芳一共消费了多少？", "", money(客户名称="王芳"), None),
    ("有多少个客户？", "", distinct(ROWS, "客户名称"), None),
    ("哪个月的销售额最高？", "2026年7月", max(MONTHS.values()), None),
    ("最近30天的销量", "", add(keep(ROWS, DAY, ("2026-09-01", "2026-09-30")), "销售数量"), None),
    (
        "除了家电，各品类的销售额",
        highest({n: v for n, v in moneys(GROUP).items() if n != "家电"}),
        max(v for n, v in moneys(GROUP).items() if n != "家电"),
        None,
    ),
    ("平均每月销售额", "", money() / len(MONTHS), None),
    ("退货的订单有多少？", "", len(keep(ROWS, 是否退货="是")), None),
    ("2026年7月华东的销售额", "", money(("2026-07-01", "2026-07-31"), 地区="华东"), None),
    ("7月1日到8月15日的销售额", "", money(("2026-07-01", "2026-08-15")), None),
    ("哪个客户花钱最多？", highest(moneys("客户名称")), max(moneys("客户名称").values()), None),
    (
        "今年上半年和去年上半年的销售额对比",
        "",
        money(("2026-01-01", "2026-06-30")),
        money(("2025-01-01", "2025-06-30")),
    ),
    (
        "订单最多的地区",
        highest({n: float(len(r)) for n, r in by(ROWS, "地区").items()}),
        max(len(r) for r in by(ROWS, "地区").values()),
        None,
    ),
    (
        "销售额超过10000的产品有哪些",
        highest(moneys("产品名称")),
        max(moneys("产品名称").values()),
        None,
    ),
    (
        "华南第三季度的退货率",
        "",
        len(keep(ROWS, DAY, Q3, 地区="华南", 是否退货="是"))
        / len(keep(ROWS, DAY, Q3, 地区="华南")),
        None,
    ),
    ("前三季度的销售额", "", money(("2026-01-01", "2026-09-30")), None),
    (
        "Which category grew most last quarter?",
        GROWN,
        money(Q3, 产品类别=GROWN),
        money(Q2, 产品类别=GROWN),
    ),
    (
        "How many orders were returned in 2026?",
        "",
        len(keep(ROWS, DAY, ("2026-01-01", "2026-12-31"), 是否退货="是")),
        None,
    ),
]


@pytest.mark.parametrize(
    ("question", "name", "value", "previous"), CASES, ids=[c[0] for c in CASES]
)
def test_headline_is_what_a_spreadsheet_shows(
    tables: Database, question: str, name: str, value: float, previous: float | None
) -> None:
    facts = tables.ask("xiaoshou", question)

    assert facts.headline.name == name
    assert facts.headline.value == pytest.approx(value)
    assert facts.headline.previous == (None if previous is None else pytest.approx(previous))


def test_trend_has_every_month_of_the_year(tables: Database) -> None:
    facts = tables.ask("xiaoshou", "2026年每个月的销售额走势")

    assert [group.name for group in facts.groups] == [f"2026年{month}月" for month in range(1, 10)]
    assert [group.value for group in facts.groups] == pytest.approx(
        [MONTHS[f"2026-{month:02}"] for month in range(1, 10)]
    )
