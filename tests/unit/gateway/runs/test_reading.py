"""Tests how long a run of another gateway is looked for."""

import asyncio
from collections.abc import Sequence

import pytest

from gateway.runs.reading import GRACE_S, LOOK_S, RunReader
from gateway.runs.record import RunRecord
from gateway.runs.run import Run
from gateway.runs.sharing import SharedRuns, StoreAwayError
from gateway.runs.wanted import Wanted
from services.runtime.clock import ManualClock
from services.runtime.errors import SelfUnavailableError
from tests.requirements import requirement
from tests.unit.gateway.runs.made import Gateway

BUDGET_S = 30.0


class Away(SharedRuns):
    """Is away."""

    async def write(self, runs: Sequence[Run]) -> None:
        """Keep nothing."""
        raise StoreAwayError

    async def find(self, tenant: str, run_id: str) -> Run | None:
        """Find nothing."""
        raise StoreAwayError

    async def list(self, wanted: Wanted) -> Sequence[Run]:
        """List nothing."""
        raise StoreAwayError

    async def file(self, tenant: str, run_id: str, name: str) -> bytes | None:
        """Give nothing."""
        raise StoreAwayError

    async def close(self) -> None:
        """Do nothing."""


@requirement("runs:shared")
async def test_a_run_elsewhere_is_not_waited_for_for_ever_while_the_store_is_away(
    clock: ManualClock,
) -> None:
    record = RunRecord(
        run_id="r",
        request_id="q",
        tenant="",
        gateway="gateway-2",
        method="Run",
        started_ms=int(clock.utc().timestamp() * 1000),
        budget_ms=int(BUDGET_S * 1000),
    )
    run = Run(record, None, clock)
    reader = RunReader(Gateway(clock).memory, clock, Away())
    began = clock.now()

    waiting = asyncio.create_task(reader.ended(run))
    async with asyncio.timeout(10):
        while not waiting.done():
            await asyncio.sleep(0)
            clock.advance(LOOK_S)

    with pytest.raises(SelfUnavailableError):
        await waiting
    waited_s = clock.now() - began
    assert BUDGET_S + GRACE_S <= waited_s <= BUDGET_S + GRACE_S + 4 * LOOK_S
