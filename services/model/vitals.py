"""Follows one generation: whether the provider was reached, and what was heard of it last."""

from contextvars import ContextVar
from enum import StrEnum

from services.model.backend import Piece, Reasoning
from services.runtime.clock import Clock


class WaitState(StrEnum):
    """Says what is waited for."""

    QUEUED = "queued"
    """A connection, or a provider that has only sent signs of life so far."""
    REASONING = "reasoning"
    """More of what the model thinks."""
    SILENT = "silent"
    """Anything: the provider has the request, or has begun, and says nothing."""


class Vitals:
    """Knows how one generation stands. Signs of life that are no content never count as content."""

    __slots__ = ("_alive", "_clock", "_has_content", "_reached", "_reasoning", "heard_at")

    def __init__(self, clock: Clock) -> None:
        """Begin now."""
        self._clock = clock
        self.heard_at = clock.now()
        """When content was heard last; before the first, when the generation began."""
        self._reached = False
        self._alive = False
        self._has_content = False
        self._reasoning = False

    def knock(self) -> None:
        """Note that an attempt looks for a connection."""
        self._reached = self._alive = False

    def reach(self) -> None:
        """Note that the attempt has a connection, and sends."""
        self._reached = True

    def live(self) -> None:
        """Note that bytes have come, whatever they say."""
        self._alive = True

    def hear(self, piece: Piece) -> None:
        """Note that content has come."""
        self.heard_at = self._clock.now()
        self._has_content = True
        self._reasoning = isinstance(piece, Reasoning)

    @property
    def state(self) -> WaitState:
        """Return what is waited for now."""
        if self._reasoning:
            return WaitState.REASONING
        if not self._has_content and (self._alive or not self._reached):
            return WaitState.QUEUED
        return WaitState.SILENT


VITALS: ContextVar[Vitals] = ContextVar("model_vitals")
"""The vitals of the generation that the task works on: set where it begins, read by what is near
the wire, so that a backend need not know of them."""


def current_vitals(clock: Clock) -> Vitals:
    """Return those of the generation that the task works on; without one, of nobody's."""
    known = VITALS.get(None)
    return Vitals(clock) if known is None else known
