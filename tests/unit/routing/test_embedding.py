"""Holds embeddings to one thread off the loop, and to unit vectors that tell intents apart."""

import asyncio
import threading
from pathlib import Path

import numpy as np
import pytest

from services.routing.embedding import MAX_CHARACTERS, E5Embedder, EmbeddingThread


@pytest.fixture(scope="module")
def embedder() -> E5Embedder:
    """Load the weights once."""
    return E5Embedder()


def test_a_vector_has_length_one(embedder: E5Embedder) -> None:
    for text in ("Which category grew most?", "哪个品类增长最快?", "", "x" * 100_000):
        vector = embedder.embed(text)

        assert vector.dtype == np.float32
        assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-3)


def test_only_the_beginning_of_a_long_text_counts(embedder: E5Embedder) -> None:
    beginning = ("word " * 200)[:MAX_CHARACTERS]

    assert np.array_equal(embedder.embed(beginning), embedder.embed(beginning + " and more"))


def test_a_question_is_nearer_to_its_translation_than_to_another(embedder: E5Embedder) -> None:
    english, chinese, other = (
        embedder.embed(text)
        for text in ("Which category grew most?", "哪个品类增长最快?", "What is a refund policy?")
    )

    assert english @ chinese > english @ other


def test_what_was_looked_up_is_given_back_and_nothing_is_forgotten() -> None:
    own = E5Embedder()
    before = _resident_kib("e5-small-q4.bin")
    vectors = [own.embed(f"{word} and {word}s") for word in ("order", "refund", "月份", "北京")]
    grown = _resident_kib("e5-small-q4.bin") - before

    own.give_back()

    assert _resident_kib("e5-small-q4.bin") - before < grown / 2
    assert np.array_equal(own.embed("order and orders"), vectors[0])


def _resident_kib(file_name: str) -> int:
    """Return how much of a mapped file is in this process's memory."""
    kib, inside = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if "-" in line.split(" ")[0]:
            inside = line.endswith(file_name)
        elif inside and line.startswith("Rss:"):
            kib += int(line.split()[1])
    return kib


async def test_work_runs_off_the_loop_and_one_after_the_other() -> None:
    thread = EmbeddingThread()
    try:
        names = await asyncio.gather(
            *(thread.run(lambda: threading.current_thread().name) for _ in range(5))
        )
    finally:
        thread.close()

    assert len(set(names)) == 1
    assert names[0].startswith("embedding")


async def test_who_stops_waiting_leaves_at_once() -> None:
    thread, release = EmbeddingThread(), threading.Event()
    try:
        waiting = asyncio.create_task(thread.run(lambda: release.wait(5)))
        await asyncio.sleep(0)

        waiting.cancel()
        await asyncio.wait({waiting}, timeout=1)

        assert waiting.cancelled()
    finally:
        release.set()
        thread.close()
