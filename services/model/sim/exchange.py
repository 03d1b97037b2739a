"""Holds what one answer is made with, and the steps that all answers share."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from email.utils import format_datetime
from typing import Any

import orjson

from services.model.sim.asking import Ask
from services.model.sim.config import SimSettings
from services.model.sim.dialect import Composition, RefusalError, error_body
from services.model.sim.faults import Fault
from services.model.sim.framing import Framer
from services.model.sim.log import COMPLETE, REFUSED, Log, Record
from services.model.sim.queueing import Slots
from services.model.sim.timing import Pace, Timing
from services.model.sim.wire import Wire
from services.runtime.clock import Clock

JSON = "application/json"
EVENT_STREAM = "text/event-stream; charset=utf-8"


class TrippedError(Exception):
    """Says that the fault's instant has come in the middle of a wait."""


class EndedError(Exception):
    """Says that a fault has ended the answer, and that nothing more is to be written."""


@dataclass(slots=True, kw_only=True)
class Exchange:
    """Is one request on the way to its answer."""

    ask: Ask
    fault: Fault
    wire: Wire
    framer: Framer
    pace: Pace
    record: Record
    composition: Composition
    settings: SimSettings
    timing: Timing
    slots: Slots
    log: Log
    clock: Clock
    arrived: float
    authorization: str = ""
    """The header of that name, which the log does not keep."""
    slow: Callable[[], float] = lambda: 1.0
    """Returns the factor of all times that a script asks for now."""

    @property
    def trips(self) -> bool:
        """Return whether a fault ends the answer before its own end."""
        return self.fault.ending != "complete"

    @property
    def token_limit(self) -> int | None:
        """Return how many tokens are written before the fault; None when none is waited for."""
        fault = self.fault
        at_token = fault.stage in ("token", "event", "chunk") and fault.after_s < 0
        return fault.at_token if self.trips and at_token else None

    @property
    def factor(self) -> float:
        """Return how much slower all is now, for load and by the script."""
        return self.slow() * self.timing.slowdown(self.slots.inflight, self.slots.limit)

    async def pause(self, length_s: float, *, silent: bool = False) -> None:
        """Wait, with a comment now and then where the fault says so, unless it is to be silent.

        Raises:
            TrippedError: the fault's instant has come first.
        """
        until = self.clock.now() + length_s
        after_s = self.fault.after_s
        trips_at = self.arrived + after_s if self.trips and after_s >= 0 else math.inf
        every_s = 0.0 if silent else self.fault.keep_alive_s
        while True:
            left_s = min(until, trips_at) - self.clock.now()
            await self.clock.sleep(min(left_s, every_s) if every_s > 0 else left_s)
            now = self.clock.now()
            if now >= trips_at:
                raise TrippedError
            if now >= until:
                return
            if every_s > 0:
                await self.keep_alive()

    async def keep_alive(self) -> None:
        """Write what keeps the connection alive and says nothing; a head comes first."""
        await self.head()
        await self.write(self.framer.comment() if self.ask.stream else b"\n")
        self.record.comments_written += 1

    async def head(self, *, length: int | None = None) -> None:
        """Write the head of a good answer, once."""
        if self.wire.begun:
            return
        self.record.status = 200
        kind = self.fault.content_type or (EVENT_STREAM if self.ask.stream else JSON)
        await self.wire.head(
            200,
            {"content-type": kind, "cache-control": "no-cache", **self._identity()},
            length=length,
            chunked=self.fault.chunked,
            pause_s=self.fault.head_pause_s,
        )

    async def write(self, block: bytes) -> None:
        """Write a block of the body in the pieces that the fault asks for."""
        await self.wire.body(self.framer.pieces(block), self.fault.write_pause_s)

    async def refuse(self, refusal: RefusalError) -> None:
        """Answer by a status, with the fault's Retry-After."""
        record, fault = self.record, self.fault
        record.status, record.refusal = refusal.status, refusal.name
        headers = {"content-type": JSON, **self._identity()}
        if fault.retry_after_s >= 0 and fault.status != 200:
            wait_s = math.ceil(fault.retry_after_s)
            record.retry_after_s = wait_s
            # A date has whole seconds; rounded down it would ask for less than the log says.
            at = self.clock.utc() + timedelta(seconds=wait_s, microseconds=999_999)
            as_date = format_datetime(at, usegmt=True)
            headers["retry-after"] = as_date if fault.retry_after_date else str(wait_s)
        if fault.location:
            headers["location"] = fault.location
        body = orjson.dumps(refusal.body)
        await self.wire.head(refusal.status, headers, length=len(body), pause_s=fault.head_pause_s)
        await self.wire.send(body)
        self.log.end(record, REFUSED)

    def refusal(self, status: int, message: str, name: str = "", **more: str) -> RefusalError:
        """Return a refusal in the words of the dialect."""
        body = error_body(self.settings.dialect, status, message, **more)
        return RefusalError(status, body, name=name or str(status))

    async def hold(self) -> None:
        """Keep the connection as it is, with comments where the fault says so, then close it."""
        until = self.clock.now() + self.fault.hold_s
        every_s = self.fault.keep_alive_s or self.fault.hold_s
        while (left_s := until - self.clock.now()) > 0 and not self.wire.gone:
            await self.clock.sleep(min(every_s, left_s))
            if self.fault.keep_alive_s > 0:
                await self.keep_alive()
        self.wire.close()

    async def break_off(self, partial: bytes = b"") -> None:
        """End the connection, or fall silent, as the fault says; a part may go before it.

        Raises:
            EndedError: always.
        """
        if partial and self.fault.stage == "chunk":
            await self.wire.cut_chunk(partial)
        elif partial:
            await self.write(partial)
        # Some event loops write at the end of a turn, and a reset would drop what was written.
        await self.clock.sleep(0)
        match self.fault.ending:
            case "stall":
                await self.hold()
            case "reset":
                self.wire.reset()
            case "close" if self.fault.clean:
                await self.wire.end()
            case _:
                self.wire.close()
        self.ended()
        raise EndedError

    async def break_at(self, stage: str) -> None:
        """Break the answer off if its fault belongs here."""
        if self.trips and self.fault.stage == stage:
            await self.break_off()

    def wrote_token(self) -> None:
        """Count a token."""
        record = self.record
        if record.first_token_ms is None:
            record.first_token_ms = self.log.now_ms()
        record.tokens_written += 1
        record.tokens_in_vain += self.wire.gone
        self.log.change()

    def ended(self) -> None:
        """Note that the fault has ended the answer."""
        self.log.end(self.record, self.record.fault or self.fault.ending)

    def completed(self) -> None:
        """Note that the whole answer was written."""
        self.record.finish_reason = self.finish_reason or ""
        self.log.end(self.record, COMPLETE)

    @property
    def finish_reason(self) -> str | None:
        """Return what the answer says about its end."""
        return self.composition.finish_reason if self.fault.finish else None

    def frame(self, **fields: Any) -> dict[str, Any]:
        """Return what every object of the answer has."""
        kind = "chat.completion.chunk" if self.ask.stream else "chat.completion"
        return {
            "id": f"chatcmpl-sim-{self.record.digest}-{self.record.attempt}",
            "object": kind,
            "created": CREATED,
            "model": self.ask.model,
            "system_fingerprint": "sim",
            **fields,
        }

    def _identity(self) -> dict[str, str]:
        given = self.record.headers.get("x-request-id")
        return {"x-request-id": given} if given else {}


CREATED = 1_767_225_600
"""The `created` of every answer, 2026 in seconds, so that a replay is the same to the byte."""
