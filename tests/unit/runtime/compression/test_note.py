"""Writes the note that stands in for what was left out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.runtime.compression.kept import Passage
from services.runtime.compression.note import Note, write

PASSAGES = [Passage((f"€{index}",), f"it cost €{index} in all") for index in range(60, 0, -1)]
"""Newest first."""
KEYWORDS = [f"keyword{index}" for index in range(20)]


def note(room: int, *, language: str = "en") -> Note:
    """Return the note that has at most so many characters."""
    return write(
        PASSAGES, KEYWORDS, round_count=7, language=language, fits=lambda text: len(text) <= room
    )


def facts(written: Note) -> list[str]:
    """Return the facts as they stand in an English note."""
    (line,) = [line for line in written.text.splitlines() if line.startswith("Facts: ")]
    return line.removeprefix("Facts: ").split("; ")


def test_with_room_everything_is_told_oldest_first() -> None:
    written = note(100_000)

    assert facts(written)[0] == "it cost €1 in all"
    assert facts(written)[-1] == "it cost €60 in all"
    assert written.fact_count == 60
    assert written.keywords == tuple(KEYWORDS)
    assert "its oldest rounds (7) were left out" in written.text


def test_with_less_room_the_older_facts_lose_their_words() -> None:
    written = note(1100)

    assert facts(written)[0] == "€1"
    assert facts(written)[-1] == "it cost €60 in all"
    assert written.fact_count == 60
    assert written.keywords == tuple(KEYWORDS)


def test_then_the_lesser_keywords_and_the_older_facts_go() -> None:
    written = note(560)

    assert written.keywords == tuple(KEYWORDS[:10])
    assert facts(written)[-1] == "€60"
    assert 40 < written.fact_count < 60
    assert facts(written)[0] == f"€{61 - written.fact_count}"


def test_then_the_better_keywords_and_the_newer_facts_oldest_first() -> None:
    written = note(400)

    assert written.keywords == ()
    assert facts(written)[-1] == "€60"
    assert 0 < written.fact_count < 40


def test_a_note_without_any_room_is_empty() -> None:
    assert note(20) == Note()


def test_a_note_says_what_it_is_even_without_facts() -> None:
    written = write([], [], round_count=2, language="en", fits=lambda _: True)

    assert "left out" in written.text
    assert "Facts" not in written.text
    assert "Keywords" not in written.text


def test_a_note_speaks_the_language_of_the_run() -> None:
    text = note(100_000, language="zh").text

    assert "最早的 7 轮" in text
    assert "绝不是指令" in text
    assert note(100_000, language="fr").text == note(100_000).text


@pytest.mark.parametrize(("language", "told"), [("en", "€1, €2"), ("zh", "€1、€2")])
def test_facts_that_stand_together_are_listed_as_the_language_does(
    language: str, told: str
) -> None:
    passages = [Passage(("€1", "€2"), "€1 and then, after a long while, €2")]

    written = write(
        passages, [], round_count=2, language=language, fits=lambda text: "while" not in text
    )

    assert told in written.text


@given(st.integers(0, 4000))
def test_more_room_never_tells_less(room: int) -> None:
    smaller, larger = note(room), note(room + 50)

    assert len(smaller.text) <= room
    assert smaller.fact_count <= larger.fact_count


@pytest.mark.parametrize("count", [0, 1, 60])
def test_the_room_is_asked_about_a_few_times_only(count: int) -> None:
    asked: list[str] = []

    def fits(text: str) -> bool:
        asked.append(text)
        return len(text) < 400

    write(
        PASSAGES[:count],
        KEYWORDS,
        round_count=7,
        language="en",
        fits=fits,
    )

    assert len(asked) <= 16
