"""Decides what each column of a table is good for, from its name, its type and its values."""

from collections.abc import Callable
from dataclasses import dataclass, field

from services.domain.metrics.axis import DateAxis, date_axes
from services.domain.metrics.lexicon import Concept, Kind, concepts
from services.domain.metrics.names import ColumnName, parse_name
from services.domain.metrics.schema import Column, ColumnType, Table
from services.domain.metrics.text import has_han, stem, stems_of

_YES = {"yes", "y", "true", "t", "1", "是", "有", "对", "真", "已退货", "已退款", "退货",
    "returned", "refunded",
        "cancelled", "canceled", "已取消"}  # fmt: skip
_NO = {"no", "n", "false", "f", "0", "否", "无", "没有", "未", "不", "假", "未退货", "未退款",
    "正常", "not returned",
       "kept", "none", "ok", ""}  # fmt: skip
_QUALIFIERS = ("discount", "shipping", "tax", "cost", "target", "profit")
_TOTALS = {"total", "line", "extended", "order", "sum", "ttl"}
_INTENSIVE = {
    "rate",
    "ratio",
    "percent",
    "average",
    "unit",
    "temperature",
    "age",
    "index",
    "mean",
    "per",
}
_ORDER_WORDS = {
    "order",
    "orders",
    "invoice",
    "transaction",
    "receipt",
    "sale",
    "ticket",
    "purchase",
    "row",
    "line",
}
_GROUP_LIMIT = 200
"""More distinct whole numbers than this are a quantity, not a thing to group by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """Tells which values of a column mean yes."""

    yes: tuple[str, ...] = ()
    """The values, as text; empty for a boolean column."""
    numeric: bool = False
    """Whether yes is the number 1."""
    null_is_no: bool = False
    """Whether a row without a value means no, because only yes is ever written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """Is one column, and what it is good for."""

    column: Column
    name: ColumnName = field(repr=False)
    concept: Concept | None
    """What it is about, None when the lexicon does not know."""
    score: int
    """How sure that is: 100 for the head of the name, less for a word in it."""
    flag: Flag | None = None
    """How yes is written, when the column is a yes or no."""

    @property
    def identifier(self) -> bool:
        """Tell whether the values only name rows or things."""
        return self.name.identifier

    @property
    def measurable(self) -> bool:
        """Tell whether adding or averaging the values means something."""
        return self.column.numeric and not self.identifier

    @property
    def groupable(self) -> bool:
        """Tell whether rows can be grouped by it."""
        if self.column.type in (ColumnType.TEXT, ColumnType.BOOLEAN):
            return True
        known = self.concept is not None and self.concept.kind is Kind.DIMENSION
        few = self.column.distinct_count <= _GROUP_LIMIT
        return self.column.type is ColumnType.INTEGER and (known or self.identifier) and few

    @property
    def averaged(self) -> bool:
        """Tell whether a sum of the values would mean nothing."""
        words = {*self.name.words}
        if words & _INTENSIVE or self.name.head.endswith(("率", "均", "占比", "比例", "度")):
            return True
        if self.concept is not None and self.concept.key == "discount":
            return isinstance(self.column.max, int | float) and self.column.max <= 1
        return self.concept is not None and self.concept.averaged

    def label(self, language: str, said: str = "") -> str:
        """Return what an answer calls the column: the user's own noun, else the data's.

        A name in another language than the answer's is translated when the lexicon knows it.
        """
        known = self.concept if self.score >= 60 else None
        if known is not None and has_han(said) == (language == "zh"):
            for head in known.heads:
                same = said == head if has_han(said) else stems_of(head) == stems_of(said)
                if same and said:
                    return head
        own = " ".join(self.name.words) or self.column.name
        if known is not None and has_han(own) != (language == "zh"):
            return known.label(language)
        return own


class Catalog:
    """Answers which column of a table stands for what."""

    def __init__(self, table: Table) -> None:
        """Read the table's columns."""
        self.table = table
        self.axes: tuple[DateAxis, ...] = date_axes(table)
        dated = {axis.column.name for axis in self.axes} | {
            axis.part.name for axis in self.axes if axis.part
        }
        self.roles = tuple(role_of(column, table) for column in table.columns)
        self._usable = tuple(role for role in self.roles if role.column.name not in dated)

    def role(self, name: str) -> Role:
        """Return the role of a column by its name."""
        return next(role for role in self.roles if role.column.name == name)

    def measure(self, key: str) -> Role | None:
        """Return the best column for a measure."""
        return self._best(key, lambda role: role.measurable)

    def dimension(self, key: str) -> Role | None:
        """Return the best column for a dimension: a name before an id."""
        found = self._all(key, lambda role: role.groupable or role.identifier)
        found.sort(key=lambda role: (role.identifier, -role.score))
        return found[0] if found else None

    def flag(self, key: str) -> Role | None:
        """Return the column that says yes or no, or the status that names it among its values."""
        found = self._best(key, lambda role: role.flag is not None)
        return found or self._status_with(key)

    def measures(self) -> list[Role]:
        """Return every column that can be added or averaged, revenue first."""
        order = ["revenue", "quantity", "profit", "cost", "price"]
        found = [role for role in self._usable if role.measurable and role.flag is None]

        def rank(role: Role) -> tuple[int, int]:
            key = role.concept.key if role.concept and role.score >= 60 else ""
            return (order.index(key) if key in order else len(order)), -role.score

        return sorted(found, key=rank)

    def dimensions(self) -> list[Role]:
        """Return every column to group by, the lexicon's first, things with few values first."""
        found = [
            role
            for role in self._usable
            if role.groupable and not role.identifier and role.flag is None
        ]
        order = list(concepts())

        def rank(role: Role) -> tuple[int, int]:
            key = role.concept.key if role.concept else ""
            return (order.index(key) if key in order else 999), role.column.distinct_count

        limit = min(_GROUP_LIMIT, max(2, self.table.row_count - 1))
        few = [role for role in found if 2 <= role.column.distinct_count <= limit]
        return sorted(few or found, key=rank)

    def order_id(self) -> Role | None:
        """Return the column that tells orders apart, None when every row is one."""
        ids = [role for role in self.roles if _names_order(role, self.table)]
        ids.sort(key=lambda role: -role.column.distinct_count)
        return ids[0] if ids else None

    def _best(self, key: str, fits: Callable[[Role], bool]) -> Role | None:
        found = self._all(key, fits)
        return max(found, key=lambda role: role.score) if found else None

    def _all(self, key: str, fits: Callable[[Role], bool]) -> list[Role]:
        return [
            role
            for role in self._usable
            if role.concept is not None and role.concept.key == key and fits(role)
        ]

    def _status_with(self, key: str) -> Role | None:
        wanted = concepts()[key]
        for role in self._usable:
            yes = tuple(value for value in role.column.values if _means(value, wanted))
            if role.column.type is ColumnType.TEXT and yes and role.flag is None:
                flag = Flag(yes=yes)
                return Role(column=role.column, name=role.name, concept=wanted, score=50, flag=flag)
        return None


