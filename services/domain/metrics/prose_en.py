"""Writes an English answer from facts."""

from services.domain.metrics.comparing import adds_up, as_low, other_way, same_way, whole_steps
from services.domain.metrics.facts import Facts
from services.domain.metrics.numbers import (
    change_text,
    percent_text,
    signed_percent_text,
)
from services.domain.metrics.query import (
    Intent,
    OrderBy,
)
from services.domain.metrics.words_en import (
    capital,
    change_of,
    counts,
    enumerated,
    faster,
    plural,
    share_of,
    signed_change,
    some,
    thing,
    top_of,
    value_of,
    when,
    whose,
)

_NAMED = 3


def headline(facts: Facts) -> str:
    """Return the sentence that answers the question."""
    match facts.query.intent:
        case Intent.TOTAL:
            return _total(facts)
        case Intent.GROWTH:
            return _growth(facts)
        case Intent.TREND:
            return _trend(facts)
        case Intent.SHARE:
            return _share(facts)
        case Intent.COMPARE if len(facts.groups) == 2:
            return _compare(facts)
        case Intent.COMPARE | Intent.BREAKDOWN:
            return _breakdown(facts)
        case _:
            return _rank(facts)


def support(facts: Facts) -> list[str]:
    """Return the sentences that stand behind it."""
    match facts.query.intent:
        case Intent.TOTAL:
            rows = plural("row", facts.total.row_count)
            return [f"It is computed from {facts.total.row_count:,} {rows}."]
        case Intent.GROWTH:
            return _growth_support(facts)
        case Intent.TREND:
            return _trend_support(facts)
        case _:
            return _rank_support(facts)


def nothing(facts: Facts) -> str:
    """Say that no row matched."""
    coverage = facts.query.coverage
    limit = facts.query.group_limit
    if limit is not None and facts.query.dimension is not None:
        what = f"{facts.query.measure.label} {limit.operator} {limit.limit:,g}"
        return f"No {facts.query.dimension.label} has {what}{when(facts.query)}."
    runs = (
        f" The data runs from {coverage.first.isoformat()} to {coverage.last.isoformat()}."
        if coverage
        else ""
    )
    return f"There are no rows{whose(facts.query)}{when(facts.query)}.{runs}"


def title(facts: Facts) -> str:
    """Return a title for the chart and the report."""
    query = facts.query
    by = f" by {query.dimension.label}" if query.dimension else ""
    when = f", {query.period.name('en')}" if query.period else ""
    return f"{capital(query.measure.label)}{by}{when}"


def _total(facts: Facts) -> str:
    query, total = facts.query, facts.total
    label = f"{capital(query.measure.label)}{whose(query)}"
    value = value_of(facts, total.value)
    if query.comparison is None:
        many = query.measure.label.endswith("s") and not query.measure.label.startswith("number of")
        return f"{label}{when(query)} {'were' if many else 'was'} {value}."
    before = f"{value_of(facts, total.previous)} in {query.comparison.full_name('en')}"
    if total.change is None or total.value is None:
        return f"{label}{when(query)} was {value}; it was {before}."
    if total.change == 0:
        return f"{label} did not change: {value}{when(query)}, as in {query.comparison.name('en')}."
    verb = "rose" if total.change > 0 else "fell"
    by = change_of(facts, total)
    return f"{label} {verb} by {by} to {value}{when(query)}, from {before}."


def _rank(facts: Facts) -> str:
    query, first = facts.query, facts.headline
    names = [first.name, *(group.name for group in facts.ties)]
    most = top_of(query, first=True)
    share = f", {percent_text(first.share)} of the total" if first.share is not None else ""
    value = value_of(facts, first.value)
    if len(names) > 1:
        return f"{some(names)} tie for {most}{whose(query)}{when(query)}, each with {value}."
    return f"{first.name} had {most}{whose(query)}{when(query)}: {value}{share}."


def _breakdown(facts: Facts) -> str:
    query = facts.query
    label = query.dimension.label if query.dimension else "group"
    shown = enumerated([f"{g.name} {value_of(facts, g.value)}" for g in facts.shown])
    return f"{capital(query.measure.label)} by {label}{whose(query)}{when(query)}: {shown}."


