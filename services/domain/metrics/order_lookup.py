"""Finds the orders that a question is about, and tells about them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from services.domain.metrics.axis import DateAxis
from services.domain.metrics.errors import NotUnderstoodError
from services.domain.metrics.mentions import find_mentions
from services.domain.metrics.moments import find_moments
from services.domain.metrics.period import Grain
from services.domain.metrics.quoting import identifier, text
from services.domain.metrics.roles import Catalog, Role
from services.domain.metrics.schema import ColumnType, JsonValue, Table
from services.domain.metrics.sql import day_expression, flag_test, lookup_sql
from services.domain.metrics.text import Span, Text

LISTED_COUNT = 5
"""Orders shown when the question names none by its number."""
_LINES_COUNT = 50
"""Lines of one order that are read."""

_ID = re.compile(
    r"(?<![A-Za-z0-9_.])#?\s*(?P<id>[A-Za-z]{1,6}[-_]?\d{2,}(?:[-_]\d+)*|[A-Z]{1,4} \d{2,}|"
    r"\d{2,}(?:-\d+)*)(?![A-Za-z0-9_%]|\.\d)"
)
_NAMED_ID = re.compile(
    r"(?:\border\s*(?:no\.?|nr\.?|number|id)?\s*[#:]?|#|\b(?:no|nr)\.|订单(?:号|编号)?[:：]?)\s*"
    r"(?P<id>\d+)(?![A-Za-z0-9_%年月日/.-])",
    re.IGNORECASE,
)
_YEAR_BEFORE = re.compile(
    r"(?:\b(?:in|of|for|since|from|during|until|till|before|after|by|year|orders|sales)|"
    r"今年|在|自|从)\s*(?:the\s+)?(?:year\s+)?$",
    re.IGNORECASE,
)
_YEAR_AFTER = re.compile(r"\s*(?:年|(?:orders|sales|revenue)\b)", re.IGNORECASE)
_COUNTS = re.compile(
    r"\bhow many\b|\bnumber of (?!(?:my|the|this|that|his|her|our|their)\b)|\baverage\b|"
    r"\btotal (?:number|revenue|sales|orders|amount|value)\b|"
    r"多少[^号，。？?]*订单|订单[^号，。？?]*(?:有多少|数量|总数|总额)|总共|一共|平均",
    re.IGNORECASE,
)
_CUSTOMER_SAID = re.compile(
    r"\b(?:orders?|purchases?)\s+(?:of|by|from|for)\s+(?P<en>[^?.!,]{2,60})|"
    r"(?:客户|顾客|买家)\s*(?P<zh>[^的，。？?]{2,20})的?(?:最近|最新|全部|所有)?的?订单"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderSearch:
    """Is what to look up: one order by its number, or the latest of some."""

    sql: str
    """The query."""
    number: str = ""
    """The order's number as the question gives it; empty when it gives none."""
    of: str = ""
    """Whose orders, for the answer; empty for anybody's."""


