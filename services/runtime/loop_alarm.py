"""Looks who is at work while the event loop does not come back."""

import signal
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Protocol

from services.runtime.call import CURRENT, Inbound
from services.runtime.clock import Clock

AGAIN_S = 0.1
"""How soon is looked again, as long as the loop does not come back."""
MAX_LOOKS = 100
"""More say nothing new: the one at work was found long before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Is the call that was at work."""

    method: str
    note: str
    """What the method does not say, such as the name of the tool."""
    run_id: str
    where: str
    """The line of code that was seen most: file, number and function."""

    def __str__(self) -> str:
        """Return it for people."""
        return f"{f'{self.method} {self.note}'.strip()} at {self.where}"


class LoopAlarm(Protocol):
    """Looks who holds the event loop up."""

    def looked_s(self) -> float:
        """Return for how long it has been looking, in seconds: from the first look to the last.

        One that was stopped meanwhile looks only when it goes on, which takes no time.
        """
        ...

    def arm(self, length_s: float) -> None:
        """Forget what was seen, and look when the loop has not come back after so long."""
        ...

    def disarm(self) -> None:
        """Look no more."""
        ...

    def holder(self) -> Holder | None:
        """Return the call that was at work whenever it looked; None when there was none."""
        ...


class NoAlarm:
    """Never looks."""

    def looked_s(self) -> float:
        """Return that it has not."""
        return 0.0

    def arm(self, length_s: float) -> None:
        """Do nothing."""

    def disarm(self) -> None:
        """Do nothing."""

    def holder(self) -> Holder | None:
        """Return nobody."""
        return None


class SignalAlarm:
    """Looks by a signal.

    A handler of Python runs in the main thread between two of its instructions, in the context of
    the task that is at work there: what blocks cannot keep it out, and what runs is known by its
    context. Only for a process whose loop runs in the main thread, and that has no other use for
    SIGALRM.
    """

    def __init__(self, clock: Clock) -> None:
        """Take the clock; the signal is not heard yet."""
        self._clock = clock
        self._seen: list[tuple[Inbound | None, str]] = []
        self._first_at = self._last_at = 0.0

    @classmethod
    def installed(cls, clock: Clock) -> "SignalAlarm":
        """Return one that hears the signal from now on."""
        alarm = cls(clock)
        signal.signal(signal.SIGALRM, alarm.look)
        return alarm

    def looked_s(self) -> float:
        """Return how long lies between the first look and the last."""
        return self._last_at - self._first_at if self._seen else 0.0

    def arm(self, length_s: float) -> None:
        """Look when the loop has not come back after so long, and again and again from then on."""
        signal.setitimer(signal.ITIMER_REAL, length_s, AGAIN_S)
        self._seen.clear()

    def disarm(self) -> None:
        """Look no more."""
        signal.setitimer(signal.ITIMER_REAL, 0.0)

    def holder(self) -> Holder | None:
        """Return the call that was at work in most of the looks."""
        counts = Counter(id(inbound) for inbound, _ in self._seen)
        if not counts:
            return None
        most, count = counts.most_common(1)[0]
        inbound = next(seen for seen, _ in self._seen if id(seen) == most)
        if inbound is None or 2 * count <= len(self._seen):
            return None
        # Where it was most: the last look may have seen it on its way out.
        where = Counter(where for seen, where in self._seen if seen is inbound).most_common(1)[0][0]
        return Holder(
            method=inbound.method, note=inbound.note, run_id=inbound.identity.run_id, where=where
        )

    def look(self, number: int, frame: FrameType | None) -> None:
        """See who is at work now.

        Args:
            number: the signal.
            frame: where the main thread is.
        """
        self._last_at = self._clock.now()
        if not self._seen:
            self._first_at = self._last_at
        if len(self._seen) < MAX_LOOKS:
            self._seen.append((CURRENT.get(None), _where(frame)))


def _where(frame: FrameType | None) -> str:
    if frame is None:
        return "an unknown place"
    code = frame.f_code
    return f"{Path(code.co_filename).name}:{frame.f_lineno} in {code.co_qualname}"
