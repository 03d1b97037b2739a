"""Defines the events of a run, and keeps them until they are sent."""

from collections import deque
from dataclasses import dataclass
from enum import StrEnum

from services.runtime.conversation import ToolCall
from services.runtime.doorbell import Doorbell
from services.runtime.generation import Wait

MAX_JOINED_CHARS = 64 * 1024
"""The most text that one event joins; 64 Ki characters are 256 KiB at most."""


class StepState(StrEnum):
    """Tells how a step ended."""

    OK = "ok"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class StepStarted:
    """Says that a step began."""

    step: int
    name: str
    title: str


@dataclass(frozen=True, slots=True)
class StepFinished:
    """Says how a step ended."""

    step: int
    name: str
    state: StepState
    elapsed_s: float
    detail: str = ""


@dataclass(frozen=True, slots=True)
class TextDelta:
    """Adds text to the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Degraded:
    """Says that a part of the answer came from a fallback."""

    mechanism: str
    part: str
    reason: str
    """Why the better way was not taken, for people."""
    age_s: float = 0.0
    """How old the part is; above zero for an earlier answer."""
    error_reason: str = ""
    """The reason of the error behind it, for machines; empty when there was no error."""


@dataclass(frozen=True, slots=True)
class Restarted:
    """Voids the text and the tool calls so far."""

    reason: str


Event = StepStarted | StepFinished | TextDelta | ToolCall | Degraded | Restarted | Wait


class EventBuffer:
    """Keeps events in order between the agent that makes them and the stream that sends them."""

    def __init__(self) -> None:
        """Start empty."""
        self._events: deque[Event] = deque()
        self._bell = Doorbell()

    def put(self, event: Event) -> None:
        """Keep an event."""
        self._events.append(event)
        self._bell.ring()

    def take(self) -> Event | None:
        """Return the next event, or None; texts that follow each other come as one.

        A client that has not read for a while must not be sent more at once than a message holds.
        """
        if not self._events:
            return None
        event = self._events.popleft()
        if not isinstance(event, TextDelta):
            return event
        texts = [event.text]
        length = len(event.text)
        while self._events and isinstance(following := self._events[0], TextDelta):
            length += len(following.text)
            if length > MAX_JOINED_CHARS:
                break
            texts.append(following.text)
            self._events.popleft()
        return TextDelta("".join(texts))

    def wake(self) -> None:
        """Wake up whoever waits, although there is no event."""
        self._bell.ring()

    async def wait(self, timeout_s: float) -> bool:
        """Wait for an event or a call of `wake`; return False when the time was over first."""
        return bool(self._events) or await self._bell.wait(timeout_s)