def _compare(facts: Facts) -> str:
    query, one, two = facts.query, facts.groups[0], facts.groups[1]
    label = query.measure.label
    if one.value is None or two.value is None:
        return _rank(facts)
    gap = one.value - two.value
    if gap == 0:
        value = value_of(facts, one.value)
        return f"{one.name} and {two.name} had the same {label}{when(query)}: {value} each."
    more = ("more" if gap > 0 else "less") if counts(query) else ("higher" if gap > 0 else "lower")
    ratio = f" ({signed_percent_text(gap / abs(two.value))})" if two.value else ""
    by = change_text(query.measure, gap, "en")
    numbers = f"{value_of(facts, one.value)} against {value_of(facts, two.value)}"
    return (
        f"{one.name} had {more} {label} than {two.name}{when(query)}: {numbers}, "
        f"a difference of {by}{ratio}."
    )


def _share(facts: Facts) -> str:
    query, first = facts.query, facts.headline
    label = query.measure.label
    whole = value_of(facts, facts.total.value)
    focus = [g for g in facts.groups if g.name in query.focus]
    if len(focus) > 1:
        shown = enumerated([f"{g.name} {share_of(g)} ({value_of(facts, g.value)})" for g in focus])
        return f"Shares of {label}{whose(query)}{when(query)}: {shown}, of {whole}."
    if first.share is None:
        return _rank(facts)
    value = value_of(facts, first.value)
    part = f"{first.name} made up {percent_text(first.share)} of {label}"
    return f"{part}{whose(query)}{when(query)}: {value} of {whole}."


def _growth(facts: Facts) -> str:
    query, first = facts.query, facts.headline
    if not facts.groups or first.change is None or query.comparison is None:
        return _rank(facts)
    label, up = query.measure.label, query.descending
    falling = first.change < 0
    before = value_of(facts, first.previous)
    to = (
        f"to {value_of(facts, first.value)}{when(query)}, "
        f"from {before} in {query.comparison.full_name('en')}"
    )
    by = change_of(facts, first)
    way = faster(query)
    if first.change == 0:
        return f"No {thing(query)} changed its {label}{whose(query)}{when(query)}: {to}."
    verb = "fell" if falling else "rose"
    names = [first.name, *(group.name for group in facts.ties)]
    if len(names) > 1:
        return f"{some(names)} changed by the same amount: {label} {verb} by {by}{when(query)}."
    if falling == up:
        kind, least = ("grew", "fell") if up else ("fell", "grew")
        return (
            f"No {thing(query)} {kind}; {first.name} {least} least: "
            f"its {label}{whose(query)} {verb} by {by} {to}."
        )
    return (
        f"{first.name} {'grew' if up else 'fell'} {way}: its {label}{whose(query)} {verb} "
        f"by {by} {to}."
    )


def _growth_support(facts: Facts) -> list[str]:
    query = facts.query
    said = []
    others = [g for g in facts.groups[1:_NAMED] if same_way(facts.headline, g)]
    if others:
        listed = enumerated([f"{g.name} ({signed_change(facts, g)})" for g in others])
        said.append(f"Next came {listed}.")
    other = other_way(facts)
    if other is not None and other.change_ratio is not None:
        if query.order_by is OrderBy.CHANGE:
            said.append(
                f"Measured in percent, {other.name} changed most: "
                f"{signed_percent_text(other.change_ratio)}."
            )
        else:
            said.append(
                f"In absolute terms, {other.name} changed most: {signed_change(facts, other)}."
            )
    new = [g.name for g in facts.groups if g.new]
    if new:
        said.append(f"New, without any {query.measure.label} before: {enumerated(new[:5])}.")
    total = facts.total
    if total.change is not None and query.comparison is not None:
        verb = "rose" if total.change > 0 else "fell" if total.change < 0 else "stayed"
        by = f" by {change_of(facts, total)}" if total.change else ""
        said.append(f"Overall, {query.measure.label} {verb}{by} to {value_of(facts, total.value)}.")
    return said + _unnamed(facts)