class OrderBook:
    """Knows the table of orders, and its columns."""

    def __init__(self, tables: Sequence[Table], question: str, language: str) -> None:
        """Take the tables and the question.

        Raises:
            NotUnderstoodError: no table has a column that tells orders apart.
        """
        catalogs = [Catalog(table) for table in tables if table.row_count and table.columns]
        found = [(c, order) for c in catalogs if (order := c.order_id()) is not None]
        if not found:
            names = tuple(name for table in tables for name in table.column_names)
            raise NotUnderstoodError(
                "数据中没有表示订单编号的列"
                if language == "zh"
                else "no column holds order numbers",
                columns=names,
                example="有多少行数据？" if language == "zh" else "How many rows are there?",
            )
        self._catalog, self._order = found[0]
        self._text = Text.of(question)
        self._names: tuple[str, ...] = ()

    @property
    def table(self) -> Table:
        """Return the table of orders."""
        return self._catalog.table

    @property
    def order(self) -> Role:
        """Return the column with the order's number."""
        return self._order

    def status(self) -> Role | None:
        """Return the column that tells where an order is."""
        return self._catalog.dimension("status")

    def axis(self) -> DateAxis | None:
        """Return where an order's day comes from."""
        return self._catalog.axes[0] if self._catalog.axes else None

    def number(self) -> str:
        """Return the order's number that the question gives; empty when it gives none."""
        return order_number(self._text)

    def name_lookup(self) -> str | None:
        """Return a query for the customers that the question names; None when it is not needed."""
        customer = self._catalog.dimension("customer")
        if self.number() or customer is None or customer.column.values:
            return None
        return lookup_sql(self.table, (customer.column.name,), self._text.original)

    def learn_names(self, rows: Sequence[Mapping[str, JsonValue]]) -> None:
        """Take the rows of the lookup."""
        self._names = tuple(str(row.get("value")) for row in rows)

    def search(self) -> OrderSearch:
        """Return what to look up."""
        number = self.number()
        if number:
            return OrderSearch(sql=self._by_number(number), number=number)
        tests, of = self._tests()
        where = f" WHERE {' AND '.join(tests)}" if tests else ""
        axis = self.axis()
        latest = f" ORDER BY {day_expression(axis)} DESC, {self._id} DESC" if axis else ""
        sql = f"SELECT {self._columns} FROM {self._table}{where}{latest} LIMIT {LISTED_COUNT}"
        return OrderSearch(sql=sql, of=of)

    def unknown_customer(self) -> str:
        """Return the name of somebody whose orders are asked for and who is not in the data."""
        found = _CUSTOMER_SAID.search(self._text.original)
        if found is None or self._tests()[0]:
            return ""
        said = (found["en"] or found["zh"] or "").strip()
        ordinary = re.match(
            r"(?:all|any|the|this|last|today|yesterday|my|our|me|us)\b", said.lower()
        )
        return "" if ordinary or find_moments(Text.of(said)) else said

    def _by_number(self, number: str) -> str:
        """Match the whole number, or its digits when the question gives only these."""
        stored = f"LOWER(TRIM(CAST({self._id} AS VARCHAR)))"
        test = f"{stored} = {text(number.lower())}"
        if number.isdigit():
            test += f" OR REGEXP_REPLACE({stored}, '[^0-9]', '', 'g') = {text(number)}"
        else:
            squeezed = re.sub(r"[-_ ]", "", number.lower())
            test += f" OR REGEXP_REPLACE({stored}, '[-_ ]', '', 'g') = {text(squeezed)}"
        return f"SELECT {self._columns} FROM {self._table} WHERE {test} LIMIT {_LINES_COUNT}"

    def _tests(self) -> tuple[list[str], str]:
        tests, said = [], []
        customer = self._catalog.dimension("customer")
        if self._names and customer is not None:
            longest = max(self._names, key=len)
            tests.append(f"CAST({identifier(customer.column.name)} AS VARCHAR) = {text(longest)}")
            said.append(longest)
        for mention in find_mentions(self._text, self._catalog, ()):
            flag = mention.role.flag if mention.role is not None and not mention.value else None
            if flag is not None and mention.role is not None:
                tests.append(f"({flag_test(mention.role.column.name, flag)})")
            if mention.value and mention.role is not None and mention.value not in said:
                column = identifier(mention.role.column.name)
                tests.append(f"CAST({column} AS VARCHAR) = {text(mention.value)}")
                said.append(mention.value)
        return tests, ", ".join(said)

    @property
    def _id(self) -> str:
        return identifier(self._order.column.name)

    @property
    def _table(self) -> str:
        return identifier(self.table.name)

    @property
    def _columns(self) -> str:
        return ", ".join(identifier(name) for name in self.table.column_names)


