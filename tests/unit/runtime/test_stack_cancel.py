"""Holds the whole way of a call to leaving nothing behind, wherever it is cancelled.

Every wait of every task that works for a call is cancelled once: while it goes on, in the turn in
which it ends, and again while what follows from the cancel is being put in order. Afterwards no
permit, no place in a queue, no probe, no counter, no timer and no task may be left.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from services.runtime.circuit import BreakerState
from tests.requirements import requirement
from tests.unit.runtime.interruption import How, Waits, everywhere
from tests.unit.runtime.policies.client_samples import failed
from tests.unit.runtime.scripted import Pause, Step
from tests.unit.runtime.wired import (
    HEDGED,
    KEY,
    MODEL,
    ONE_PERMIT,
    Wired,
    spare,
    wired,
)

HANG = (60.0, None)
Play = Callable[[Waits], Coroutine[Any, Any, Wired]]


async def retried_then_replaced(waits: Waits) -> Wired:
    """Fail, wait, fail again, and give something lesser."""
    hop = wired((1.0, failed()))
    await waits.cancel(hop.ask(alternatives=[spare(hop.clock, 1.0)]))
    return hop


async def waiting_for_a_permit(waits: Waits) -> Wired:
    """Wait until somebody else is done, then be answered."""
    hop = wired((0.1, None), tables=[ONE_PERMIT])
    holder = asyncio.create_task(hop.ask())
    await asyncio.sleep(0)
    await waits.cancel(hop.ask())
    await holder
    return hop


async def probing_with_a_wait_for_a_permit(waits: Waits) -> Wired:
    """Be a probe that has to wait for its permit first."""
    hop = wired((0.1, None), tables=[ONE_PERMIT])
    holder = asyncio.create_task(hop.ask())
    await asyncio.sleep(0)
    await hop.half_open()
    await holder
    streaming = asyncio.create_task(hop.read([Pause(0.2), "one"]))
    await asyncio.sleep(0)
    await waits.cancel(hop.ask())
    await streaming
    return hop


async def hedged(waits: Waits) -> Wired:
    """Be late, and have a second attempt beside the first."""
    hop = wired(*[(0.1, None)] * 49, *[(0.09, None)] * 11, HANG, tables=[HEDGED])
    await hop.warm()
    await waits.cancel(hop.ask(remaining_s=2.0))
    return hop


async def hedged_and_won(waits: Waits) -> Wired:
    """Have the second attempt answer, so that the first one is put aside."""
    steps = [(0.1, None)] * 49 + [(0.09, None)] * 11
    hop = wired(*steps, HANG, (0.05, None), tables=[HEDGED])
    await hop.warm()
    await waits.cancel(hop.ask())
    return hop


async def reading_a_stream(waits: Waits) -> Wired:
    """Fail before the first event, wait, and then read a stream to its end."""
    hop = wired(HANG)
    script: list[Step] = [Pause(1.0), "one", Pause(1.0), "two", "three", Pause(1.0)]
    await waits.cancel(hop.read([Pause(1.0), failed(hop=MODEL)], script))
    return hop


async def probing_with_a_stream(waits: Waits) -> Wired:
    """Be a stream that waits for its permit and probes."""
    hop = wired((0.2, None), tables=[ONE_PERMIT])
    await hop.half_open(MODEL)
    holder = asyncio.create_task(hop.ask())
    await asyncio.sleep(0)
    await waits.cancel(hop.read([Pause(0.1), "one", Pause(0.1), "two"]))
    await holder
    return hop


PLAYS: dict[Play, int] = {
    retried_then_replaced: 4,
    waiting_for_a_permit: 3,
    probing_with_a_wait_for_a_permit: 3,
    hedged: 4,
    hedged_and_won: 4,
    reading_a_stream: 6,
    probing_with_a_stream: 4,
}
"""Each play, with the least number of waits that it must have to be worth anything."""


@requirement("bulkhead:no-permit-lost")
@pytest.mark.parametrize("how", How)
@pytest.mark.parametrize("play", PLAYS, ids=lambda play: play.__name__)
def test_a_cancel_at_any_wait_leaves_nothing_behind(play: Play, how: How) -> None:
    async def run(waits: Waits) -> None:
        hop = await play(waits)
        left = await hop.leftovers()
        assert left == {}, f"cancelled at wait {waits.number}: {left}"
        assert hop.state(KEY) is not BreakerState.OPEN

    assert everywhere(run, how) >= PLAYS[play]


@pytest.mark.parametrize("play", PLAYS, ids=lambda play: play.__name__)
def test_a_cancel_at_any_wait_is_never_swallowed(play: Play) -> None:
    async def run(waits: Waits) -> None:
        await play(waits)
        assert waits.cancelled is waits.fired, f"cancelled at wait {waits.number}"

    everywhere(run, How.WAITING)
