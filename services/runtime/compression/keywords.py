"""Finds the keywords of a text, by YAKE where it is installed and by counting elsewhere."""

import re
from collections.abc import Callable, Sequence
from importlib import import_module
from itertools import chain, zip_longest
from typing import Any

from services.runtime.compression import chinese, counted
from services.runtime.compression.kept import one_line
from services.runtime.compression.rounds import Round
from services.runtime.telemetry import DEFECT, get_logger

MAX_WORDS = 2_000
"""How much text is looked at, about 0.1 s of YAKE: a thread with it ends by itself."""
MAX_KEYWORDS = 20
_MAX_KEYWORD = 60
_MIN_WORDS = 8
"""In less text nothing stands out."""
_HAN_PER_WORD = 2
_TOKEN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]|[^\s\u3400-\u4dbf\u4e00-\u9fff]{1,80}")
_DIGIT = re.compile(r"\d")
_HAN_PART = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff][^A-Za-z\n]*")

Extract = Callable[[str, str, int], list[str]]
"""From a text, its language and a number: the best keywords, best first."""


def word_count(text: str, *, most: int) -> int:
    """Return how many words a text has, or `most` if it has more.

    Two Chinese characters count as a word.
    """
    words = han = 0
    for match in _TOKEN.finditer(text):
        if chinese.HAN.match(match.group()):
            han += 1
        else:
            words += 1
        if words + han // _HAN_PER_WORD >= most:
            return most
    return words + han // _HAN_PER_WORD


def sample(rounds: Sequence[Round]) -> str:
    """Return the beginning of each round, together at most `MAX_WORDS` words, newest last.

    Each round has an equal part, and what a short one does not need falls to the older ones.
    """
    left = MAX_WORDS
    parts: list[str] = []
    for index in range(len(rounds) - 1, -1, -1):
        part = left // (index + 1)
        text = "\n".join(message.content for message in rounds[index].talk if message.content)
        cut = _first_words(text, part)
        left -= word_count(cut, most=part)
        parts.append(cut)
    return "\n".join(reversed(parts))


def keywords(text: str, *, extract: Extract | None = None) -> tuple[str, ...]:
    """Return the keywords of a text, best first, at most `MAX_KEYWORDS`; nothing twice.

    English and Chinese parts are looked at apart and take turns.

    Args:
        text: the text; no more than its first `MAX_WORDS` words are read.
        extract: finds the keywords of a text in one language; what is installed, without.
    """
    text = _first_words(text, MAX_WORDS)
    han = "\n".join(match.group() for match in _HAN_PART.finditer(text))
    latin = _HAN_PART.sub("\n", text)
    find = extract or installed()
    found = [
        find(part, language, 2 * MAX_KEYWORDS)
        for part, language in ((latin, "en"), (han, "zh"))
        if word_count(part, most=_MIN_WORDS) == _MIN_WORDS
    ]
    by_turns = chain.from_iterable(zip_longest(*found, fillvalue=""))
    chosen: list[str] = []
    for word in map(one_line, by_turns):
        # With a digit it is a number or an id, and those are kept as facts.
        if word and not _DIGIT.search(word) and not _is_told(word, chosen):
            chosen.append(word[:_MAX_KEYWORD])
    return tuple(chosen[:MAX_KEYWORDS])


def _is_told(word: str, chosen: Sequence[str]) -> bool:
    """Return whether a keyword adds nothing to those that were chosen."""
    padded = f" {word.lower()} "
    return any(padded in f" {other.lower()} " for other in chosen)


def installed() -> Extract:
    """Return the best way that is installed; the first call loads it, a quarter of a second."""
    try:
        yake = import_module("yake")
    except ImportError:
        return by_counting
    chinese.segmenter()

    def by_yake(text: str, language: str, max_count: int) -> list[str]:
        try:
            return _yake(yake.KeywordExtractor, text, language, max_count)
        except Exception as error:  # A defect in a library's heuristics must not cost an answer.
            get_logger().error(DEFECT, traceback=f"YAKE: {type(error).__name__}")
            return by_counting(text, language, max_count)

    return by_yake


def by_counting(text: str, language: str, max_count: int) -> list[str]:
    """Return what stands in a text most often; Chinese words where they can be told apart."""
    if language == "en":
        return counted.english(text, max_count)
    nouns = chinese.topics(text)
    return (
        counted.chinese(text, max_count)
        if nouns is None
        else counted.most_frequent(nouns, max_count)
    )


def _yake(extractor: Callable[..., Any], text: str, language: str, max_count: int) -> list[str]:
    if language == "en":
        return _ranked(extractor(lan="en", n=3, top=max_count), text)
    words = chinese.words(text)
    if words is None:
        # Without words YAKE takes a paragraph for one.
        return counted.chinese(text, max_count)
    ranked = _ranked(extractor(lan="zh", n=1, top=max_count), " ".join(words))
    # YAKE ignores words of two characters, as most Chinese nouns are.
    nouns = counted.most_frequent(chinese.topics(text) or (), max_count)
    by_turns = chain.from_iterable(zip_longest(nouns, ranked, fillvalue=""))
    return list(dict.fromkeys(filter(None, by_turns)))[:max_count]


def _ranked(extractor: Any, text: str) -> list[str]:
    scored: list[tuple[str, float]] = extractor.extract_keywords(text)
    # Of equal scores the order is not promised.
    return [word for word, _ in sorted(scored, key=lambda each: (float(each[1]), each[0]))]


def _first_words(text: str, count: int) -> str:
    """Return the beginning of a text up to a number of words."""
    words = han = 0
    for match in _TOKEN.finditer(text):
        if words + han // _HAN_PER_WORD >= count:
            return text[: match.start()]
        if chinese.HAN.match(match.group()):
            han += 1
        else:
            words += 1
    return text
