"""Shares the health board with the other routing processes, for as long as there is a store."""

from dataclasses import dataclass, field
from typing import Protocol

from services.routing.board import HealthBoard
from services.routing.peers import Peers, told_by
from services.runtime.clock import Clock
from services.runtime.telemetry import BOARD_ALONE, BOARD_SHARED, get_logger

MISSES = 3
"""After so many exchanges in a row that failed the store is away: one may be a busy moment."""


class StoreAwayError(Exception):
    """Says that the store did not answer in time, or refused."""


class Store(Protocol):
    """Keeps one message of each routing process for a while."""

    async def exchange(self, name: str, message: bytes) -> dict[str, bytes]:
        """Put our message there, and return those of all others by their names.

        Raises:
            StoreAwayError: it cannot be done now.
        """
        ...

    async def close(self) -> None:
        """Let go of the connection; may fail in silence."""
        ...


@dataclass(slots=True)
class BoardSharing:
    """Exchanges what was learned, now and then; no run ever waits for it."""

    board: HealthBoard
    store: Store
    name: str
    """This process."""
    interval_s: float
    clock: Clock
    peers: Peers = field(init=False)
    _sequence: int = 0
    _misses: int = 0
    _shared: bool = False
    _away: bool = False

    def __post_init__(self) -> None:
        """Begin with nobody's word."""
        self.peers = Peers(self.board)

    async def share_forever(self) -> None:
        """Exchange again and again."""
        try:
            while True:
                await self.share()
                await self.clock.sleep(self.interval_s)
        finally:
            await self.store.close()

    async def share(self) -> None:
        """Exchange once; without the store the board is this process's own."""
        self._sequence += 1
        message = told_by(self.board, self._sequence, self.clock.now())
        try:
            others = await self.store.exchange(self.name, message)
        except StoreAwayError as error:
            self._miss(str(error))
            return
        self.peers.take(others, self.clock.now())
        if self._away or not self._shared:
            get_logger().info(BOARD_SHARED, others=sorted(others))
        self._misses, self._away, self._shared = 0, False, True

    def _miss(self, problem: str) -> None:
        self._misses += 1
        if self._misses >= MISSES and not self._away:
            self._away = True
            # Once: from here on what others told ages, and is forgotten by itself.
            get_logger().warning(BOARD_ALONE, problem=problem)
