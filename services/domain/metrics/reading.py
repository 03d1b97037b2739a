"""Reads a question against one table: its times, its mentions, its cues, and what is left over."""

import re
from dataclasses import dataclass

from services.domain.metrics.coverage import Coverage
from services.domain.metrics.cues import Cues, find_cues
from services.domain.metrics.errors import NotUnderstoodError
from services.domain.metrics.lexicon import Kind
from services.domain.metrics.mentions import Mention, find_mentions
from services.domain.metrics.phrases import ordinary_han, ordinary_words
from services.domain.metrics.roles import Catalog, Role
from services.domain.metrics.scope import Scope, scope_of, time_spans
from services.domain.metrics.suggestion import example_question
from services.domain.metrics.text import Span, Text

_CLAUSE_END = re.compile(r"[.;?，。；？]|以外|之外")
_HAN_RUN = re.compile(r"[\u3400-\u9fff]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Holds what a question says about one table."""

    text: Text
    catalog: Catalog
    coverage: Coverage | None
    """The days of the data; None when it has no dates."""
    scope: Scope
    """The time that the question is about."""
    timed: bool
    """Whether the question speaks of a time, even if the data has none."""
    mentions: tuple[Mention, ...]
    """What it names, in order."""
    cues: Cues
    """What it wants done."""
    leftover: tuple[Span, ...]
    """Words that are none of these and not ordinary either."""
    crumbs: tuple[Span, ...] = ()
    """Single Chinese characters left over: too little to refuse for, enough to be said."""
    numbered: bool = False
    """Whether a number is left over, which may belong to a name: `Customer 137`."""
    language: str
    """The language of the answer: `en` or `zh`."""

    def of_kind(self, kind: Kind) -> list[Mention]:
        """Return the mentions of concepts of one kind."""
        return [mention for mention in self.mentions if mention.kind is kind and not mention.value]

    @property
    def values(self) -> list[Mention]:
        """Return the mentions of values."""
        return [mention for mention in self.mentions if mention.value]

    def pick(self, *, en: str, zh: str) -> str:
        """Return the sentence in the language of the answer."""
        return zh if self.language == "zh" else en

    def refusal(
        self, *, en: str, zh: str, kind: type[NotUnderstoodError] = NotUnderstoodError
    ) -> NotUnderstoodError:
        """Return the error of a question that cannot be answered, with one that can.

        Args:
            en: the problem in English.
            zh: the same in Chinese.
            kind: the error's class.
        """
        return kind(
            self.pick(en=en, zh=zh),
            columns=self.catalog.table.column_names,
            example=example_question(self.catalog, self.language),
        )

    @property
    def strength(self) -> int:
        """Tell how much of the question fits the table, to choose among tables."""
        sure = [m for m in self.mentions if (m.role is not None or m.value) and not m.weak]
        name = self.catalog.table.name.replace("_", " ")
        return 2 * len(sure) + (3 if self.text.find(name) else 0) - len(self.leftover)


def read(question: str, catalog: Catalog, coverage: Coverage | None, language: str) -> Reading:
    """Read a question against a table."""
    text = Text.of(question)
    spans = time_spans(text)
    before = find_cues(text, spans)
    scope = Scope(spans=spans)
    if coverage is not None:
        scope = scope_of(text, coverage, changing=before.changing, language=language)
    mentions = find_mentions(text, catalog, scope.spans)
    certain = [mention.span for mention in mentions if _holds(mention)]
    cues = find_cues(text, (*_of_moments(scope.spans, text), *certain))
    used = (*scope.spans, *(mention.span for mention in mentions), *cues.all_spans)
    return Reading(
        text=text,
        catalog=catalog,
        coverage=coverage,
        scope=scope,
        timed=bool(spans) or cues.grain is not None or "trend" in cues or "weekday" in cues,
        mentions=mentions,
        cues=cues,
        leftover=tuple(_leftover(text, used)),
        crumbs=tuple(span for span in _han_rest(text, used) if len(span) == 1),
        numbered=any(
            word.stem.isdigit() and not any(word.span.overlaps(span) for span in used)
            for word in text.words
        ),
        language=language,
    )


def _holds(mention: Mention) -> bool:
    """Tell whether a mention keeps its words from being read as a cue: values and column names."""
    if mention.value:
        return True
    if mention.weak:
        return False
    return mention.concept is None or mention.concept.kind is not Kind.DERIVED


def _of_moments(spans: tuple[Span, ...], text: Text) -> tuple[Span, ...]:
    """Leave words like `year over year` and 同比 to the cues, which read a change in them."""
    return tuple(
        span
        for span in spans
        if not re.search(r"over|[yqm]o[yqm]|同比|环比|同期", text.lower[span.start : span.end])
    )


def _leftover(text: Text, used: tuple[Span, ...]) -> list[Span]:
    free = [
        word.span
        for word in text.words
        if not any(word.span.overlaps(span) for span in used)
        and not word.stem.isdigit()
        and text.lower[word.span.start : word.span.end] not in ordinary_words()
        and word.stem not in ordinary_words()
        and len(word.stem) > 1
    ]
    free += [span for span in _han_rest(text, used) if len(span) >= 2]
    return sorted(free, key=lambda span: span.start)


def _han_rest(text: Text, used: tuple[Span, ...]) -> list[Span]:
    """Return the Chinese that means nothing here and is not ordinary either."""
    masked = list(text.lower)
    for span in used:
        masked[span.start : span.end] = " " * len(span)
    rest = ordinary_han().sub(lambda found: " " * len(found.group()), "".join(masked))
    return [Span(found.start(), found.end()) for found in _HAN_RUN.finditer(rest)]


def joined(spans: tuple[Span, ...], text: Text) -> list[str]:
    """Return left-over words, neighbours together, as they were written."""
    found: list[Span] = []
    for span in spans:
        last = found[-1] if found else None
        if last is not None and not text.original[last.end : span.start].strip(" '-"):
            found[-1] = Span(last.start, span.end)
        else:
            found.append(span)
    return [text.part(span) for span in found]


def beside(reading: Reading, mention: Mention, name: str, gap: str = r"[\s的]*") -> bool:
    """Tell whether a cue stands right before the mention, with only small words between."""
    small = re.compile(rf"(?:{gap}|\s|the|our|all|different|unique|distinct|total|各|个|种)*")
    for span in reading.cues.spans(name):
        if span.end <= mention.span.start and small.fullmatch(
            reading.text.lower[span.end : mention.span.start]
        ):
            return True
    return False


def follows(reading: Reading, mention: Mention, name: str) -> bool:
    """Tell whether a cue stands right after the mention."""
    for span in reading.cues.spans(name):
        between = reading.text.lower[mention.span.end : span.start]
        if span.start >= mention.span.end and not between.strip(" -'s的"):
            return True
    return False


def left_out(reading: Reading, mention: Mention) -> bool:
    """Tell whether the question leaves a value out: `except Toys`, 除了家电."""
    before = reading.text.lower[: mention.span.start]
    for span in reading.cues.spans("exclude"):
        between = before[span.end :]
        near = span.end <= mention.span.start and len(between) < 40
        if near and not _CLAUSE_END.search(between):
            return True
    return False


def unlisted_columns(catalog: Catalog) -> tuple[str, ...]:
    """Return the text columns whose values are too many to be in the profile."""
    return tuple(
        role.column.name
        for role in catalog.roles
        if _unlisted(role) and role.flag is None and role.column.distinct_count > 0
    )


def _unlisted(role: Role) -> bool:
    return role.column.type.value == "text" and not role.column.values
