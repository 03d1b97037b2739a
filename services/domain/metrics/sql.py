"""Writes the SQL of a planned query, in DuckDB's dialect."""

from services.domain.metrics.axis import DateAxis, Encoding
from services.domain.metrics.period import Period
from services.domain.metrics.query import (
    Aggregation,
    DistinctCount,
    Expression,
    Filter,
    FlagFilter,
    Fold,
    Intent,
    MetricQuery,
    NumberFilter,
    OrderBy,
    Quotient,
    Rate,
    RowCount,
    StepCount,
    ValueFilter,
)
from services.domain.metrics.quoting import day, identifier, number, text
from services.domain.metrics.roles import Flag
from services.domain.metrics.schema import Table

ROW_LIMIT = 500
"""Groups fetched at most; the answer shows fewer, and knows how many there are."""

_FUNCTIONS = {
    Aggregation.SUM: "SUM",
    Aggregation.AVERAGE: "AVG",
    Aggregation.MEDIAN: "MEDIAN",
    Aggregation.MIN: "MIN",
    Aggregation.MAX: "MAX",
}
_TIMES = ("", " %H:%M:%S", " %H:%M", "T%H:%M:%S")


def day_expression(axis: DateAxis) -> str:
    """Return the SQL of a row's day; NULL where the data has none that can be read."""
    column = identifier(axis.column.name)
    match axis.encoding:
        case Encoding.NATIVE:
            return f"CAST({column} AS DATE)"
        case Encoding.PARSED:
            forms = ", ".join(text(axis.format + time) for time in _TIMES)
            return f"CAST(TRY_STRPTIME(TRIM(CAST({column} AS VARCHAR)), [{forms}]) AS DATE)"
        case Encoding.YEAR_MONTH:
            part = identifier(axis.part.name) if axis.part else "1"
            return f"MAKE_DATE(CAST({column} AS BIGINT), CAST({part} AS BIGINT), 1)"
        case Encoding.YEAR_QUARTER:
            part = identifier(axis.part.name) if axis.part else "1"
            month = f"(CAST({part} AS BIGINT) - 1) * 3 + 1"
            return f"MAKE_DATE(CAST({column} AS BIGINT), {month}, 1)"
        case Encoding.YEAR:
            return f"MAKE_DATE(CAST({column} AS BIGINT), 1, 1)"


def coverage_sql(table: Table, axis: DateAxis) -> str:
    """Return a query for the first and the last day, and how many different ones there are."""
    when = day_expression(axis)
    return (
        f"SELECT MIN({when}) AS first_day, MAX({when}) AS last_day, "
        f"COUNT(DISTINCT {when}) AS day_count FROM {identifier(table.name)}"
    )


def lookup_sql(table: Table, columns: tuple[str, ...], question: str) -> str:
    """Return a query for the values of columns with many that stand in the question."""
    asked = text(question.lower())
    parts = [
        f"SELECT {text(name)} AS column_name, value FROM (SELECT DISTINCT "
        f"CAST({identifier(name)} AS VARCHAR) AS value FROM {identifier(table.name)}) "
        f"WHERE LENGTH(value) >= 2 AND STRPOS({asked}, LOWER(value)) > 0"
        for name in columns
    ]
    return " UNION ALL ".join(parts) + " LIMIT 50"


def query_sql(query: MetricQuery) -> str:
    """Return the SQL of a planned query.

    Its columns: `entity` (when grouped), `value`, `row_count`, `previous` (when compared),
    then the same for all groups together: `total`, `total_row_count`, `previous_total`;
    `unnamed_count`, rows whose group is NULL; `entity_count`, all groups.
    """
    if query.dimension is None:
        return f"SELECT {_aggregates(query)} FROM {identifier(query.table)}{_where(query)}"
    entity = _entity(query)
    grouped = (
        f"SELECT {entity} AS entity, {_aggregates(query)} FROM {identifier(query.table)}"
        f"{_where(query)} GROUP BY 1{_having(query)}"
    )
    overall = (
        f"SELECT {_aggregates(query, prefix='total')}, "
        f"COUNT(*) FILTER (WHERE {entity} IS NULL) AS unnamed_count "
        f"FROM {identifier(query.table)}{_where(query)}"
    )
    names = ["value", "row_count", *(["previous"] if query.comparison else [])]
    totals = ["total", "total_row_count", *(["previous_total"] if query.comparison else [])]
    listed = ", ".join(
        [f"g.{name}" for name in ("entity", *names)] + [f"o.{name}" for name in totals]
    )
    return (
        f"WITH grouped AS ({grouped}), overall AS ({overall}) "
        f"SELECT {listed}, o.unnamed_count, COUNT(*) OVER () AS entity_count "
        f"FROM grouped AS g CROSS JOIN overall AS o "
        f"WHERE g.entity IS NOT NULL ORDER BY {_order(query)} LIMIT {ROW_LIMIT}"
    )


def _entity(query: MetricQuery) -> str:
    dimension = query.dimension
    if dimension is None:
        raise ValueError("the query is not grouped")
    if dimension.column:
        return f"NULLIF(TRIM(CAST({identifier(dimension.column)} AS VARCHAR)), '')"
    if query.axis is None:
        raise ValueError("a query grouped by time needs a date column")
    when = day_expression(query.axis)
    if dimension.weekday:
        return f"ISODOW({when})"
    grain = dimension.grain.value if dimension.grain else "month"
    return f"CAST(DATE_TRUNC('{grain}', {when}) AS DATE)"


