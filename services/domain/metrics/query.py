"""Defines what a planned query is: measure, grouping, period, comparison, filters and order."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from services.domain.metrics.axis import DateAxis
from services.domain.metrics.coverage import Coverage
from services.domain.metrics.period import Grain, Period
from services.domain.metrics.roles import Flag


class Intent(StrEnum):
    """Tells what kind of answer is wanted."""

    TOTAL = "total"
    """One number, perhaps beside the one before."""
    RANK = "rank"
    """The most or the least of a group."""
    BREAKDOWN = "breakdown"
    """A number per group."""
    GROWTH = "growth"
    """The change per group between two periods."""
    TREND = "trend"
    """A number per step of time."""
    COMPARE = "compare"
    """A few named groups side by side."""
    SHARE = "share"
    """What part of the whole groups are."""


class Aggregation(StrEnum):
    """Names how the values of a column become one."""

    SUM = "sum"
    AVERAGE = "average"
    MEDIAN = "median"
    MIN = "min"
    MAX = "max"


class Unit(StrEnum):
    """Tells how a value is printed."""

    NUMBER = "number"
    """As it is, with the unit that the column's name carries."""
    COUNT = "count"
    """A whole number of things."""
    RATIO = "ratio"
    """0.25 is printed as 25%."""


@dataclass(frozen=True, slots=True)
class Fold:
    """Aggregates one column, or the product or difference of two."""

    aggregation: Aggregation
    column: str
    times: str = ""
    """A second column to multiply each value with; empty for none."""
    minus: str = ""
    """A second column to subtract from each value; empty for none."""


@dataclass(frozen=True, slots=True)
class RowCount:
    """Counts rows."""


@dataclass(frozen=True, slots=True)
class DistinctCount:
    """Counts the different values of a column."""

    column: str


@dataclass(frozen=True, slots=True)
class StepCount:
    """Counts the different days, weeks or months that have rows."""

    grain: Grain


@dataclass(frozen=True, slots=True)
class Rate:
    """Is the part of the rows that are marked yes."""

    column: str
    flag: Flag


@dataclass(frozen=True, slots=True)
class Quotient:
    """Divides one aggregate by another."""

    over: "Simple"
    under: "Simple"


Simple: TypeAlias = Fold | RowCount | DistinctCount | StepCount
Expression: TypeAlias = Simple | Rate | Quotient


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """Is the number that is asked for."""

    expression: Expression
    """How it is computed."""
    label: str
    """What the answer calls it, in the language of the answer."""
    unit: Unit = Unit.NUMBER
    """How it is printed."""
    suffix: str = ""
    """The unit that the column's name carries, printed after the number."""

    @property
    def additive(self) -> bool:
        """Tell whether groups add up to the whole, so that shares mean something."""
        expression = self.expression
        if isinstance(expression, Fold):
            return expression.aggregation is Aggregation.SUM
        return isinstance(expression, RowCount | DistinctCount)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimension:
    """Is what rows are grouped by: a column, or a step of time."""

    label: str
    """What the answer calls it."""
    column: str = ""
    """The column; empty when grouped by time."""
    grain: Grain | None = None
    """The step of time."""
    weekday: bool = False
    """Whether grouped by the day of the week."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueFilter:
    """Keeps, or leaves out, rows with certain values."""

    column: str
    values: tuple[str, ...]
    excluded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagFilter:
    """Keeps rows that are marked yes, or no."""

    column: str
    flag: Flag
    label: str
    wanted: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberFilter:
    """Keeps rows whose number compares with a limit; on groups when `grouped`."""

    column: str
    operator: str
    """One of `>`, `>=`, `<`, `<=`."""
    limit: float
    grouped: bool = False
    """Whether the aggregate of the group is compared instead of the row."""


Filter: TypeAlias = ValueFilter | FlagFilter | NumberFilter


class OrderBy(StrEnum):
    """Names what groups are ranked by."""

    VALUE = "value"
    CHANGE = "change"
    CHANGE_RATIO = "change_ratio"
    TIME = "time"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricQuery:
    """Is a question, understood."""

    table: str
    intent: Intent
    measure: Measure
    dimension: Dimension | None = None
    axis: DateAxis | None = None
    """Where a row's day comes from; None when the data has no dates."""
    coverage: Coverage | None = None
    """Which days the data has."""
    period: Period | None = None
    """The days that are asked about; None for all of them."""
    comparison: Period | None = None
    """The days that are compared with."""
    filters: tuple[Filter, ...] = ()
    focus: tuple[str, ...] = ()
    """The groups that the question names, when it asks about these among others."""
    order_by: OrderBy = OrderBy.VALUE
    descending: bool = True
    limit: int = 10
    """How many groups the answer shows."""
    ranked: bool = False
    """Whether the question asks for the first of an order."""
    language: str = "en"
    """The language of the answer: `en` or `zh`."""
    notes: tuple[str, ...] = ()
    """What was assumed, in the language of the answer."""

    @property
    def group_limit(self) -> NumberFilter | None:
        """Return what leaves groups out by their value, so that the rest is not the whole."""
        for found in self.filters:
            if isinstance(found, NumberFilter) and found.grouped:
                return found
        return None
