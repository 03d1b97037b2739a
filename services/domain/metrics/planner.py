"""Turns a reading of a question into one query."""

from services.domain.metrics.conditions import Condition, condition_of, refuse_of_groups
from services.domain.metrics.coverage import Coverage
from services.domain.metrics.errors import NoDateColumnError, NotUnderstoodError
from services.domain.metrics.grouping import Grouping, choose_grouping
from services.domain.metrics.lexicon import Kind
from services.domain.metrics.measuring import Measuring
from services.domain.metrics.mentions import Mention
from services.domain.metrics.period import Grain, Period
from services.domain.metrics.query import (
    Filter,
    FlagFilter,
    Fold,
    Intent,
    Measure,
    MetricQuery,
    NumberFilter,
    OrderBy,
    Rate,
    ValueFilter,
)
from services.domain.metrics.reading import Reading, beside, joined, left_out
from services.domain.metrics.unknown import refuse_unknown

DEFAULT_LIMIT = 10
MAX_LIMIT = 50


def plan(reading: Reading) -> MetricQuery:
    """Return the query that answers the question.

    Raises:
        NotUnderstoodError: it names nothing that the data has; the error names what there is.
        NoDateColumnError: it speaks of a time, and the data has no dates.
    """
    _need_something(reading)
    if reading.timed and reading.coverage is None:
        raise reading.refusal(
            en="the question speaks of a time, and the data has no column with dates",
            zh="问题涉及时间，但数据中没有日期列",
            kind=NoDateColumnError,
        )
    if "future" in reading.cues and reading.coverage is not None:
        raise _about_future(reading, reading.coverage)
    condition = condition_of(reading)
    if condition is not None:
        reading = condition.without(reading)
    measuring = Measuring(reading)
    measure = measuring.choose()
    grouping = choose_grouping(reading, measure, measuring.used)
    refuse_of_groups(reading, condition, grouping)
    refuse_unknown(reading, measuring, grouping)
    return _Planner(reading, measuring, measure, grouping, condition).query()


def _about_future(reading: Reading, coverage: Coverage) -> NotUnderstoodError:
    last = coverage.last.isoformat()
    return reading.refusal(
        en=f"the data ends on {last} and tells nothing about later days",
        zh=f"数据截至{last}，无法说明之后的情况",
    )


def _need_something(reading: Reading) -> None:
    """Refuse a question that has nothing to do with the table."""
    known = [m for m in reading.mentions if (m.role is not None or m.value) and not m.weak]
    counted = any(
        m.concept is not None and m.concept.kind is Kind.DERIVED for m in reading.mentions
    )
    asked = reading.timed and ("overview" in reading.cues or reading.cues.changing)
    stepped = reading.cues.grain is not None or reading.scope.comparison is not None
    asked = asked or (stepped and not reading.leftover)
    if known or counted or "overview" in reading.cues or "sold" in reading.cues or asked:
        return
    made = any(m.concept is not None and m.concept.kind is Kind.MEASURE for m in reading.mentions)
    if made:
        return
    raise reading.refusal(
        en="nothing in the question names a column or a value of the data",
        zh="问题没有提到数据中的任何列或取值",
    )


