"""Gives the pieces of one generation, and says now and then while there are none."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager

from services.model.backend import Piece
from services.model.vitals import VITALS, Vitals
from services.runtime.clock import Clock
from services.runtime.doorbell import Doorbell
from services.runtime.generation import Wait
from services.runtime.heartbeat import HeartbeatSettings

STOP_TIMEOUT_S = 1.0
"""How long a generation that is left may take to close its connection; it needs no wait for it."""

Opening = AbstractAsyncContextManager[AsyncIterator[Piece]]


class _Handoff:
    """Passes pieces, one at a time, from the task that reads to the one that sends."""

    def __init__(self) -> None:
        self._piece: Piece | None = None
        self._bell = Doorbell()
        self._room: asyncio.Future[None] | None = None

    async def put(self, piece: Piece) -> None:
        """Give a piece, once the one before it was taken: who sends slowly is not run over."""
        if self._piece is not None:
            self._room = asyncio.get_running_loop().create_future()
            await self._room
        self._piece = piece
        self._bell.ring()

    async def wait(self, timeout_s: float) -> None:
        """Wait for a piece, until the time is over or `wake` is called."""
        if self._piece is None:
            await self._bell.wait(timeout_s)

    def take(self) -> Piece | None:
        """Return the piece that is there; None when there is none."""
        piece, self._piece = self._piece, None
        if self._room is not None and not self._room.done():
            self._room.set_result(None)
        return piece

    def wake(self) -> None:
        """Wake whoever waits for a piece."""
        self._bell.ring()


async def with_heartbeats(
    opening: Opening, heartbeat: HeartbeatSettings, clock: Clock, until: float
) -> AsyncGenerator[Piece | Wait, None]:
    """Yield what a generation gives; silence becomes a heartbeat.

    A task of its own opens and reads the generation: its waits, their limits and its policies are
    what they are without heartbeats. Close the iterator, and the generation is closed.

    Args:
        opening: opens the generation.
        heartbeat: when silence is to be told.
        clock: the clock.
        until: the instant at which this hop answers by itself.

    Raises:
        SixhopError: as the generation does.
    """
    vitals, handoff = Vitals(clock), _Handoff()
    task = asyncio.create_task(_read(opening, vitals, handoff))
    task.add_done_callback(lambda _: handoff.wake())
    told_at: float | None = None
    try:
        while True:
            now = clock.now()
            due = vitals.heard_at + heartbeat.first_s
            if told_at is not None:
                # A slow writer is not accompanied by a heartbeat for each of its words.
                due = max(due, told_at + heartbeat.interval_near_s(until - now))
            # It may have ended while its last piece was sent, and rings no more.
            if not task.done():
                await handoff.wait(max(0.0, due - now))
            piece = handoff.take()
            if piece is not None:
                yield piece
            elif task.done():
                task.result()
                return
            elif (now := clock.now()) >= due:
                told_at = now
                yield Wait(vitals.state, now - vitals.heard_at, until - now)
    finally:
        task.cancel()
        # Waited for and not awaited: the end of a cancelled task must not become ours.
        await asyncio.wait({task}, timeout=STOP_TIMEOUT_S)
        if task.done() and not task.cancelled():
            # Looked at, so that asyncio does not tell of an error whose reader has gone.
            task.exception()


async def _read(opening: Opening, vitals: Vitals, handoff: _Handoff) -> None:
    VITALS.set(vitals)
    async with opening as pieces:
        async for piece in pieces:
            vitals.hear(piece)
            await handoff.put(piece)
