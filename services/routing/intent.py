"""Chooses the agent whose example questions are nearest to a question."""

from collections.abc import Collection, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from services.runtime.errors import (
    InvalidArgumentError,
    PermissionDeniedError,
    SelfUnavailableError,
)

Vector = npt.NDArray[np.float32]

NEAREST_EXAMPLES = 3
"""An agent's score is the mean of its nearest examples: one lucky sentence must not decide."""


class Embedder(Protocol):
    """Turns text into a vector of length one."""

    def embed(self, text: str) -> Vector:
        """Return the vector of a text."""
        ...


@dataclass(frozen=True, slots=True)
class AgentCard:
    """Describes one agent to those who choose."""

    name: str
    description: str
    examples: tuple[str, ...]
    reads_data: bool = False
    """Whether it answers from data that comes with the question."""
    needed_tools: tuple[str, ...] = ()
    """The tools that it cannot do without."""
    converses: bool = False
    """Whether it goes by a history, by the caller's tools and by how a text is to be generated."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Tells which agent answers, and why."""

    agent: str
    score: float
    """Similarity to the agent's nearest examples, 0 to 1."""
    margin: float
    """How far the runner-up was behind."""
    reason: str
    """`requested`, `nearest`, `uncertain` or `conversation`."""


class IntentIndex:
    """Holds the vectors of all examples of all agents; immutable."""

    def __init__(self, cards: Sequence[AgentCard], embedder: Embedder) -> None:
        """Embed every example; takes some 15 ms for each."""
        self.cards = tuple(cards)
        self._embedder = embedder
        self._vectors = [
            (card.name, np.stack([embedder.embed(text) for text in card.examples]))
            for card in cards
            if card.examples
        ]

    @property
    def names(self) -> list[str]:
        """Return the names of the agents."""
        return [card.name for card in self.cards]

    def only(self, names: Collection[str]) -> "IntentIndex":
        """Return the same for some of the agents.

        Raises:
            PermissionDeniedError: none of them is here.
        """
        narrowed = copy(self)
        narrowed.cards = tuple(card for card in self.cards if card.name in names)
        narrowed._vectors = [each for each in self._vectors if each[0] in names]
        if not narrowed.cards:
            allowed = ", ".join(sorted(names)) or "none"
            raise PermissionDeniedError(
                f"none of the agents here may answer this tenant (allowed: {allowed}; there are "
                f"{', '.join(self.names)}); correct `agents` of the tenant",
                cause="agents",
            )
        return narrowed

    def needed_tools(self, agent: str) -> tuple[str, ...]:
        """Return the tools that an agent cannot do without."""
        return next((card.needed_tools for card in self.cards if card.name == agent), ())

    def choose(
        self, question: str, *, min_margin: float, fallback_agent: str, with_data: bool = False
    ) -> Choice:
        """Return who answers.

        Args:
            question: the user's words.
            min_margin: how far the best must lead the runner-up.
            fallback_agent: who answers when nobody leads.
            with_data: the question brings its own data, so that only those may answer who read it.

        Raises:
            SelfUnavailableError: there is nobody to choose.
        """
        if not self._vectors:
            return self._without_examples(fallback_agent)
        readers = {card.name for card in self.cards if card.reads_data}
        # Without anybody who reads data the usual agents answer, and cannot use it.
        with_data = with_data and any(name in readers for name, _ in self._vectors)
        vector = self._embedder.embed(question)
        scores = sorted(
            (
                (self._score(vectors, vector), name)
                for name, vectors in self._vectors
                if not with_data or name in readers
            ),
            reverse=True,
        )
        best_score, best = scores[0]
        margin = best_score - scores[1][0] if len(scores) > 1 else 1.0
        if margin < min_margin and fallback_agent in self.names:
            return Choice(fallback_agent, best_score, margin, "uncertain")
        return Choice(best, best_score, margin, "nearest")

    def conversing(self, fallback_agent: str, *, with_data: bool = False) -> Choice:
        """Return who converses: the fallback agent if it does, else the first by name.

        Args:
            fallback_agent: who is preferred.
            with_data: the question brings its own data, so that only those may answer who read it.

        Raises:
            InvalidArgumentError: nobody does.
        """
        names = sorted(
            card.name
            for card in self.cards
            if card.converses and (card.reads_data or not with_data)
        )
        if not names:
            reads = " and reads data" if with_data else ""
            raise InvalidArgumentError(
                "question",
                f"no agent{reads} takes tools, a history in place of a question, a stop or a "
                "response format; leave them out",
            )
        name = fallback_agent if fallback_agent in names else names[0]
        return Choice(name, 1.0, 1.0, "conversation")

    def _without_examples(self, fallback_agent: str) -> Choice:
        if fallback_agent in self.names:
            return Choice(fallback_agent, 0.0, 0.0, "uncertain")
        raise SelfUnavailableError(
            "routing knows no agent that answers; add one to the domain hop", cause="no_agents"
        )

    @staticmethod
    def _score(vectors: Vector, vector: Vector) -> float:
        similarities = np.sort(vectors @ vector)[-NEAREST_EXAMPLES:]
        return float(similarities.mean())