class _Planner:
    """Puts measure, grouping, time and filters together."""

    def __init__(
        self,
        reading: Reading,
        measuring: Measuring,
        measure: Measure,
        grouping: Grouping,
        condition: Condition | None,
    ) -> None:
        self._reading = reading
        self._cues = reading.cues
        self._measuring = measuring
        self._measure = grouping.measure or measure
        self._grouping = grouping
        self._condition = condition
        self._notes = [*measuring.notes, *grouping.notes]

    def query(self) -> MetricQuery:
        """Return the whole query."""
        intent = self._intent()
        period, comparison = self._times(intent)
        if intent is Intent.GROWTH and comparison is None:
            intent = Intent.RANK
        axis = self._reading.catalog.axes[0] if self._reading.catalog.axes else None
        if period is not None and axis is not None and len(self._reading.catalog.axes) > 1:
            self._note(en=f"Dates are those of {axis.label}.", zh=f"日期取自列 {axis.label}。")
        filters = self._filters(intent)
        self._note_leftover()
        self._note_nulls()
        return MetricQuery(
            table=self._reading.catalog.table.name,
            intent=intent,
            measure=self._measure,
            dimension=self._grouping.dimension,
            axis=axis,
            coverage=self._reading.coverage,
            period=period,
            comparison=comparison,
            filters=filters,
            focus=self._grouping.focus,
            order_by=self._order_by(intent),
            descending=self._descending(intent),
            limit=self._limit(intent),
            ranked=self._cues.superlative,
            language=self._reading.language,
            notes=(*self._reading.scope.notes, *dict.fromkeys(self._notes)),
        )

    def _intent(self) -> Intent:
        dimension = self._grouping.dimension
        changing = self._growing()
        if dimension is not None and (dimension.grain is not None or dimension.weekday):
            if self._cues.superlative and not changing:
                return Intent.RANK
            return Intent.BREAKDOWN if dimension.weekday else Intent.TREND
        if dimension is None:
            return Intent.TOTAL
        if self._grouping.share:
            return Intent.SHARE
        if changing:
            return Intent.GROWTH
        if self._grouping.compared:
            return Intent.COMPARE
        if self._cues.superlative:
            return Intent.RANK
        return Intent.GROWTH if self._reading.scope.comparison else Intent.BREAKDOWN

    def _growing(self) -> bool:
        cues, scope = self._cues, self._reading.scope
        if "up" in cues or "down" in cues or scope.year_earlier or scope.previous:
            return self._reading.coverage is not None
        timed = scope.period is not None or scope.comparison is not None
        return "change" in cues and timed and not self._grouping.compared

    def _times(self, intent: Intent) -> tuple[Period | None, Period | None]:
        scope, coverage = self._reading.scope, self._reading.coverage
        period, comparison = scope.period, scope.comparison
        if coverage is None:
            return None, None
        if intent is Intent.TREND:
            return period, None
        if self._growing() and comparison is None:
            if period is None:
                period = self._latest()
            comparison = period.year_earlier() if scope.year_earlier else period.previous()
        if period is None or comparison is None:
            return period, None
        self._note_partial(period, comparison)
        # Without a single row to compare with, everything would look new.
        return period, comparison if coverage.touches(comparison) else None

    def _latest(self) -> Period:
        """Choose the period of a question about growth that names none."""
        coverage, scope = self._reading.coverage, self._reading.scope
        if coverage is None:
            raise ValueError("there are no dates")
        grain = coverage.best_grain()
        if scope.year_earlier:
            year = coverage.last_complete(Grain.YEAR)
            both = coverage.covers(year) and coverage.covers(year.previous())
            grain = Grain.YEAR if both else Grain.QUARTER
            if not both and not coverage.touches(
                coverage.last_complete(Grain.QUARTER).year_earlier()
            ):
                grain = Grain.MONTH
        period = coverage.last_complete(grain)
        self._note(
            en=f"The question names no period; {period.full_name('en')} is the last complete "
            f"{grain.value} in the data.",
            zh=f"问题没有指明时间，按数据中最后一个完整的时间段计算：{period.full_name('zh')}。",
        )
        return period

    def _note_partial(self, period: Period, comparison: Period) -> None:
        coverage = self._reading.coverage
        if coverage is None:
            return
        first = coverage.first.isoformat()
        if not coverage.touches(comparison):
            self._note(
                en=f"The data has no rows for {comparison.full_name('en')}: it begins on {first} "
                f"and ends on {coverage.last.isoformat()}; a change cannot be computed.",
                zh=f"数据中没有{comparison.full_name('zh')}的记录（数据从{first}到"
                f"{coverage.last.isoformat()}），无法计算变化。",
            )
        elif not coverage.begins_by(comparison.start):
            self._note(
                en=f"The data begins on {first}, so {comparison.full_name('en')} is not complete.",
                zh=f"数据从{first}开始，{comparison.full_name('zh')}不完整。",
            )
        if period.to_date:
            self._note(
                en=f"{period.name('en')} is compared with the same days before, "
                f"{comparison.dates('en')}.",
                zh=f"{period.name('zh')}与之前相同的天数（{comparison.dates('zh')}）比较。",
            )

    def _filters(self, intent: Intent) -> tuple[Filter, ...]:
        found: list[Filter] = []
        by_column: dict[tuple[str, bool], list[str]] = {}
        for mention in self._reading.values:
            if mention.role is None or self._is_focus(mention, intent):
                continue
            key = (mention.role.column.name, left_out(self._reading, mention))
            by_column.setdefault(key, []).append(mention.value)
        for (column, excluded), values in by_column.items():
            found.append(
                ValueFilter(column=column, values=tuple(dict.fromkeys(values)), excluded=excluded)
            )
        found += self._flag_filters()
        found += self._number_filters()
        return tuple(found)

    def _is_focus(self, mention: Mention, intent: Intent) -> bool:
        """Tell whether the value is looked at beside the others, instead of alone."""
        dimension = self._grouping.dimension
        if intent is not Intent.SHARE or dimension is None or mention.role is None:
            return False
        return mention.role.column.name == dimension.column and mention.value in (
            self._grouping.focus
        )

    def _flag_filters(self) -> list[FlagFilter]:
        found = []
        for mention in self._reading.mentions:
            role = mention.role
            if role is None or role.flag is None or mention.value or self._is_measure(mention):
                continue
            expression = self._measure.expression
            if isinstance(expression, Rate) and expression.column == role.column.name:
                continue
            dimension = self._grouping.dimension
            if dimension is not None and dimension.column == role.column.name:
                continue
            wanted = not (beside(self._reading, mention, "not", r"[\s被a-z]{0,8}")
                          or left_out(self._reading, mention))  # fmt: skip
            found.append(
                FlagFilter(
                    column=role.column.name, flag=role.flag, label=mention.said, wanted=wanted
                )
            )
        return found[:1] if len({f.column for f in found}) == 1 else found

    def _is_measure(self, mention: Mention) -> bool:
        return any(mention is used for used in self._measuring.used)

    def _number_filters(self) -> list[NumberFilter]:
        limit = self._cues.limit
        if limit is None:
            return []
        if self._condition is not None:
            column = self._condition.column
            return [NumberFilter(column=column, operator=limit.operator, limit=limit.limit)]
        expression = self._measure.expression
        if self._grouping.dimension is not None:
            return [
                NumberFilter(column="", operator=limit.operator, limit=limit.limit, grouped=True)
            ]
        if isinstance(expression, Fold) and not expression.times:
            column = expression.column
        else:
            role = next(
                (m.role for m in self._reading.mentions if m.role and m.role.measurable),
                self._reading.catalog.measure("revenue"),
            )
            if role is None:
                self._note(
                    en=f"The limit {limit.limit:g} fits no column and is not used.",
                    zh=f"条件 {limit.limit:g} 没有对应的列，未使用。",
                )
                return []
            column = role.column.name
        return [NumberFilter(column=column, operator=limit.operator, limit=limit.limit)]

    def _order_by(self, intent: Intent) -> OrderBy:
        if intent is Intent.TREND:
            return OrderBy.TIME
        if (
            intent is Intent.BREAKDOWN
            and self._grouping.dimension
            and (self._grouping.dimension.weekday)
        ):
            return OrderBy.TIME
        if intent is not Intent.GROWTH:
            return OrderBy.VALUE
        return OrderBy.CHANGE_RATIO if "relative" in self._cues else OrderBy.CHANGE

    def _descending(self, intent: Intent) -> bool:
        if intent is Intent.GROWTH:
            falling = "down" in self._cues and "up" not in self._cues
            least = "asc" in self._cues and "desc" not in self._cues
            return not (falling ^ least)
        if self._cues.from_bottom:
            return False
        asc, desc = self._cues.spans("asc"), self._cues.spans("desc")
        if asc and desc:
            return desc[0].start < asc[0].start
        return not asc or "frequent" in self._cues

    def _limit(self, intent: Intent) -> int:
        if intent is Intent.TREND:
            return MAX_LIMIT
        return min(self._cues.top_count or DEFAULT_LIMIT, MAX_LIMIT)

    def _note_leftover(self) -> None:
        words = joined(
            tuple(sorted((*self._reading.leftover, *self._reading.crumbs), key=lambda s: s.start)),
            self._reading.text,
        )
        if words:
            listed = ", ".join(f"“{word}”" for word in words[:4])
            self._note(
                en=f"These words match nothing in the data and were not used: {listed}.",
                zh=f"以下词语与数据无关，未被使用：{listed}。",
            )

    def _note_nulls(self) -> None:
        """Say when values are missing, because a spreadsheet may count them otherwise."""
        expression = self._measure.expression
        if not isinstance(expression, Fold):
            return
        column = self._reading.catalog.role(expression.column).column
        if column.null_count:
            rows = self._reading.catalog.table.row_count
            self._note(
                en=f"{column.name} is empty in {column.null_count:,} of {rows:,} rows; these are "
                "left out.",
                zh=f"{column.name} 在 {rows:,} 行中有 {column.null_count:,} 行为空，未计入。",
            )

    def _note(self, *, en: str, zh: str) -> None:
        self._notes.append(self._reading.pick(en=en, zh=zh))
