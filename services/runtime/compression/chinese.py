"""Finds the words of Chinese text, where the optional segmenter is installed."""

import re
from collections.abc import Iterator
from importlib import import_module
from typing import Protocol, cast

HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")
_HAN_TEXT = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff][^\n]{0,2000}")
_NAME_TAGS = frozenset({"nr", "nrfg", "nrt", "ns", "nt", "nz"})
"""People, places, organisations and other proper names, as the segmenter calls them."""
_NO_NAMES = re.compile("谢谢|多谢|您好|你好|明白|高兴|那么")
"""What the segmenter takes for names."""
_TOPIC_TAGS = frozenset({"n", "vn", "an", "j", "l", "i", "eng"}) | _NAME_TAGS
"""Nouns, and what is used like one."""


class _Segmenter(Protocol):
    def cut(self, text: str) -> list[str]: ...

    def tag(self, text: str) -> list[tuple[str, str]]: ...


def segmenter() -> _Segmenter | None:
    """Return the segmenter, loading it at the first call (0.1 s); None where it is missing."""
    try:
        return cast(_Segmenter, import_module("rjieba"))
    except ImportError:
        return None


def names(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the names of people, places and organisations stand in a text."""
    jieba = segmenter() if HAN.search(text) else None
    if jieba is None:
        return
    for run in _HAN_TEXT.finditer(text):
        at = run.start()
        for word, tag in jieba.tag(run.group()):
            if tag in _NAME_TAGS and not _NO_NAMES.match(word) and _is_word(word):
                yield at, at + len(word)
            at += len(word)


def words(text: str) -> list[str] | None:
    """Return the words of a text in their order; None where the segmenter is missing."""
    jieba = segmenter()
    return None if jieba is None else jieba.cut(text)


def topics(text: str) -> list[str] | None:
    """Return the nouns of a text in their order, each as often as it stands there.

    None where the segmenter is missing.
    """
    jieba = segmenter()
    if jieba is None:
        return None
    return [word for word, tag in jieba.tag(text) if tag in _TOPIC_TAGS and _is_word(word)]


def _is_word(word: str) -> bool:
    return len(word) > 1 and HAN.match(word) is not None
