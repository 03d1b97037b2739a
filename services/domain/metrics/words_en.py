"""Puts numbers, periods and names of facts into English words."""

from services.domain.metrics.facts import Facts, Group
from services.domain.metrics.numbers import (
    change_text,
    percent_text,
    signed_percent_text,
    value_text,
)
from services.domain.metrics.query import (
    FlagFilter,
    MetricQuery,
    NumberFilter,
    OrderBy,
    Unit,
    ValueFilter,
)

_MOST_NAMES = 5


def value_of(facts: Facts, value: float | None) -> str:
    """Print a value of the facts."""
    return value_text(facts.query.measure, value, "en")


def change_of(facts: Facts, group: Group) -> str:
    """Print the size of a change, and its percentage."""
    by = change_text(facts.query.measure, group.change or 0.0, "en")
    if group.change_ratio is None or facts.query.measure.unit is Unit.RATIO:
        return f"{by} (new)" if group.new else by
    return f"{by} ({signed_percent_text(group.change_ratio)})"


def signed_change(facts: Facts, group: Group) -> str:
    """Print a change with its sign, and its percentage."""
    sign = "+" if (group.change or 0) > 0 else "−" if (group.change or 0) < 0 else ""
    by = sign + change_text(facts.query.measure, group.change or 0.0, "en")
    if group.change_ratio is None or facts.query.measure.unit is Unit.RATIO:
        return f"{by}, new" if group.new else by
    return f"{by}, {signed_percent_text(group.change_ratio)}"


def share_of(group: Group) -> str:
    """Print the part of the whole."""
    return percent_text(group.share) if group.share is not None else "–"


def when(query: MetricQuery) -> str:
    """Name the days that the answer is about."""
    if query.period is not None:
        name = query.period.full_name("en")
        bare = name == query.period.dates("en")
        return f" {('from' if ' to ' in name else 'on') if bare else 'in'} {name}"
    if query.coverage is not None:
        first, last = query.coverage.first.isoformat(), query.coverage.last.isoformat()
        return f" over all data ({first} to {last})"
    return ""


def whose(query: MetricQuery) -> str:
    """Name the rows that the answer is about."""
    parts = []
    for found in query.filters:
        match found:
            case ValueFilter(column=column, values=values, excluded=excluded) if set(values) != set(
                query.focus
            ):
                # `North` speaks for itself, `A` does not.
                what = f"{column} " if any(len(value) < 3 for value in values) else ""
                parts.append(f"{'without' if excluded else 'for'} {what}{enumerated(list(values))}")
            case FlagFilter(label=label, wanted=wanted):
                parts.append(f"({'' if wanted else 'not '}{label} only)")
            case NumberFilter(column=column, operator=operator, limit=limit):
                parts.append(f"({column or query.measure.label} {operator} {limit:,g} only)")
            case _:
                pass
    return "".join(f" {part}" for part in parts)


def thing(query: MetricQuery) -> str:
    """Return what a group is called."""
    return query.dimension.label if query.dimension else "group"


def counts(query: MetricQuery) -> bool:
    """Tell whether one says `most` of the measure, and not `highest`."""
    label = query.measure.label
    return label in ("orders", "units", "visits") or (
        query.measure.unit is Unit.COUNT and not label.startswith("number of")
    )


def top_of(query: MetricQuery, *, first: bool) -> str:
    """Name the top or the bottom of a ranking."""
    high = query.descending == first
    if counts(query):
        return f"the {'most' if high else 'fewest'} {query.measure.label}"
    return f"the {'highest' if high else 'lowest'} {query.measure.label}"


def faster(query: MetricQuery) -> str:
    """Return the word for the top of a ranking by growth."""
    return "fastest" if query.order_by is OrderBy.CHANGE_RATIO else "most"


def enumerated(items: list[str]) -> str:
    """Join names to a list."""
    if len(items) <= 1:
        return "".join(items)
    return f"{', '.join(items[:-1])} and {items[-1]}"


def capital(text: str) -> str:
    """Begin a sentence with the text."""
    return text[:1].upper() + text[1:]


def plural(label: str, count: int) -> str:
    """Return the plural of a label, unless there is one only."""
    if count == 1 or (label.endswith("s") and not label.endswith(("us", "ss"))):
        return label
    if label.endswith("y") and label[-2:-1] not in "aeiou":
        return label[:-1] + "ies"
    return label + ("es" if label.endswith(("ch", "sh", "x", "us", "ss")) else "s")


def some(names: list[str]) -> str:
    """List a few of many names."""
    if len(names) <= _MOST_NAMES:
        return enumerated(names)
    return f"{', '.join(names[:_MOST_NAMES])} and {len(names) - _MOST_NAMES:,} more"