def _trend(facts: Facts) -> str:
    query = facts.query
    if not facts.groups:
        return nothing(facts)
    if query.ranked:
        return _best_step(facts)
    whole = whole_steps(facts)
    first, last = whole[0], whole[-1]
    label = f"{capital(query.measure.label)}{whose(query)}"
    if len(whole) == 1:
        value = value_of(facts, first.value)
        return f"{label} in {first.name} was {value}; there is no other whole {thing(query)}."
    text = (
        f"{label} went from {value_of(facts, first.value)} in {first.name} "
        f"to {value_of(facts, last.value)} in {last.name}"
    )
    if first.value and last.value is not None:
        text += f" ({signed_percent_text((last.value - first.value) / abs(first.value))})"
    return f"{text}."


def _best_step(facts: Facts) -> str:
    """Answer which step grew or fell most from the one before."""
    query = facts.query
    scored = [g for g in facts.groups if g.change is not None and not g.partial]
    if not scored:
        return nothing(facts)
    pick = max if query.descending else min
    best = pick(scored, key=lambda group: group.change or 0.0)
    verb = "rose" if (best.change or 0) > 0 else "fell"
    return (
        f"{best.name} changed most: {query.measure.label}{whose(query)} {verb} by "
        f"{change_of(facts, best)} to {value_of(facts, best.value)}, from "
        f"{value_of(facts, best.previous)} the {thing(query)} before."
    )


def _trend_support(facts: Facts) -> list[str]:
    known = [g for g in whole_steps(facts) if g.value is not None]
    said = []
    if len(known) > 2:
        high = max(known, key=lambda group: group.value or 0.0)
        low = min(known, key=lambda group: group.value or 0.0)
        said.append(
            f"The highest was {high.name} with {value_of(facts, high.value)}, "
            f"the lowest {low.name} with {value_of(facts, low.value)}."
        )
    if facts.query.measure.additive:
        count = len(facts.groups)
        said.append(
            f"All {count} {plural(thing(facts.query), count)} together: "
            f"{value_of(facts, facts.total.value)}."
        )
    return said + _cut_steps(facts)


def _cut_steps(facts: Facts) -> list[str]:
    cut = [group for group in facts.groups if group.partial]
    if not cut:
        return []
    listed = enumerated([f"{group.name} ({value_of(facts, group.value)})" for group in cut[:3]])
    return [f"Not complete: {listed}."]


def _rank_support(facts: Facts) -> list[str]:
    query = facts.query
    said = []
    ranked = query.intent in (Intent.RANK, Intent.SHARE)
    others = [g for g in facts.shown if g is not facts.headline and g not in facts.ties]
    limit = max(_NAMED - 1, query.limit - 1 if query.limit < 10 else 0)
    limit = 5 if query.intent is Intent.SHARE else limit
    if ranked and others:
        listed = enumerated([f"{g.name} ({value_of(facts, g.value)})" for g in others[:limit]])
        said.append(f"{'Next came' if query.intent is Intent.RANK else 'The others:'} {listed}.")
    if query.intent is Intent.RANK and facts.complete and len(facts.groups) > limit + 1:
        last = next((g for g in reversed(facts.groups) if not g.partial), facts.groups[-1])
        most, value = top_of(query, first=False), value_of(facts, last.value)
        same = len(as_low(facts, last))
        if same == 1:
            said.append(f"{last.name} had {most}: {value}.")
        else:
            said.append(f"{same} {plural(thing(query), same)} had {most}: {value}.")
    if facts.group_count > 1 and facts.named_total is not None and adds_up(query):
        whole = value_of(facts, facts.named_total)
        things = f"{facts.group_count:,} {plural(thing(query), facts.group_count)}"
        if query.measure.additive:
            said.append(f"All {things} together: {whole}.")
        else:
            said.append(f"Over all {things} it is {whole}.")
    return said + _unnamed(facts) + _cut_steps(facts)


def _unnamed(facts: Facts) -> list[str]:
    if not facts.unnamed_count or facts.query.dimension is None:
        return []
    label, count = facts.query.dimension.label, facts.unnamed_count
    rows = "1 row has" if count == 1 else f"{count:,} rows have"
    return [f"{rows} no {label} and {'is' if count == 1 else 'are'} in no group."]
