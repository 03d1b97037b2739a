"""Records what a scriptable provider saw, and lets others wait for it."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


def now_ms() -> float:
    """Return the machine's monotonic clock, which all of its processes share."""
    return time.monotonic() * 1000


@dataclass(slots=True)
class Record:
    """Tells of one request; instants in milliseconds of the monotonic clock."""

    number: int
    connection: int
    arrived_ms: float
    model: str
    behaviour: str
    headers: Mapping[str, str]
    deadline_ms: int | None
    message_count: int
    prompt_characters: int
    max_tokens: int | None
    body: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The whole request; not part of `/log`."""
    chunks_sent: int = 0
    ended: str = ""
    """How it ended; empty while it is open."""
    ended_ms: float | None = None
    closed_ms: float | None = None
    """When the client's connection was gone."""


class Log:
    """Holds the records, and wakes whoever waits whenever one changes."""

    def __init__(self) -> None:
        """Start empty."""
        self.records: list[Record] = []
        self.connections: set[int] = set()
        """The connections that are open now."""
        self._changed = asyncio.Event()

    def arrive(self, record: Record) -> None:
        """Keep a new request."""
        self.records.append(record)
        self.change()

    def end(self, record: Record, how: str) -> None:
        """Note how a request ended; the first that tells is right."""
        if not record.ended:
            record.ended, record.ended_ms = how, now_ms()
            self.change()

    def close(self, connection: int) -> None:
        """Note that a connection is gone."""
        self.connections.discard(connection)
        for record in self.records:
            if record.connection == connection and record.closed_ms is None:
                record.closed_ms = now_ms()
        self.change()

    def change(self) -> None:
        """Wake whoever waits."""
        self._changed.set()
        self._changed = asyncio.Event()

    @property
    def open_count(self) -> int:
        """Return how many requests have not ended."""
        return sum(1 for record in self.records if not record.ended)

    def arrived(self, count: int) -> bool:
        """Return whether so many requests have come."""
        return len(self.records) >= count

    def streaming(self, count: int) -> bool:
        """Return whether so many requests were sent a chunk."""
        return sum(1 for record in self.records if record.chunks_sent) >= count

    def closed(self, count: int) -> bool:
        """Return whether so many requests lost their connection."""
        return sum(1 for record in self.records if record.closed_ms is not None) >= count

    def idle(self, count: int = 1) -> bool:
        """Return whether so many requests have come, and none is open."""
        return self.arrived(count) and self.open_count == 0

    async def wait_for(
        self, condition: Callable[["Log"], bool], *, timeout_s: float = 5.0
    ) -> Record:
        """Wait until a condition holds, and return the last request.

        Raises:
            TimeoutError: it did not hold in time.
        """
        async with asyncio.timeout(timeout_s):
            while not condition(self):
                await self._changed.wait()
        return self.records[-1]

    def as_json(self) -> dict[str, Any]:
        """Return what `/log` answers."""
        requests = [asdict(record) for record in self.records]
        for request in requests:
            del request["body"]
        return {
            "now_ms": now_ms(),
            "open_count": self.open_count,
            "connection_count": len(self.connections),
            "requests": requests,
        }