def order_number(question: Text) -> str:
    """Return the order's number that a question gives; empty when it gives none, or a time."""
    named = _NAMED_ID.search(question.original)
    if named is not None:
        return named["id"]
    times = _times(question)
    for found in _ID.finditer(question.original):
        place = Span(*found.span("id"))
        if not any(place.overlaps(span) for span in times):
            return re.sub(r"^(?:order|nr|no|id|num)[-_ ]?(?=\d)", "", found["id"], flags=re.I)
    return ""


def asks_for_a_count(question: str) -> bool:
    """Tell whether a number over many orders is asked for, which is no look-up."""
    asked = Text.of(question)
    return not order_number(asked) and _COUNTS.search(asked.original) is not None


def _times(question: Text) -> list[Span]:
    """Return the places of times; a bare year is one only where a year stands: `in 2025`."""
    moments = find_moments(question)
    years = [moment.span for moment in moments if moment.grain is Grain.YEAR]
    sure = any(
        _YEAR_BEFORE.search(question.original[: span.start])
        or _YEAR_AFTER.match(question.original, span.end)
        or not question.part(span).isdigit()
        for span in years
    )
    return [moment.span for moment in moments if moment.grain is not Grain.YEAR or sure]


def told(book: OrderBook, rows: Sequence[Mapping[str, JsonValue]], language: str) -> str:
    """Tell about one order: where it is first, then everything else that is known."""
    zh = language == "zh"
    order, status = book.order.column.name, book.status()
    number = shown(rows[0].get(order))
    said = f"订单 {number}" if zh else f"Order {number}"
    if status is not None and rows[0].get(status.column.name) is not None:
        state = shown(rows[0][status.column.name])
        said += f"的状态为{state}。" if zh else f" is {state}."
    else:
        said += "如下。" if zh else " is in the data."
    if len(rows) > 1:
        said += f"它有{len(rows)}行。" if zh else f" It has {len(rows)} lines."
    skipped = {order, status.column.name if status else ""}
    for row in rows[:LISTED_COUNT]:
        listed = ("，" if zh else "; ").join(_pairs(book.table, row, skipped, zh=zh))
        said += f"{listed}。" if zh else f" {listed[:1].upper()}{listed[1:]}."
    return said


def told_list(
    book: OrderBook, rows: Sequence[Mapping[str, JsonValue]], of: str, language: str
) -> str:
    """Tell about the latest orders, one line each."""
    zh = language == "zh"
    whose = of if zh else f" of {of}"
    head = (
        f"{whose if of else ''}最近的{len(rows)}笔订单："
        if zh
        else f"The latest {len(rows)} orders{whose if of else ''}:"
    )
    order = book.order.column.name
    lines = [
        f"- {shown(row.get(order))}: {'，'.join(pairs) if zh else '; '.join(pairs)}"
        for row in rows
        if (pairs := _pairs(book.table, row, {order}, zh=zh)) is not None
    ]
    return "\n".join([head, *lines])


def not_found(number: str, of: str, language: str) -> str:
    """Say that there is no such order."""
    if language == "zh":
        return f"数据中没有订单 {number}。" if number else f"数据中没有{of}的订单。"
    return (
        f"There is no order {number} in the data."
        if number
        else f"There are no orders of {of} in the data."
    )


def shown(value: JsonValue) -> str:
    """Return a value as an answer prints it: whole numbers whole, midnight left out."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return re.sub(r"[T ]00:00:00(?:\.0+)?$", "", str(value)) if value is not None else ""


def _pairs(table: Table, row: Mapping[str, JsonValue], skipped: set[str], *, zh: bool) -> list[str]:
    pairs = []
    for column in table.columns:
        value = row.get(column.name)
        if column.name in skipped or value is None or shown(value) == "":
            continue
        printed = shown(value)
        if column.type is ColumnType.BOOLEAN and zh:
            printed = "是" if value else "否"
        name = column.name.replace("_", " ")
        pairs.append(f"{name}：{printed}" if zh else f"{name}: {printed}")
    return pairs
