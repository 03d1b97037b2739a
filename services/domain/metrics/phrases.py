"""Knows the words that tell what to do, and the words that tell nothing, from their TOML files."""

import re
import tomllib
from functools import cache
from importlib.resources import files


@cache
def cue_patterns() -> dict[str, re.Pattern[str]]:
    """Return one pattern per kind of cue; those of English match whole words only."""
    patterns = {}
    for name, entry in _read("cues.toml").items():
        if not isinstance(entry, dict):
            continue
        english, chinese = entry.get("en", []), entry.get("zh", [])
        parts = [f"(?<![a-z0-9])(?:{'|'.join(english)})(?![a-z])"] if english else []
        patterns[name] = re.compile("|".join([*parts, *chinese]))
    return patterns


@cache
def ordinary_words() -> frozenset[str]:
    """Return the English words that mean nothing to a query."""
    return frozenset(map(str, _list("en")))


@cache
def ordinary_han() -> re.Pattern[str]:
    """Return a pattern of the Chinese words that mean nothing to a query, longest first."""
    return re.compile("|".join(sorted(map(str, _list("zh")), key=len, reverse=True)))


def _list(language: str) -> list[object]:
    found = _read("stopwords.toml").get(language, [])
    return found if isinstance(found, list) else []


def _read(name: str) -> dict[str, object]:
    path = files(__package__ or __name__).joinpath(name)
    return tomllib.loads(path.read_text(encoding="utf-8"))
