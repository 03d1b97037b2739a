"""Shares runs among gateways, off the path of the runs themselves."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Protocol

from gateway.runs.run import Run
from gateway.runs.wanted import Wanted
from services.runtime.background import background
from services.runtime.clock import Clock
from services.runtime.telemetry import RUNS_ALONE, RUNS_SHARED, get_logger, tell_defect

WRITE_INTERVAL_S = 0.1
"""How often what is new is written: another gateway sees a run so soon."""
AWAY_INTERVAL_S = 1.0
"""How often a store that is away is tried."""
MAX_WAITING = 1_000
"""How many runs may wait to be written; the oldest of them are given up."""
BATCH_COUNT = 50
BATCH_BYTES = 4 * 1024 * 1024
LAST_WRITE_S = 1.0
"""How long the last write may take when the gateway stops."""


class StoreAwayError(Exception):
    """Says that the store did not answer in time, or refused."""


class SharedRuns(Protocol):
    """Is where gateways keep runs that all of them can read."""

    async def write(self, runs: Sequence[Run]) -> None:
        """Keep runs as they are now.

        Raises:
            StoreAwayError: it could not.
        """
        ...

    async def find(self, tenant: str, run_id: str) -> Run | None:
        """Return a tenant's run with its events; None when it is not there.

        Raises:
            StoreAwayError: it could not be asked.
        """
        ...

    async def list(self, wanted: Wanted) -> Sequence[Run]:
        """Return a tenant's runs without their events, the newest first, and one more than wanted.

        Raises:
            StoreAwayError: it could not be asked.
        """
        ...

    async def file(self, tenant: str, run_id: str, name: str) -> bytes | None:
        """Return the bytes of a file of a run; None when it is not there.

        Raises:
            StoreAwayError: it could not be asked.
        """
        ...

    async def close(self) -> None:
        """Let go of the connections."""
        ...


class Outbox:
    """Writes runs to the store in batches. Whoever puts a run in waits for nothing."""

    def __init__(self, store: SharedRuns, clock: Clock) -> None:
        """Take where runs go, and the clock."""
        self._store = store
        self._clock = clock
        self._waiting: dict[int, Run] = {}
        self._away = False
        self._log = get_logger()

    def put(self, run: Run) -> None:
        """Have a run written as it will be then; it takes one place however often it is put."""
        self._waiting[id(run)] = run
        if len(self._waiting) > MAX_WAITING:
            del self._waiting[next(iter(self._waiting))]

    async def write_forever(self) -> None:
        """Write what comes, for ever."""
        while True:
            await self._clock.sleep(AWAY_INTERVAL_S if self._away else WRITE_INTERVAL_S)
            while self._waiting and await self._write():
                pass

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        """Write what comes while the block runs, and what is left at its end."""
        try:
            async with background(self.write_forever()):
                yield
        finally:
            await self._write_rest()
            await self._store.close()

    async def _write_rest(self) -> None:
        try:
            async with asyncio.timeout(LAST_WRITE_S):
                while self._waiting and await self._write():
                    pass
        except TimeoutError:
            return

    async def _write(self) -> bool:
        batch = self._take_batch()
        written = False
        try:
            await self._store.write([run for run in batch if not run.gone])
            written = True
        except StoreAwayError as error:
            self._note(str(error))
        except Exception as error:  # what cannot be written must not keep the rest from it
            tell_defect(error)
            written = True
        finally:
            if not written:
                self._put_back(batch)
        if written:
            self._note("")
        return written

    def _take_batch(self) -> Sequence[Run]:
        batch: list[Run] = []
        size = 0
        for run in self._waiting.values():
            size += run.byte_count
            if batch and (size > BATCH_BYTES or len(batch) >= BATCH_COUNT):
                break
            batch.append(run)
        for run in batch:
            del self._waiting[id(run)]
        return batch

    def _put_back(self, batch: Sequence[Run]) -> None:
        # Behind what came meanwhile; where there is no room for both, the newer is of more use.
        for run in batch:
            if len(self._waiting) < MAX_WAITING:
                self._waiting.setdefault(id(run), run)

    def _note(self, problem: str) -> None:
        if bool(problem) is self._away:
            return
        self._away = bool(problem)
        if problem:
            self._log.warning(RUNS_ALONE, problem=problem)
        else:
            self._log.info(RUNS_SHARED)
