"""Reads one completion from a provider's bytes, piece by piece."""

import asyncio
import math
from collections import deque
from collections.abc import Iterable
from itertools import groupby
from typing import Protocol

from services.model.backend import Piece, Reasoning, Text, ToolCallPart
from services.model.bytes_clock import BytesClock
from services.model.completion import Completion
from services.model.refusal import Reason, failed, protocol_error
from services.model.sse import Decoder, EventTooLongError
from services.model.vitals import current_vitals
from services.runtime.clock import Clock
from services.runtime.errors import SixhopError

FINISH_GRACE_S = 0.5
"""How long a whole answer waits for its usage and its `[DONE]`."""
FULL_BYTES = 32 * 1024
"""Where so much is there at once, nothing is gained by waiting for more."""
END_GRACE_S = 0.1
"""How long the end of the bytes is waited for after `[DONE]`, to use the connection again."""


class Bytes(Protocol):
    """Is the body of an answer."""

    async def read(self) -> bytes:
        """Return what has arrived, waiting for at least one byte; empty at the end."""
        ...

    async def gather(self, length_s: float) -> None:
        """Let bytes arrive for a while; return sooner when the answer ends, well or not."""
        ...

    def abort(self) -> None:
        """Close the connection now, unless the answer was read to its end."""
        ...


class CompletionWire:
    """Gives the pieces of one completion.

    What arrives within `min_event_interval_s` of a piece is joined into the next one, because
    each costs every hop on its way. The first piece and the end are never held back.
    """

    def __init__(
        self,
        stream: Bytes,
        completion: Completion,
        clock: Clock,
        *,
        until: float,
        min_event_interval_s: float,
    ) -> None:
        """Take the answer's bytes, its contract, and the instant at which its time is over."""
        self._stream = stream
        self._completion = completion
        self._clock = clock
        self._until = until
        self._min_interval_s = min_event_interval_s
        self._decoder = Decoder()
        self._ready: deque[Piece] = deque()
        self._failure: SixhopError | None = None
        self._ended = False
        self._next_at = 0.0
        self._full = False
        self._vitals = current_vitals(clock)
        self._bytes = BytesClock(clock.now())

    async def read(self) -> Piece | None:
        """Return the next piece, or None after the last.

        Raises:
            SixhopError: the answer failed or was cut; what came before was returned before.
        """
        await self._collect()
        if self._ready:
            self._next_at = 0.0 if self._full else self._clock.now() + self._min_interval_s
            return self._ready.popleft()
        if self._failure is not None:
            raise self._failure
        await self._read_to_end()
        return None

    def cancel(self) -> None:
        """Close the connection now, unless the answer was read to its end."""
        self._stream.abort()

    async def _collect(self) -> None:
        """Read until a piece is due, or until nothing more will come."""
        early_s = self._next_at - self._clock.now()
        if early_s > 0 and self._goes_on:
            # Nobody is woken by what comes meanwhile: all of it costs one read.
            await self._stream.gather(early_s)
        while self._goes_on and not self._ready:
            await self._fill()

    @property
    def _goes_on(self) -> bool:
        return not self._ended and self._failure is None

    async def _fill(self) -> None:
        try:
            chunk = await self._next_chunk()
            self._full = len(chunk) >= FULL_BYTES
            if chunk:
                self._vitals.live()
                self._take(chunk)
                self._bytes.see(self._clock.now(), content=not is_sign_of_life(chunk))
            if not chunk or self._completion.done:
                self._ended = True
                self._ready.extend(self._completion.end())
        except SixhopError as error:
            # Kept until what came before it is read: a part of an answer is worth something.
            self._failure = error

    async def _next_chunk(self) -> bytes:
        if not self._completion.complete:
            return await self._read_alive()
        # The answer is whole. Its usage is worth a short wait, and no failure.
        left_s = (self._until - self._clock.now()) / 2
        try:
            async with asyncio.timeout(max(0.0, min(FINISH_GRACE_S, left_s))):
                return await self._stream.read()
        except (TimeoutError, SixhopError):
            return b""

    async def _read_alive(self) -> bytes:
        until = self._bytes.until
        if math.isinf(until):
            return await self._stream.read()
        limit = asyncio.timeout(max(0.0, until - self._clock.now()))
        try:
            async with limit:
                return await self._stream.read()
        except TimeoutError:
            if not limit.expired():
                raise
            raise failed(
                Reason.CONNECTION_LOST,
                "bytes_idle",
                "the provider's connection is dead: its signs of life have stopped",
            ) from None

    def _take(self, chunk: bytes) -> None:
        pieces: list[Piece] = list(self._ready)
        try:
            for event in self._decoder.feed(chunk):
                # One by one: what an event says before it fails counts.
                for piece in self._completion.take(event):
                    pieces.append(piece)  # noqa: PERF402
                if self._completion.done:
                    # Whatever follows says nothing any more, wherever the network has cut.
                    break
        except EventTooLongError as error:
            raise protocol_error("event_too_long", f"the provider's stream: {error}") from None
        finally:
            self._ready = deque(joined(pieces))

    async def _read_to_end(self) -> None:
        try:
            async with asyncio.timeout(END_GRACE_S):
                while await self._stream.read():
                    pass
        except (TimeoutError, SixhopError):
            # Nothing is lost but the use of this connection.
            self._stream.abort()


def is_sign_of_life(chunk: bytes) -> bool:
    """Tell whether bytes are only what keeps a connection alive: comments or empty lines."""
    return chunk.lstrip(b"\r\n")[:1] in (b":", b"")


def joined(pieces: Iterable[Piece]) -> list[Piece]:
    """Return the pieces with neighbouring texts of one kind made one."""
    made: list[Piece] = []
    for kind, run in groupby(pieces, key=type):
        if issubclass(kind, Text | Reasoning):
            made.append(kind("".join(piece.text for piece in run if isinstance(piece, kind))))
        elif issubclass(kind, ToolCallPart):
            parts = [piece for piece in run if isinstance(piece, kind)]
            made.append(kind(parts[-1].name, sum(part.byte_count for part in parts)))
        else:
            made.extend(run)
    return made