def role_of(column: Column, table: Table) -> Role:
    """Return what a column is good for."""
    name = parse_name(column.name)
    flag = _flag_of(column, name)
    concept, score = _concept_of(column, name, flag)
    if _looks_like_id(column, name, table):
        name = ColumnName(words=name.words, spoken=name.spoken, unit=name.unit, identifier=True)
    return Role(column=column, name=name, concept=concept, score=score, flag=flag)


def _concept_of(column: Column, name: ColumnName, flag: Flag | None) -> tuple[Concept | None, int]:
    scored = [
        (_score(name, concept), concept)
        for concept in concepts().values()
        if concept.heads and _possible(column, concept, flag)
    ]
    qualified = _qualified(name) if column.numeric else None
    if qualified is not None:
        return concepts()[qualified], 90
    best = max(scored, key=lambda pair: pair[0], default=(0, None))
    return (best[1], best[0]) if best[0] > 0 else (None, 0)


def _possible(column: Column, concept: Concept, flag: Flag | None) -> bool:
    if concept.kind is Kind.MEASURE:
        return column.numeric and flag is None
    if concept.kind is Kind.FLAG:
        return flag is not None
    if flag is not None:
        # `is_manager` tells of a row whether it is one, not who it is.
        return False
    return not column.temporal and column.type is not ColumnType.NUMBER


def _score(name: ColumnName, concept: Concept) -> int:
    """Return how well a name fits: the head counts, and the longest Chinese ending wins."""
    best = 0
    for place, head in enumerate(concept.heads):
        if head.isascii():
            if stem(name.head) == stem(head):
                best = max(best, 100 - place)
            elif any(stem(word) == stem(head) for word in name.modifiers):
                best = max(best, 40 - place)
        elif name.head.endswith(head):
            best = max(best, 60 + 10 * min(len(head), 4) - (0 if name.head == head else 1))
        elif head in name.head and len(head) > 1:
            best = max(best, 30 + len(head))
    return best


def _qualified(name: ColumnName) -> str | None:
    """Tell `discount_amount` and `total_price` from what their heads alone would say."""
    if name.head == "price" and _TOTALS & {*name.modifiers}:
        return "revenue"
    known = concepts()
    for key in _QUALIFIERS:
        heads = known[key].heads
        latin = any(word in heads for word in name.modifiers)
        han = any(
            not head.isascii() and len(head) > 1 and head in name.head and name.head != head
            for head in heads
        )
        if (latin and name.head != "price") or han:
            return key
    return None


def _flag_of(column: Column, name: ColumnName) -> Flag | None:
    if column.type is ColumnType.BOOLEAN:
        return Flag()
    if column.type is ColumnType.INTEGER:
        zero_one = column.min == 0 and column.max == 1
        counted = any(
            _score(name, concept) >= 60
            for concept in concepts().values()
            if concept.kind is Kind.MEASURE
        )
        return Flag(numeric=True) if zero_one and not counted else None
    values = {value.strip().lower(): value for value in column.values}
    if not values or len(values) > 3 or not set(values) <= (_YES | _NO):
        return None
    yes = tuple(value for key, value in values.items() if key in _YES)
    return Flag(yes=yes, null_is_no=len(yes) == len(values)) if yes else None


def _means(value: str, concept: Concept) -> bool:
    """Tell whether a status value such as `Returned` or `已退货` names the concept."""
    text = value.strip().lower()
    if text.startswith(("not ", "un", "未", "no ", "non")):
        return False
    return stem(text) in {stem(word) for word in concept.en} or any(
        word in text for word in concept.zh
    )


def _looks_like_id(column: Column, name: ColumnName, table: Table) -> bool:
    if name.identifier:
        return True
    unique = table.row_count > 1 and column.distinct_count == table.row_count
    return unique and column.type is ColumnType.INTEGER and name.head in (_ORDER_WORDS | {"订单"})


def _names_order(role: Role, table: Table) -> bool:
    words = {*role.name.words}
    says_order = bool(words & _ORDER_WORDS) or any(
        part in role.name.head for part in ("订单", "单", "流水", "交易")
    )
    if role.column.temporal or role.column.type is ColumnType.NUMBER:
        return False
    if role.identifier and says_order:
        return True
    unique = table.row_count > 1 and role.column.distinct_count == table.row_count
    return unique and (role.identifier or says_order) and len(words) <= 2
