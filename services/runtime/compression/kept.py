"""Collects what must survive of the rounds that are left out, with a few words around it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from services.runtime.compression import chinese
from services.runtime.compression.patterns import KINDS, Span, find
from services.runtime.compression.rounds import Round
from services.runtime.conversation import Message

MAX_CHARACTERS = 400_000
"""How much text is looked through, newest first: a thread with it ends by itself."""
MAX_PASSAGES = 400
"""How many passages are kept in all."""
MAX_PER_MESSAGE = 60
"""How much is kept of one message, so that no table displaces a whole conversation."""
_MAX_GAP = 30
_MAX_PASSAGE = 120
_LEFT_CHARACTERS = 40
_LEFT_WORDS = 4
_RIGHT_CHARACTERS = 24
_RIGHT_WORDS = 2
_HAN_PER_SIDE = 8
_BOUNDARY = re.compile(r"[.!?;,:](?=\s|$)|[\n\r，。；：！？、（）()|{}\[\]]")
_SENTENCE_END = re.compile(r"[.!?](?=\s)|[\n\r。！？{}]")
_UNPRINTABLE = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ue000-\uf8ff]+"
)


@dataclass(frozen=True, slots=True)
class Passage:
    """Holds a piece of a text that names something to be kept."""

    values: tuple[str, ...]
    """The numbers, dates, ids, names and so on in it."""
    text: str
    """The values with a few words around them, in one line."""


def collect(rounds: Sequence[Round]) -> tuple[Passage, ...]:
    """Return what is to be kept of rounds, newest first; nothing twice."""
    seen: set[str] = set()
    kept: list[Passage] = []
    left = MAX_CHARACTERS
    for message in _newest_first(rounds):
        for text, data in _texts(message):
            for passage in reversed(_passages(text[:left], data=data)):
                if not seen.issuperset(passage.values):
                    seen.update(passage.values)
                    kept.append(passage)
            left -= len(text)
            if left <= 0 or len(kept) >= MAX_PASSAGES:
                return tuple(kept[:MAX_PASSAGES])
    return tuple(kept)


def one_line(text: str) -> str:
    """Return a text without line breaks and without characters that nobody sees."""
    return " ".join(_UNPRINTABLE.sub(" ", text).split())


def _newest_first(rounds: Sequence[Round]) -> Iterator[Message]:
    for each in reversed(rounds):
        yield from reversed(each.talk)


def _texts(message: Message) -> Iterator[tuple[str, bool]]:
    """Yield the texts of a message, newest first, and whether each is data."""
    for call in reversed(message.tool_calls):
        yield call.arguments, True
    yield message.content, message.role == "tool"


def _passages(text: str, *, data: bool) -> list[Passage]:
    spans = sorted([*find(text, data=data), *_chinese_names(text)])
    passages: list[Passage] = []
    group: list[Span] = []
    for span in _most_important(spans):
        if group and span.start < group[-1].end:
            continue
        if group and not _belongs(text, group, span):
            passages.append(_passage(text, group))
            group = []
        group.append(span)
    if group:
        passages.append(_passage(text, group))
    return passages


def _chinese_names(text: str) -> Iterator[Span]:
    return (Span(start, end, "name") for start, end in chinese.names(text))


def _most_important(spans: list[Span]) -> list[Span]:
    if len(spans) <= MAX_PER_MESSAGE:
        return spans
    ranked = sorted(spans, key=lambda span: (KINDS.index(span.kind), span.start))
    return sorted(ranked[:MAX_PER_MESSAGE])


def _belongs(text: str, group: list[Span], span: Span) -> bool:
    """Return whether a span is told in one breath with those before it."""
    last = group[-1].end
    return (
        span.start - last <= _MAX_GAP
        and span.end - group[0].start <= _MAX_PASSAGE
        and not _SENTENCE_END.search(text, last, span.start)
    )


def _passage(text: str, group: list[Span]) -> Passage:
    start, end = group[0].start, group[-1].end
    before = _words_before(text[max(0, start - _LEFT_CHARACTERS) : start])
    after = _words_after(text[end : end + _RIGHT_CHARACTERS])
    values = dict.fromkeys(one_line(text[span.start : span.end]) for span in group)
    return Passage(tuple(values), one_line(f"{before}{text[start:end]}{after}"))


def _words_before(text: str) -> str:
    clause = _BOUNDARY.split(text)[-1]
    if chinese.HAN.search(clause):
        return clause[-_HAN_PER_SIDE:]
    words = clause.split()
    # The window may have cut the first word.
    whole = words[1:] if len(clause) == _LEFT_CHARACTERS else words
    return " ".join(whole[-_LEFT_WORDS:]) + " " * clause[-1:].isspace()


def _words_after(text: str) -> str:
    boundary = _BOUNDARY.search(text)
    clause = text[: boundary.start()] if boundary else text
    if chinese.HAN.search(clause):
        return clause[:_HAN_PER_SIDE]
    words = clause.split()
    whole = words[:-1] if len(clause) == _RIGHT_CHARACTERS else words
    return " " * clause[:1].isspace() + " ".join(whole[:_RIGHT_WORDS])
