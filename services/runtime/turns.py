"""Keeps the calls that wait to be let in: the highest level first, then who came first."""

import asyncio

from services.runtime.call import Criticality, Inbound


class Turn:
    """Is the place of one call among those that wait."""

    __slots__ = ("_woken", "admitted", "inbound")

    def __init__(self, inbound: Inbound) -> None:
        """Take the call, whose task is the one that runs."""
        self.inbound = inbound
        self.admitted = False
        """True from the moment at which it was let in; its task may learn of it a little later."""
        self._woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def wake(self) -> None:
        """End its wait."""
        if not self._woken.done():
            self._woken.set_result(None)

    async def wait(self, longest_s: float) -> None:
        """Wait until it is woken, or until the time is over."""
        timer = asyncio.get_running_loop().call_later(longest_s, self.wake)
        try:
            await self._woken
        finally:
            timer.cancel()


class Turns:
    """Holds those that wait. Whatever it is asked takes the same time, however many they are."""

    def __init__(self) -> None:
        """Begin with nobody."""
        self._levels: dict[Criticality, dict[Turn, None]] = {level: {} for level in Criticality}
        self.count = 0
        """How many wait."""

    def count_from(self, level: Criticality) -> int:
        """Return how many wait of a level and of those above it."""
        return sum(len(turns) for other, turns in self._levels.items() if other >= level)

    def join(self, turn: Turn) -> None:
        """Put a call behind the others of its level."""
        self._levels[turn.inbound.identity.criticality][turn] = None
        self.count += 1

    def leave(self, turn: Turn) -> None:
        """Take a call out that waits."""
        del self._levels[turn.inbound.identity.criticality][turn]
        self.count -= 1

    def first(self, level: Criticality) -> Turn | None:
        """Return who has waited longest of a level; None when nobody waits."""
        return next(iter(self._levels[level]), None)
