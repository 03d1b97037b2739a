"""Asks every replica for its state now and then, and one that is away more often."""

import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from services.routing.board import HealthBoard
from services.routing.config import BoardSettings
from services.routing.record import PolledState, ReplicaRecord
from services.runtime.background import background
from services.runtime.clock import Clock
from services.runtime.errors import SixhopError
from services.runtime.telemetry import REPLICA_AWAY, REPLICA_BACK, get_logger

Ask = Callable[[str], Awaitable[PolledState]]
"""Asks the replica at an address for its state, within a time limit of its own."""

JITTER_RATIO = 0.2
"""By how much a pause may be longer or shorter, so that routing processes do not ask in step."""
LOOK_INTERVAL_S = 0.25
"""How often it is looked whether a replica has gone away since it was asked."""
MAX_BACKOFF = 8.0
"""How many times longer than at first the pause gets between two questions to one that is away."""


@dataclass(slots=True)
class Poller:
    """Asks; one question to each replica at a time."""

    board: HealthBoard
    ask: Ask
    settings: BoardSettings
    clock: Clock
    chance: random.Random
    _away: set[str] = field(default_factory=set)
    """The replicas of which it was logged that they are away."""

    @asynccontextmanager
    async def polling(self) -> AsyncIterator[None]:
        """Ask while the block runs."""
        async with AsyncExitStack() as exits:
            for record in self.board.records.values():
                await exits.enter_async_context(background(self.watch(record)))
            yield

    async def watch(self, record: ReplicaRecord) -> None:
        """Ask one replica again and again, for ever."""
        silent_count = 0
        while True:
            silent_count = 0 if await self.look(record) else silent_count + 1
            self._tell(record)
            if record.away:
                backoff = min(2.0 ** max(0, silent_count - 1), MAX_BACKOFF)
                await self.clock.sleep(self._jittered(self.settings.recheck_interval_s * backoff))
            else:
                await self._rest(record)
                self._tell(record)

    async def look(self, record: ReplicaRecord) -> bool:
        """Ask one replica once; return whether it takes runs."""
        try:
            state = await self.ask(record.address)
        except SixhopError as error:
            record.take_silence(error.message, self.clock.now())
            return False
        record.take_poll(state, self.clock.now())
        self.board.learn_priors()
        return state.ready

    async def _rest(self, record: ReplicaRecord) -> None:
        """Wait until it is time again, or until a run has found that nobody is there."""
        until = self.clock.now() + self._jittered(self.settings.poll_interval_s)
        while not record.away and (left_s := until - self.clock.now()) > 0:
            await self.clock.sleep(min(left_s, LOOK_INTERVAL_S))

    def _jittered(self, length_s: float) -> float:
        return length_s * self.chance.uniform(1 - JITTER_RATIO, 1 + JITTER_RATIO)

    def _tell(self, record: ReplicaRecord) -> None:
        address = record.address
        if record.away and address not in self._away:
            self._away.add(address)
            why = record.own_sickness(self.clock.now())
            get_logger().warning(REPLICA_AWAY, replica=address, problem=why)
        elif not record.away and address in self._away:
            self._away.discard(address)
            get_logger().info(REPLICA_BACK, replica=address, pod=record.pod)
