"""Scripts what a dependency does, for the tests of streams and of the choke point."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from services.runtime.call import CURRENT, Call, CallLimits, Inbound
from services.runtime.clock import Clock
from services.runtime.guarding import Guard
from services.runtime.outgoing import Outgoing
from services.runtime.policies.deadline import ClientDeadline, margin_s
from services.runtime.stack import ClientStack
from services.runtime.statistics import Activity
from services.runtime.telemetry import AttemptTelemetry


@dataclass(frozen=True, slots=True)
class Pause:
    """Lets time pass."""

    length_s: float


Step = Pause | str | BaseException


class ScriptedWire:
    """Gives events after pauses, then its end: an exception of the script, or a clean one."""

    def __init__(self, clock: Clock, script: Sequence[Step]) -> None:
        """Take what to do; after the script the stream ends well."""
        self._clock = clock
        self._script = list(script)
        self._pending: asyncio.Future[None] | None = None
        self.cancel_count = 0
        """How often the stream was closed."""

    async def read(self) -> str | None:
        """Do the script's next step."""
        while self._script:
            step = self._script.pop(0)
            if isinstance(step, Pause):
                await self._sleep(step.length_s)
            elif isinstance(step, BaseException):
                raise step
            else:
                return step
        return None

    def cancel(self) -> None:
        """Close the stream: a pending read ends with a cancel that nobody asked its task for."""
        self.cancel_count += 1
        if self._pending is not None and not self._pending.done():
            self._pending.cancel()

    async def _sleep(self, length_s: float) -> None:
        self._pending = asyncio.ensure_future(self._clock.sleep(length_s))
        try:
            await self._pending
        finally:
            self._pending.cancel()


class RecordingGuard(Guard[Call]):
    """Remembers how attempts began and ended."""

    def __init__(self) -> None:
        """Remember nothing yet."""
        self.log: list[str] = []

    def before(self, call: Call) -> None:
        """Remember that an attempt began."""
        self.log.append("begin")

    def after(self, call: Call, error: BaseException | None) -> None:
        """Remember how it ended."""
        self.log.append("ok" if error is None else type(error).__name__)


def choke_point(clock: Clock, limits: CallLimits, *guards: RecordingGuard) -> Outgoing:
    """Return the way from domain to model, with the guards around each attempt."""
    stack = ClientStack(
        attempt_guards=[AttemptTelemetry(clock, Activity()), ClientDeadline(clock), *guards]
    )
    return Outgoing("domain", "model", limits, stack, clock)


@contextmanager
def serving(clock: Clock, remaining_s: float = 30.0) -> Iterator[Inbound]:
    """Be inside of a call that arrived just now."""
    now = clock.now()
    inbound = Inbound(
        "domain", "RunAgent", True, now, now + remaining_s, margin_s=margin_s(remaining_s)
    )
    token = CURRENT.set(inbound)
    try:
        yield inbound
    finally:
        CURRENT.reset(token)
