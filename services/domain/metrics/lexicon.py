"""Knows the things that people ask of business tables, from `lexicon.toml`."""

import tomllib
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files


class Kind(StrEnum):
    """Tells what a concept is good for in a query."""

    MEASURE = "measure"
    """A number that is added or averaged."""
    DIMENSION = "dimension"
    """Something to group and filter by."""
    FLAG = "flag"
    """A yes or no per row."""
    DERIVED = "derived"
    """A number that is counted, or made of other concepts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Concept:
    """Names one thing, in questions and in column names."""

    key: str
    """Its name in code."""
    kind: Kind
    """What it is good for."""
    en: tuple[str, ...] = ()
    """Phrases of English questions; plural and singular count as the same."""
    zh: tuple[str, ...] = ()
    """Phrases of Chinese questions."""
    heads: tuple[str, ...] = ()
    """Words that end a column name of this concept, best first."""
    label_en: str = ""
    """What an English answer calls it."""
    label_zh: str = ""
    """What a Chinese answer calls it."""
    weak: tuple[str, ...] = ()
    """Those of the phrases that often mean nothing in particular."""
    averaged: bool = False
    """Whether adding its values means nothing (a price, a score)."""

    def label(self, language: str) -> str:
        """Return what an answer in the language calls it."""
        return self.label_zh if language == "zh" else self.label_en


@cache
def concepts() -> dict[str, Concept]:
    """Return all concepts by key; read once."""
    text = files(__package__ or __name__).joinpath("lexicon.toml").read_text(encoding="utf-8")
    return {key: _concept(key, entry) for key, entry in tomllib.loads(text).items()}


@cache
def vocabulary() -> frozenset[str]:
    """Return every English word that column names are made of."""
    words: set[str] = set()
    for concept in concepts().values():
        for phrase in (*concept.heads, *concept.en):
            words.update(word for word in phrase.split() if word.isascii() and word.isalpha())
    return frozenset(word for word in words if len(word) >= 3)


def _concept(key: str, entry: dict[str, object]) -> Concept:
    def words(field: str) -> tuple[str, ...]:
        found = entry.get(field, ())
        return tuple(str(word) for word in found) if isinstance(found, list) else ()

    return Concept(
        key=key,
        kind=Kind(str(entry["kind"])),
        en=words("en"),
        zh=words("zh"),
        heads=words("heads"),
        weak=words("weak"),
        label_en=str(entry["label_en"]),
        label_zh=str(entry["label_zh"]),
        averaged=bool(entry.get("averaged", False)),
    )
