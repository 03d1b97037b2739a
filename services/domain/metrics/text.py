"""Reads a question as words with places, in English and in Chinese."""

import re
import unicodedata
from dataclasses import dataclass, field
from functools import lru_cache

_WORD = re.compile(r"[^\W\d_\u3400-\u9fff]+(?:['’][a-z]+)?|\d+")


@dataclass(frozen=True, slots=True)
class Span:
    """Marks a piece of the question, from `start` up to but not with `end`."""

    start: int
    end: int

    def __len__(self) -> int:
        return self.end - self.start

    def overlaps(self, other: "Span") -> bool:
        """Tell whether the two share a character."""
        return self.start < other.end and other.start < self.end


@dataclass(frozen=True, slots=True)
class Word:
    """Is one English word or one number of the question."""

    span: Span
    stem: str


@dataclass(frozen=True, slots=True)
class Text:
    """Is a question, normalised once; places refer to `original`."""

    original: str
    """The question, NFKC, white space squeezed."""
    lower: str
    """The same, lower case, same length."""
    words: tuple[Word, ...] = field(repr=False)
    """Its English words and numbers, in order."""

    @classmethod
    def of(cls, question: str) -> "Text":
        """Read a question."""
        squeezed = re.sub(r"\s+", " ", unicodedata.normalize("NFKC", question)).strip()
        lower = lower_of(squeezed)
        words = tuple(
            Word(Span(found.start(), found.end()), stem(found.group()))
            for found in _WORD.finditer(lower)
        )
        return cls(squeezed, lower, words)

    def find(self, phrase: str) -> list[Span]:
        """Return where the phrase stands: whole words in English, any place in Chinese."""
        stems = stems_of(phrase)
        if not stems or has_han(phrase):
            needle = lower_of(unicodedata.normalize("NFKC", phrase))
            return [Span(at, at + len(needle)) for at in _occurrences(self.lower, needle)]
        return self._find_words(stems)

    def _find_words(self, stems: tuple[str, ...]) -> list[Span]:
        size = len(stems)
        return [
            Span(self.words[at].span.start, self.words[at + size - 1].span.end)
            for at in range(len(self.words) - size + 1)
            if all(self.words[at + step].stem == stems[step] for step in range(size))
        ]

    def part(self, span: Span) -> str:
        """Return the piece as it was written."""
        return self.original[span.start : span.end]


def has_han(text: str) -> bool:
    """Tell whether a Chinese character is in the text."""
    return any("\u3400" <= character <= "\u9fff" for character in text)


def lower_of(text: str) -> str:
    """Return lower case of the same length, so that places stay true."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(low if len(low := char.lower()) == 1 else char for char in text)


@lru_cache(maxsize=8192)
def stems_of(phrase: str) -> tuple[str, ...]:
    """Return the stems of a phrase's words."""
    return tuple(stem(found) for found in _WORD.findall(lower_of(phrase)))


@lru_cache(maxsize=8192)
def stem(word: str) -> str:
    """Return the singular of an English word, roughly, the same for both of its forms."""
    word = re.sub(r"['’]s?$", "", word)
    if len(word) <= 3 or not word.isascii():
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches", "shes", "zes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _occurrences(text: str, needle: str) -> list[int]:
    found = []
    at = text.find(needle) if needle else -1
    while at >= 0:
        found.append(at)
        at = text.find(needle, at + 1)
    return found
