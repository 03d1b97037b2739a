"""Limits how many requests are worked on, and lets the others wait in order."""

import asyncio
from collections import deque


class QueueFullError(Exception):
    """Refuses a request: all slots are taken, and so are all places to wait."""


class Slots:
    """Lends slots, first come, first served.

    A waiter that leaves gives back what it was lent meanwhile, so no slot is ever lost.
    """

    def __init__(self, limit: int, max_queued: int) -> None:
        """Take how many work at a time, and how many wait."""
        self.limit = limit
        self.max_queued = max_queued
        self.inflight = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def queued(self) -> int:
        """Return how many wait."""
        return len(self._waiting)

    def enter(self) -> "asyncio.Future[None]":
        """Return a place: done at once, or when its turn comes. `leave` must follow.

        Raises:
            QueueFullError: there is no place left.
        """
        place = asyncio.get_running_loop().create_future()
        if self.inflight < self.limit and not self._waiting:
            self.inflight += 1
            place.set_result(None)
        elif len(self._waiting) < self.max_queued:
            self._waiting.append(place)
        else:
            raise QueueFullError
        return place

    def leave(self, place: "asyncio.Future[None]") -> None:
        """Give a place back, whether its turn had come or not."""
        if place in self._waiting:
            self._waiting.remove(place)
        elif place.done() and not place.cancelled():
            self.inflight -= 1
            self._admit()

    def resize(self, limit: int) -> None:
        """Change how many work at a time; those that work already go on."""
        self.limit = limit
        self._admit()

    def _admit(self) -> None:
        while self._waiting and self.inflight < self.limit:
            place = self._waiting.popleft()
            # A waiter that was cancelled takes its place out itself, and may not have run yet.
            if not place.done():
                self.inflight += 1
                place.set_result(None)