def _aggregates(query: MetricQuery, prefix: str = "") -> str:
    names = ("total", "total_row_count", "previous_total") if prefix else (
        "value", "row_count", "previous",
    )  # fmt: skip
    expression = query.measure.expression
    if query.comparison is None or query.period is None:
        inside = ""
        parts = [f"{_aggregate(query, expression, '')} AS {names[0]}"]
    else:
        inside = _within(query, query.period)
        before = _within(query, query.comparison)
        parts = [
            f"{_aggregate(query, expression, inside)} AS {names[0]}",
            f"{_aggregate(query, expression, before)} AS {names[2]}",
        ]
    parts.insert(1, f"{_filtered('COUNT(*)', inside)} AS {names[1]}")
    return ", ".join(parts)


def _aggregate(query: MetricQuery, expression: Expression, condition: str) -> str:
    match expression:
        case Fold(aggregation=aggregation):
            call = _filtered(f"{_FUNCTIONS[aggregation]}({_operand(expression)})", condition)
            return f"CAST({call} AS DOUBLE)"
        case RowCount():
            return _filtered("COUNT(*)", condition)
        case DistinctCount(column=column):
            return _filtered(f"COUNT(DISTINCT {identifier(column)})", condition)
        case StepCount(grain=grain):
            if query.axis is None:
                raise ValueError("counting steps of time needs a date column")
            step = f"DATE_TRUNC('{grain.value}', {day_expression(query.axis)})"
            return _filtered(f"COUNT(DISTINCT {step})", condition)
        case Rate(column=column, flag=flag):
            known = "TRUE" if flag.null_is_no else f"{identifier(column)} IS NOT NULL"
            yes = _filtered("COUNT(*)", _both(condition, flag_test(column, flag)))
            every = _filtered("COUNT(*)", _both(condition, known))
            return f"{yes} / CAST(NULLIF({every}, 0) AS DOUBLE)"
        case Quotient(over=over, under=under):
            top = _aggregate(query, over, condition)
            return f"{top} / CAST(NULLIF({_aggregate(query, under, condition)}, 0) AS DOUBLE)"


def _operand(fold: Fold) -> str:
    column = identifier(fold.column)
    if fold.times:
        return f"{column} * {identifier(fold.times)}"
    if fold.minus:
        return f"{column} - {identifier(fold.minus)}"
    return column


def _filtered(call: str, condition: str) -> str:
    return f"{call} FILTER (WHERE {condition})" if condition else call


def _both(one: str, two: str) -> str:
    return f"{one} AND {two}" if one else two


def flag_test(column: str, flag: Flag) -> str:
    """Return the SQL test that a row is marked yes."""
    name = identifier(column)
    if flag.numeric:
        return f"{name} = 1"
    if flag.yes:
        return f"{name} IN ({', '.join(text(value) for value in flag.yes)})"
    return f"{name} = TRUE"


def _within(query: MetricQuery, period: Period) -> str:
    if query.axis is None:
        raise ValueError("a period needs a date column")
    when = day_expression(query.axis)
    return f"{when} BETWEEN {day(period.start)} AND {day(period.end)}"


def _where(query: MetricQuery) -> str:
    tests = [_filter_test(found) for found in query.filters if not _on_group(found)]
    if query.period is not None and query.comparison is not None:
        tests.append(f"({_within(query, query.period)} OR {_within(query, query.comparison)})")
    elif query.period is not None:
        tests.append(_within(query, query.period))
    return f" WHERE {' AND '.join(tests)}" if tests else ""


def _having(query: MetricQuery) -> str:
    condition = _within(query, query.period) if query.period and query.comparison else ""
    value = _aggregate(query, query.measure.expression, condition)
    tests = [
        f"{value} {found.operator} {number(found.limit)}"
        for found in query.filters
        if isinstance(found, NumberFilter) and found.grouped
    ]
    return f" HAVING {' AND '.join(tests)}" if tests else ""


def _on_group(found: Filter) -> bool:
    return isinstance(found, NumberFilter) and found.grouped


def _filter_test(found: Filter) -> str:
    match found:
        case ValueFilter(column=column, values=values, excluded=excluded):
            listed = ", ".join(text(value) for value in values)
            value = f"TRIM(CAST({identifier(column)} AS VARCHAR))"
            if excluded:
                return f"({value} NOT IN ({listed}) OR {identifier(column)} IS NULL)"
            return f"{value} IN ({listed})"
        case FlagFilter(column=column, flag=flag, wanted=wanted):
            test = flag_test(column, flag)
            return f"({test})" if wanted else f"COALESCE(NOT ({test}), TRUE)"
        case NumberFilter(column=column, operator=operator, limit=limit):
            if operator not in (">", ">=", "<", "<="):
                raise ValueError("not an operator")
            return f"{identifier(column)} {operator} {number(limit)}"


def _order(query: MetricQuery) -> str:
    way = "DESC" if query.descending else "ASC"
    if query.intent is Intent.TREND or query.order_by is OrderBy.TIME:
        return "g.entity ASC"
    value, previous = "g.value", "g.previous"
    if query.measure.additive:
        value, previous = "COALESCE(g.value, 0)", "COALESCE(g.previous, 0)"
    change = f"({value} - {previous})"
    if query.order_by is OrderBy.CHANGE:
        return f"{change} {way} NULLS LAST, g.entity ASC"
    if query.order_by is OrderBy.CHANGE_RATIO:
        ratio = f"{change} / NULLIF(ABS(CAST({previous} AS DOUBLE)), 0)"
        return f"{ratio} {way} NULLS LAST, {change} {way}, g.entity ASC"
    return f"g.value {way} NULLS LAST, g.entity ASC"
