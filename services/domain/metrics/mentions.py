"""Finds what a question names: columns, concepts and values of the data."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from services.domain.metrics.lexicon import Concept, Kind, concepts
from services.domain.metrics.roles import Catalog, Role
from services.domain.metrics.schema import ColumnType
from services.domain.metrics.text import Span, Text, has_han

_QUOTES = "\"'“”‘’「」`"
_HAN_TAIL = re.compile(r"(?:地区|大区|区域|区|省|市|类|部|店)$")
_COMMON_VALUES = {
    "yes", "no", "y", "n", "true", "false", "t", "f", "all", "other", "others", "none", "na", "n/a",
    "new", "in", "on", "a", "i", "up", "us", "it", "is", "or", "and", "the", "total", "was", "是",
    "否",
    "best", "top", "most", "low", "high", "medium", "first", "last", "by", "of", "any", "其他",
    "无", "有",
}  # fmt: skip
"""Values that are ordinary words: they count only in quotes or beside their column's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """Is one thing that the question names."""

    span: Span
    """Where it stands."""
    said: str
    """As it was written."""
    role: Role | None = None
    """The column, when one was named or stands for the concept."""
    concept: Concept | None = None
    """The concept."""
    value: str = ""
    """The value of the column, when a value was named."""
    weak: bool = False
    """Whether the word often means nothing in particular."""

    @property
    def kind(self) -> Kind | None:
        """Return what the concept is good for."""
        return self.concept.kind if self.concept else None


def find_mentions(text: Text, catalog: Catalog, taken: Iterable[Span]) -> tuple[Mention, ...]:
    """Return the mentions in the order of the question; of two that overlap, the longer.

    `taken` are the places that already mean something else, such as a time.
    """
    used = tuple(taken)
    candidates = list(_candidates(text, catalog))
    values = [mention.span for _, mention in candidates if mention.value and has_han(mention.value)]
    cut = [(priority, _before_value(text, mention, values)) for priority, mention in candidates]
    found = [
        (-len(mention.span), priority, mention.span.start, number, mention)
        for number, (priority, mention) in enumerate(cut)
        if not any(mention.span.overlaps(span) for span in used)
    ]
    kept: list[Mention] = []
    for *_, mention in sorted(found, key=lambda entry: entry[:4]):
        if not any(mention.span.overlaps(other.span) for other in kept):
            kept.append(mention)
    kept.sort(key=lambda mention: mention.span.start)
    return tuple(kept)


def _before_value(text: Text, mention: Mention, values: list[Span]) -> Mention:
    """End a word where a value of the data begins in it: of 多少台灯 the value is 台灯."""
    if mention.value:
        return mention
    starts = [v.start for v in values if mention.span.start < v.start < mention.span.end < v.end]
    if not starts:
        return mention
    span = Span(mention.span.start, min(starts))
    return replace(mention, span=span, said=text.part(span))


def _candidates(text: Text, catalog: Catalog) -> Iterator[tuple[int, Mention]]:
    yield from ((0, mention) for mention in _values(text, catalog, certain=True))
    yield from ((1, mention) for mention in _columns(text, catalog))
    for mention in _concepts(text, catalog):
        if mention.role is None and mention.kind is not Kind.DERIVED:
            yield 4, mention
        else:
            yield 3 if mention.role is not None and mention.role.identifier else 2, mention
    yield from ((5, mention) for mention in _values(text, catalog, certain=False))


def _columns(text: Text, catalog: Catalog) -> Iterator[Mention]:
    """Find columns by their own names, in any of their spellings."""
    dated = {axis.column.name for axis in catalog.axes}
    for role in catalog.roles:
        if role.column.name in dated:
            continue
        lone_id = role.identifier and len(role.name.words) == 1
        phrases = {
            role.column.name,
            " ".join(role.name.spoken),
            " ".join(role.name.words),
        }
        if role.flag is not None and role.name.words[:1] in (("is",), ("has",), ("was",)):
            phrases.add(" ".join(role.name.words[1:]))
        for phrase in phrases:
            if len(phrase.strip()) < 2 or (lone_id and phrase.lower() in _order_words()):
                continue
            for span in text.find(phrase):
                yield Mention(
                    span=span, said=text.part(span), role=role, concept=_sure_concept(role)
                )


def _order_words() -> frozenset[str]:
    return frozenset(concepts()["orders"].en) | frozenset(concepts()["orders"].zh)


def _sure_concept(role: Role) -> Concept | None:
    return role.concept if role.score >= 60 else None


def _concepts(text: Text, catalog: Catalog) -> Iterator[Mention]:
    for concept in concepts().values():
        role = _stands_for(concept, catalog)
        for phrase in (*concept.en, *concept.zh):
            for span in text.find(phrase):
                yield Mention(
                    span=span,
                    said=text.part(span),
                    role=role,
                    concept=concept,
                    weak=phrase in concept.weak,
                )


def _stands_for(concept: Concept, catalog: Catalog) -> Role | None:
    match concept.kind:
        case Kind.MEASURE:
            return catalog.measure(concept.key)
        case Kind.DIMENSION:
            return catalog.dimension(concept.key)
        case Kind.FLAG:
            return catalog.flag(concept.key)
        case Kind.DERIVED:
            return None


def _values(text: Text, catalog: Catalog, *, certain: bool) -> Iterator[Mention]:
    """Find values of columns; certain are those in quotes or beside their column's name."""
    for role in catalog.roles:
        if role.flag is not None or role.column.type not in (ColumnType.TEXT, ColumnType.INTEGER):
            continue
        for value in role.column.values:
            for span in _places(text, value):
                sure = (
                    _quoted(text, span)
                    or _beside_name(text, span, role)
                    or _in_capitals(text, span, value)
                )
                if sure == certain and (sure or not _too_common(value)):
                    yield Mention(
                        span=span, said=text.part(span), role=role, concept=None, value=value
                    )


def _places(text: Text, value: str) -> list[Span]:
    found = text.find(value)
    if found or not has_han(value):
        return found
    short = _HAN_TAIL.sub("", value)
    return text.find(short) if len(short) >= 2 else []


def _too_common(value: str) -> bool:
    plain = value.strip().lower()
    return plain in _COMMON_VALUES or len(plain) < 2 or plain.replace(".", "").isdigit()


def _in_capitals(text: Text, span: Span, value: str) -> bool:
    """Tell `IT` from `it`: an abbreviation that the question writes as the data does."""
    return len(value) > 1 and value.isupper() and text.part(span) == value


def _quoted(text: Text, span: Span) -> bool:
    before = text.original[span.start - 1 : span.start]
    after = text.original[span.end : span.end + 1]
    return bool(before and after and before in _QUOTES and after in _QUOTES)


def _beside_name(text: Text, span: Span, role: Role) -> bool:
    """Tell whether the column's name stands right before or after: `grade A`, `North region`."""
    names = {role.column.name, " ".join(role.name.words), role.name.head}
    if role.concept is not None:
        names |= {*role.concept.en, *role.concept.zh}
    before, after = text.lower[: span.start].rstrip(" :：=是"), text.lower[span.end :].lstrip()
    for name in names:
        low = name.lower()
        if not low:
            continue
        if before.endswith(low) and (has_han(low) or not before[: -len(low)][-1:].isalnum()):
            return True
        following = after[len(low) : len(low) + 1]
        if after.startswith(low) and (has_han(low) or not following.isalnum()):
            return True
    return False
