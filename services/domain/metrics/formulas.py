"""Makes measures out of the columns of a table, and says what it assumed."""

from services.domain.metrics.errors import NotUnderstoodError
from services.domain.metrics.lexicon import Kind, concepts
from services.domain.metrics.mentions import Mention
from services.domain.metrics.query import (
    Aggregation,
    DistinctCount,
    Fold,
    Measure,
    Quotient,
    RowCount,
    Simple,
    Unit,
)
from services.domain.metrics.reading import Reading
from services.domain.metrics.roles import Role


class Formulas:
    """Makes the measures of one reading."""

    def __init__(self, reading: Reading) -> None:
        """Take the reading."""
        self._reading = reading
        self._catalog = reading.catalog
        self._zh = reading.language == "zh"
        self.notes: list[str] = []
        """What was assumed, in the language of the answer."""

    def rate_of_amounts(self, mention: Mention, label: str) -> Measure:
        """Divide returned units by units, when the data has these instead of a yes or no."""
        concept = mention.concept or concepts()["returned"]
        words = {word for word in concept.heads if len(word) > 1}
        returned = [
            role
            for role in self._catalog.roles
            if role.measurable and any(word in " ".join(role.name.words) for word in words)
        ]
        whole = self._catalog.measure("quantity") or self._catalog.measure("revenue")
        if not returned or whole is None or returned[0] is whole:
            raise missing_column(self._reading, mention.said)
        over = Fold(Aggregation.SUM, returned[0].column.name)
        under = Fold(Aggregation.SUM, whole.column.name)
        return Measure(expression=Quotient(over, under), label=label, unit=Unit.RATIO)

    def folded(self, role: Role, mention: Mention | None) -> Measure:
        """Return a column added, or averaged when the question or the column says so."""
        named = self._reading.cues.aggregation
        aggregation = named or (Aggregation.AVERAGE if role.averaged else Aggregation.SUM)
        label = role.label(self._reading.language, mention.said if mention else "")
        if mention is not None and mention.concept is None:
            label = mention.said
        return Measure(
            expression=Fold(aggregation, role.column.name),
            label=_aggregated(label, aggregation, zh=self._zh),
            suffix=role.name.unit,
        )

    def quotient(self, over: Fold, under: Simple, label: str, role: Role | None = None) -> Measure:
        """Return one aggregate divided by another."""
        suffix = role.name.unit if role else self._suffix(over.column)
        return Measure(expression=Quotient(over, under), label=label, suffix=suffix)

    def _suffix(self, column: str) -> str:
        return self._catalog.role(column).name.unit

    def order_count(self) -> Simple:
        """Return how orders are counted: rows, or different numbers when an order has lines."""
        order = self._catalog.order_id()
        if order is None or order.column.distinct_count == self._catalog.table.row_count:
            return RowCount()
        return DistinctCount(order.column.name)

    def orders_measure(self, said: str = "") -> Measure:
        """Return the number of orders, or of rows by the name that the user gives them."""
        label = self._orders_label(said)
        counted = [
            role
            for role in self._catalog.roles
            if role.measurable and {"order", "orders"} & {*role.name.words} and role.flag is None
            and role.concept is not None and role.concept.key == "quantity"
        ]  # fmt: skip
        expression: Simple = self.order_count()
        if counted:
            expression = Fold(Aggregation.SUM, counted[0].column.name)
        return Measure(expression=expression, label=label, unit=Unit.COUNT)

    def _orders_label(self, said: str) -> str:
        """Return `orders` when the rows are orders, or the user calls them so; else their name."""
        order = self._catalog.order_id()
        asked = self._reading.of_kind(Kind.DERIVED)
        if said:
            return f"{said}数" if self._zh else plural(said.lower())
        if asked or (order is not None and order.name.head in ("order", "订单")):
            return concepts()["orders"].label(self._reading.language)
        return "行数" if self._zh else "rows"

    def made(self, key: str) -> Fold | None:
        """Return revenue or profit made of other columns, None when they are not there."""
        quantity, price = self._catalog.measure("quantity"), self._catalog.measure("price")
        revenue, cost = self._catalog.measure("revenue"), self._catalog.measure("cost")
        if key == "revenue" and quantity is not None and price is not None:
            self._say_made("revenue", f"{quantity.column.name} × {price.column.name}")
            return Fold(Aggregation.SUM, quantity.column.name, times=price.column.name)
        if key == "profit" and revenue is not None and cost is not None and not cost.averaged:
            self._say_made("profit", f"{revenue.column.name} − {cost.column.name}")
            return Fold(Aggregation.SUM, revenue.column.name, minus=cost.column.name)
        return None

    def require(self, key: str, mention: Mention) -> Fold:
        """Return the sum of a measure, or raise NotUnderstoodError."""
        role = self._catalog.measure(key)
        if role is not None:
            return Fold(Aggregation.SUM, role.column.name)
        made = self.made(key)
        if made is None:
            raise missing_column(self._reading, mention.said)
        return made

    def thing(self, key: str, mention: Mention) -> str:
        """Return the column of a dimension, or raise NotUnderstoodError."""
        role = self._catalog.dimension(key)
        if role is None:
            raise missing_column(self._reading, mention.said)
        return role.column.name

    def _say_made(self, key: str, formula: str) -> None:
        label = concepts()[key].label(self._reading.language)
        self.notes.append(
            self._reading.pick(
                en=f"There is no column for {label}; it is computed as {formula} per row.",
                zh=f"数据中没有{label}列，按每行 {formula} 计算。",
            )
        )


def missing_column(reading: Reading, said: str) -> NotUnderstoodError:
    """Return the error that no column holds what was said."""
    return reading.refusal(en=f"no column holds {said!r}", zh=f"没有哪一列表示“{said}”")


def _aggregated(label: str, aggregation: Aggregation, *, zh: bool) -> str:
    if aggregation is Aggregation.SUM:
        return label
    words = {
        Aggregation.AVERAGE: ("average", "平均"),
        Aggregation.MEDIAN: ("median", "中位"),
        Aggregation.MIN: ("lowest", "最低"),
        Aggregation.MAX: ("highest", "最高"),
    }[aggregation]
    return f"{words[1]}{label}" if zh else f"{words[0]} {label}"


def step_label(label: str, grain: str, *, zh: bool) -> str:
    """Return the name of a mean per step of time."""
    if zh:
        names = {"day": "日", "week": "周", "month": "月", "quarter": "季度", "year": "年"}
        return f"{names.get(grain, '期')}均{label}"
    return f"average {label} per {grain}"


def plural(label: str) -> str:
    """Return the plural of a label."""
    if label.endswith("y") and not label.endswith(("ay", "ey", "oy")):
        return label[:-1] + "ies"
    return label if label.endswith("s") else label + "s"
