"""Chooses what the rows of a question are grouped by."""

from dataclasses import dataclass, replace

from services.domain.metrics.lexicon import Kind
from services.domain.metrics.mentions import Mention
from services.domain.metrics.period import Grain, grain_name
from services.domain.metrics.query import Aggregation, Dimension, Fold, Measure, Rate
from services.domain.metrics.reading import Reading, beside, left_out
from services.domain.metrics.roles import Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """Holds what the rows are grouped by, and which groups the question is about."""

    dimension: Dimension | None = None
    """None for one number over all rows."""
    focus: tuple[str, ...] = ()
    """Groups that are named."""
    compared: bool = False
    """Whether the named groups stand side by side."""
    share: bool = False
    """Whether the part of the whole is asked for."""
    measure: Measure | None = None
    """The measure, when the grouping changes it: the highest single value."""
    unknown: Mention | None = None
    """A thing to group by that the data does not have."""
    notes: tuple[str, ...] = ()
    """What was assumed."""


def choose_grouping(reading: Reading, measure: Measure, used: list[Mention]) -> Grouping:
    """Return what to group by."""
    return _Grouper(reading, measure, used).choose()


class _Grouper:
    """Decides the grouping of one reading."""

    def __init__(self, reading: Reading, measure: Measure, used: list[Mention]) -> None:
        self._reading = reading
        self._cues = reading.cues
        self._measure = measure
        self._used = used

    def choose(self) -> Grouping:
        """Return what to group by."""
        named = self._named_groups()
        known = [mention for mention in named if mention.role is not None]
        compared = self._compared_values()
        if self._asks_share():
            return self._share(known, compared)
        if self._cues.grain is not None and not self._measured_by_step():
            return self._by_time(known)
        if "weekday" in self._cues and self._reading.catalog.axes:
            label = self._reading.pick(en="weekday", zh="星期")
            return Grouping(dimension=Dimension(label=label, weekday=True))
        if known:
            return self._by_column(known)
        if named and self._leads(named[0]):
            return Grouping(unknown=named[0])
        if compared is not None:
            return compared
        if "trend" in self._cues and self._reading.coverage is not None:
            return self._by_time([])
        return self._ungrouped()

    def _named_groups(self) -> list[Mention]:
        """Return the mentions of things to group by, the leading one first."""
        found = [
            mention
            for mention in self._reading.mentions
            if self._groups(mention) and not self._beside_its_value(mention)
        ]
        strong = [mention for mention in found if not mention.weak] or found
        return sorted(strong, key=lambda mention: not self._leads(mention))

    def _groups(self, mention: Mention) -> bool:
        if mention.value or any(mention is used for used in self._used):
            return False
        if mention.kind is Kind.DIMENSION:
            return True
        role = mention.role
        if role is None:
            return False
        if role.flag is not None:
            return (
                self._leads(mention)
                and "rate" not in self._cues
                and (beside(self._reading, mention, "breakdown"))
            )
        return (mention.concept is None and role.groupable and not role.measurable) or (
            mention.concept is None and role.groupable and self._leads(mention)
        )

    def _leads(self, mention: Mention) -> bool:
        """Tell whether `which`, `by` or `per` stands before the thing."""
        if beside(self._reading, mention, "which") or beside(self._reading, mention, "breakdown"):
            return True
        if beside(self._reading, mention, "top") or beside(self._reading, mention, "desc"):
            return True
        return beside(self._reading, mention, "asc")

    def _beside_its_value(self, mention: Mention) -> bool:
        """Tell `the North region` from `which region`."""
        if self._leads(mention) or mention.role is None:
            return False
        for value in self._reading.values:
            if value.role is None:
                continue
            same = value.role.column.name == mention.role.column.name
            # `Home Office customers` are the customers of a segment, no group to break down by.
            described = value.span.end <= mention.span.start and not self._cues.superlative
            if not (same or described):
                continue
            early, late = sorted((value.span, mention.span), key=lambda span: span.start)
            between = self._reading.text.lower[early.end : late.start]
            if len(between.strip(" -_:：=是的")) == 0:
                return True
        return False

    def _compared_values(self) -> Grouping | None:
        """Read `north vs south`: two or more values of one column, none of them left out."""
        by_column: dict[str, list[Mention]] = {}
        for mention in self._reading.values:
            if mention.role is not None and not left_out(self._reading, mention):
                by_column.setdefault(mention.role.column.name, []).append(mention)
        for mentions in by_column.values():
            values = tuple(dict.fromkeys(mention.value for mention in mentions))
            role = mentions[0].role
            if len(values) >= 2 and role is not None:
                return Grouping(dimension=self._dimension(role), focus=values, compared=True)
        return None

    def _asks_share(self) -> bool:
        if isinstance(self._measure.expression, Rate) or not self._measure.additive:
            return False
        return "share" in self._cues and not self._reading.cues.changing

    def _share(self, known: list[Mention], compared: Grouping | None) -> Grouping:
        values = self._reading.values
        if compared is not None:
            return replace(compared, share=True, compared=False)
        if known:
            grouping = self._by_column(known)
            focus = tuple(
                value.value for value in values
                if value.role and value.role.column.name == _column(grouping)
            )  # fmt: skip
            return replace(grouping, share=True, focus=focus)
        if values and values[-1].role is not None:
            focus_role = values[-1].role
            same = tuple(
                value.value
                for value in values
                if value.role is not None and value.role.column.name == focus_role.column.name
            )
            return Grouping(dimension=self._dimension(focus_role), focus=same, share=True)
        return self._by_default()

    def _by_column(self, known: list[Mention]) -> Grouping:
        role = known[0].role
        if role is None:
            return Grouping()
        dimension = self._dimension(role, known[0])
        others = {m.role.column.name for m in known[1:] if m.role is not None}
        others.discard(role.column.name)
        notes: tuple[str, ...] = ()
        if others:
            name = sorted(others)[0]
            notes = (
                self._reading.pick(
                    en=f"Rows are grouped by {role.column.name} only, not also by {name}.",
                    zh=f"仅按 {role.column.name} 分组，未同时按 {name} 分组。",
                ),
            )
        focus = tuple(
            value.value for value in self._reading.values
            if value.role is not None and value.role.column.name == role.column.name
            and not left_out(self._reading, value)
        )  # fmt: skip
        return Grouping(
            dimension=dimension, focus=focus, compared=len(set(focus)) >= 2, notes=notes
        )

    def _by_time(self, known: list[Mention]) -> Grouping:
        grain = self._cues.grain or self._trend_grain()
        label = grain_name(grain, self._reading.language)
        if grain is Grain.DAY and self._reading.language == "zh":
            label = "日期"
        notes: tuple[str, ...] = ()
        grouped = [mention for mention in known if mention.role is not None]
        if grouped and "breakdown" in self._cues:
            name = grouped[0].said
            notes = (
                self._reading.pick(
                    en=f"Rows are grouped by {label} only; ask again for each {name}.",
                    zh=f"仅按{label}分组；如需各{name}的数据请另行提问。",
                ),
            )
        return Grouping(dimension=Dimension(label=label, grain=grain), notes=notes)

    def _trend_grain(self) -> Grain:
        coverage = self._reading.coverage
        if coverage is None:
            return Grain.MONTH
        return coverage.trend_grain(self._reading.scope.period or coverage.whole())

    def _measured_by_step(self) -> bool:
        """Tell whether the step of time is already inside the measure: `average per month`."""
        return (
            any(
                mention.concept is not None
                and "average" in self._cues
                and mention.kind is Kind.MEASURE
                for mention in self._used
            )
            and not self._cues.superlative
            and "StepCount" in repr(self._measure.expression)
        )

    def _ungrouped(self) -> Grouping:
        """Group by what the question leaves open: the largest order, or the table's main group."""
        order = self._single_order()
        if order is not None:
            return Grouping(dimension=self._dimension(order))
        if "why" in self._cues and self._cues.changing:
            return self._where_it_changed()
        if self._cues.superlative and not self._cues.changing:
            return self._highest_value()
        if "overview" in self._cues and not self._reading.values:
            return self._by_default()
        return Grouping()

    def _where_it_changed(self) -> Grouping:
        """Answer `why` with the groups that changed most, which is all that the data can tell."""
        grouping = self._by_default()
        note = self._reading.pick(
            en="The data shows where it changed, not why.",
            zh="数据只能显示变化出现在哪里，不能说明原因。",
        )
        return replace(grouping, notes=(*grouping.notes, note))

    def _single_order(self) -> Role | None:
        for mention in self._reading.of_kind(Kind.DERIVED):
            about = mention.concept is not None and mention.concept.key == "orders"
            if about and self._cues.superlative and not any(mention is u for u in self._used):
                return self._reading.catalog.order_id()
        return None

    def _highest_value(self) -> Grouping:
        expression = self._measure.expression
        if not isinstance(expression, Fold) or "sold" in self._cues:
            return self._by_default()
        high = "asc" not in self._cues
        aggregation = Aggregation.MAX if high else Aggregation.MIN
        words = ("highest", "最高") if high else ("lowest", "最低")
        label = self._measure.label
        named = f"{words[1]}{label}" if self._reading.language == "zh" else f"{words[0]} {label}"
        fold = replace(expression, aggregation=aggregation)
        return Grouping(measure=replace(self._measure, expression=fold, label=named))

    def _by_default(self) -> Grouping:
        found = self._reading.catalog.dimensions()
        if not found:
            return Grouping()
        role = found[0]
        note = self._reading.pick(
            en=f"The question names no group; rows are grouped by {role.column.name}.",
            zh=f"问题没有指明分组，按 {role.column.name} 分组。",
        )
        return Grouping(dimension=self._dimension(role), notes=(note,))

    def _dimension(self, role: Role, mention: Mention | None = None) -> Dimension:
        label = role.label(self._reading.language, mention.said if mention else "")
        if mention is not None and mention.concept is None:
            label = mention.said
        return Dimension(label=label, column=role.column.name)


def _column(grouping: Grouping) -> str:
    return grouping.dimension.column if grouping.dimension else ""
