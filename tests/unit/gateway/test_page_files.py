"""Holds the files of the page to one set of words, to their own origin, and to one another."""

import json
import re
from pathlib import Path

from gateway.http.assets import FOLDER

SCRIPTS = sorted(FOLDER.glob("*.js"))
STYLES = sorted(FOLDER.glob("*.css"))
SOURCES = [*SCRIPTS, FOLDER / "index.html"]
KINDS = {
    "hop": ("gateway", "routing", "domain", "tool", "model", "model_backup", "llm"),
    "state": ("serving", "not_serving", "silent", "unreachable", "unknown"),
    "breaker": ("closed", "open", "half_open"),
    "door": ("open", "narrowed", "closed"),
    "status": ("running", "ok", "degraded", "failed", "cancelled", "gone"),
}
"""What the suite says in its own words, and people are to read in theirs."""
MAX_LINES = 400
MAX_BYTES = 200_000
"""What the page may weigh as a whole; a phone loads it in a second."""
_CALL = re.compile(r'\bt\(\s*"([\w.]+)"')
_ATTRIBUTE = re.compile(r'data-t(?:-label)?="([\w.]+)"')


def words(language: str) -> dict[str, str]:
    """Return the words of a language."""
    found: dict[str, str] = json.loads((FOLDER / f"{language}.json").read_text("utf-8"))
    return found


def text(path: Path) -> str:
    """Return what is in a file."""
    return path.read_text("utf-8")


def test_both_languages_have_the_same_words_and_none_is_empty() -> None:
    english, chinese = words("en"), words("zh")

    assert english.keys() == chinese.keys()
    assert all(english.values())
    assert all(chinese.values())


def test_what_is_filled_into_the_words_is_the_same_in_both_languages() -> None:
    english, chinese = words("en"), words("zh")

    def holes(said: str) -> list[str]:
        return sorted(re.findall(r"{(\w+)}", said))

    assert {key: holes(said) for key, said in english.items()} == {
        key: holes(said) for key, said in chinese.items()
    }


def test_every_word_that_the_page_asks_for_is_there() -> None:
    asked = {
        key
        for path in SOURCES
        for key in (*_CALL.findall(text(path)), *_ATTRIBUTE.findall(text(path)))
    }

    assert len(asked) > 80
    assert asked <= words("en").keys()


def test_every_state_of_the_suite_has_words() -> None:
    wanted = {f"{kind}.{value}" for kind, values in KINDS.items() for value in values}

    assert wanted <= words("en").keys()


def test_no_word_is_kept_that_nobody_asks_for() -> None:
    everything = "".join(map(text, SOURCES))
    prefixes = {f"{kind}." for kind in re.findall(r'term\("([\w.]+)"', everything)}
    prefixes |= {f"{key}." for key in re.findall(r"t\(\s*`([\w.]+)\.\$", everything)}

    unused = [
        key
        for key in words("en")
        if f'"{key}"' not in everything and not key.startswith(tuple(prefixes))
    ]

    assert unused == []


def test_the_page_loads_nothing_from_anywhere_else_and_runs_nothing_inline() -> None:
    everything = "".join(text(path) for path in (*SOURCES, *STYLES))
    page = text(FOLDER / "index.html")

    addresses = set(re.findall(r"https?://[^\"'\s)]+", everything))
    assert addresses <= {"http://www.w3.org/2000/svg"}
    assert re.findall(r"<script(?![^>]*\bsrc=)", page) == []
    assert re.findall(r"<style|\sstyle=|\son\w+=", page) == []


def test_no_script_makes_markup_out_of_text() -> None:
    forbidden = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function"
    )

    assert [path.name for path in SCRIPTS if forbidden.search(text(path))] == []


def test_every_file_that_is_loaded_is_there_and_every_file_is_loaded() -> None:
    loaded = {"index.html", "en.json", "zh.json"}
    for path in SOURCES:
        loaded |= set(re.findall(r'(?:from "\./|"/page/)([\w.]+)"', text(path)))

    assert loaded == {path.name for path in FOLDER.iterdir()}


def test_the_page_stays_small_and_its_files_can_be_read_at_once() -> None:
    files = list(FOLDER.iterdir())

    assert [p.name for p in files if len(text(p).splitlines()) > MAX_LINES] == []
    assert sum(path.stat().st_size for path in files) < MAX_BYTES
