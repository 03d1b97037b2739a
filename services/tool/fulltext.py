"""Finds sections of documents by their words, in English and in Chinese."""

import re
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from services.runtime.errors import SelfUnavailableError

SUFFIXES = (".md", ".txt")
MAX_DOCUMENT_BYTES = 1024 * 1024
MAX_SNIPPET_CHARS = 200
# A word of the heading says more about a section than the same word in its text.
TITLE_WEIGHT = 4.0

_CJK = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORDS = re.compile(rf"[{_CJK}]+|[^\W_{_CJK}]+")
_CJK_WORD = re.compile(rf"[{_CJK}]+")
_HEADING = re.compile(r"#{1,6}\s+(.*\S)")
_QUESTION_WORDS = frozenset(
    "a an and are at be by can could do does for from had has have how i if in is it its long "
    "many may me much my of on or our should that the their there they this to was we what when "
    "where which who why will with you your".split()
)
# Pairs that questions are made of; none says what is asked about.
_QUESTION_PAIRS = frozenset(
    "什么 怎么 怎样 如何 多少 多久 哪些 哪里 是否 可以 能否 我们 你们 我的 请问".split()
)


@dataclass(frozen=True, slots=True)
class Section:
    """Holds one heading of a document with the text below it."""

    title: str
    """The headings above the text, outermost first."""
    source: str
    """Path of the document inside its folder."""
    text: str
    """The text, as written."""


@dataclass(frozen=True, slots=True)
class Hit:
    """Holds one section that fits a query."""

    section: Section
    """What was found."""
    score: float
    """How well it fits; higher is better, and only the order means something."""
    snippet: str
    """The part of the text where the query's words are."""


class FullTextIndex:
    """Ranks the sections of a folder with BM25; safe in any thread."""

    def __init__(self, sections: Sequence[Section]) -> None:
        """Index the sections in memory.

        Raises:
            SelfUnavailableError: this Python's SQLite has no full-text search.
        """
        self._sections = tuple(sections)
        self._lock = threading.Lock()
        self._database = sqlite3.connect(":memory:", check_same_thread=False)
        try:
            self._database.execute(
                "CREATE VIRTUAL TABLE sections USING fts5(title, body, "
                "tokenize = 'porter unicode61')"
            )
        except sqlite3.OperationalError as error:
            raise SelfUnavailableError(
                f"this Python's SQLite cannot search text ({error}); install one with FTS5",
                cause="fts5_missing",
            ) from error
        self._database.executemany(
            "INSERT INTO sections (rowid, title, body) VALUES (?, ?, ?)",
            (
                (number, " ".join(index_words(section.title)), " ".join(index_words(section.text)))
                for number, section in enumerate(self._sections)
            ),
        )

    def __len__(self) -> int:
        """Return the number of sections."""
        return len(self._sections)

    def find(self, query: str, max_results: int) -> list[Hit]:
        """Return the sections that hold any of the query's words, the best first."""
        words = query_words(query)
        if not words:
            return []
        match = " OR ".join(f'"{word}"' for word in words)
        with self._lock:
            rows = self._database.execute(
                "SELECT rowid, bm25(sections, ?, 1.0) FROM sections WHERE sections MATCH ? "
                "ORDER BY 2, rowid LIMIT ?",
                (TITLE_WEIGHT, match, max_results),
            ).fetchall()
        return [
            Hit(section, round(-rank, 4), snippet(section.text, words))
            for number, rank in rows
            for section in (self._sections[number],)
        ]


def index_words(text: str) -> Iterator[str]:
    """Yield what a text is found by: words, and each pair of neighbouring CJK characters.

    Chinese has no blanks between words; nearly every word of it has two characters.
    """
    for word in _WORDS.findall(text):
        if not _CJK_WORD.fullmatch(word):
            yield word.casefold()
            continue
        yield from word
        yield from (word[at : at + 2] for at in range(len(word) - 1))


def query_words(query: str) -> list[str]:
    """Return the distinct words of a query that say what it is about."""
    found: dict[str, None] = {}
    for word in _WORDS.findall(query):
        if _CJK_WORD.fullmatch(word):
            pairs = [word[at : at + 2] for at in range(len(word) - 1)] or [word]
            found.update(dict.fromkeys(pair for pair in pairs if pair not in _QUESTION_PAIRS))
        elif word.casefold() not in _QUESTION_WORDS:
            found[word.casefold()] = None
    return list(found)


def snippet(text: str, words: Sequence[str]) -> str:
    """Return about 200 characters of a text around the first of the words."""
    flat = " ".join(text.split())
    folded = flat.casefold()
    # The stem of a long word also finds its other forms.
    stems = (word[:-2] if len(word) > 5 and word.isascii() else word for word in words)
    places = [place for stem in stems if (place := folded.find(stem)) >= 0]
    start = max(0, min(places, default=0) - MAX_SNIPPET_CHARS // 4)
    if start:
        blank = flat.find(" ", start, start + 20)
        start = blank + 1 if blank >= 0 else start
    end = start + MAX_SNIPPET_CHARS
    return ("…" if start else "") + flat[start:end].strip() + ("…" if end < len(flat) else "")


def sections_of(folder: Path) -> list[Section]:
    """Return the sections of all documents below a folder, in the order of their paths.

    Raises:
        SelfUnavailableError: the folder does not exist.
    """
    if not folder.is_dir():
        raise SelfUnavailableError(
            f"the folder of documents {folder} does not exist; correct documents_dir",
            cause="documents_missing",
        )
    return [
        section
        for file in document_files(folder)
        for section in _sections(
            file.relative_to(folder).as_posix(), file.read_text(encoding="utf-8", errors="replace")
        )
    ]


def document_files(folder: Path) -> list[Path]:
    """Return the documents below a folder: text files up to 1 MiB."""
    return sorted(
        file
        for file in folder.rglob("*")
        if file.suffix.casefold() in SUFFIXES and file.stat().st_size <= MAX_DOCUMENT_BYTES
    )


def _sections(source: str, text: str) -> Iterator[Section]:
    headings: list[tuple[int, str]] = []
    lines: list[str] = []

    def section() -> Iterator[Section]:
        body = "\n".join(lines).strip()
        if body:
            title = " – ".join(heading for _, heading in headings) or Path(source).stem
            yield Section(title, source, body)

    for line in text.splitlines():
        heading = _HEADING.fullmatch(line.rstrip()) if source.endswith(".md") else None
        if heading is None:
            lines.append(line)
            continue
        yield from section()
        lines.clear()
        level = len(line) - len(line.lstrip("#"))
        headings = [*(pair for pair in headings if pair[0] < level), (level, heading[1])]
    yield from section()
