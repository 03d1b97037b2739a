"""Keeps what truly happened to every request."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from services.runtime.clock import Clock

HIDDEN_HEADERS = ("authorization", "x-api-key", "api-key")
COMPLETE = "complete"
REFUSED = "refused"
CLIENT_LEFT = "client_left"
STOPPED = "stopped"
NOT_READ = "not_read"
DOWN = "down"
MAX_BODIES = 100
"""So many of the latest requests are kept whole; a long prompt takes a megabyte."""
CONTEXT_OVERFLOW = "context_overflow"
"""The refusal of a prompt that is too long."""


@dataclass(slots=True, kw_only=True)
class Record:
    """Tells of one request. Instants are milliseconds of the machine's monotonic clock."""

    number: int
    """Counts requests from 1, since the last reset."""
    connection: int
    """Which connection it came by."""
    request_id: str
    """Its X-Request-ID, else a digest of its body."""
    attempt: int
    """The how many-th request with that id it is."""
    arrived_ms: float
    model: str
    stream: bool
    tenant: str
    fault: str
    """The rule that it met, as it was written; empty for none."""
    chosen_by: str
    """What chose that rule: header, model, words, queue, script or rules."""
    digest: str
    """A digest of its model, messages and tools: the same for the same question."""
    headers: Mapping[str, str]
    """Its headers, names in lower case; keys are not shown."""
    deadline_ms: int | None
    """What it said that its sender waits, by X-Sixhop-Deadline-Ms."""
    message_count: int = 0
    prompt_tokens: int = 0
    max_tokens: int | None = None
    status: int = 0
    """What it was answered; 0 while nothing was."""
    refusal: str = ""
    """Why it was refused; empty when it was not."""
    retry_after_s: float | None = None
    """The Retry-After that it was given."""
    queued_ms: float = 0.0
    """How long it waited for a slot."""
    first_token_ms: float | None = None
    tokens_written: int = 0
    """Tokens of reasoning, text or arguments that were written, or made for an answer in one."""
    tokens_in_vain: int = 0
    """Those of them that were made after the client had left."""
    comments_written: int = 0
    finish_reason: str = ""
    ended: str = ""
    """How it ended: empty while open, `complete`, `refused`, `client_left`, `not_read`, `down`,
    `stopped`, `queue_timeout`, or the fault's name."""
    ended_ms: float | None = None
    client_left_ms: float | None = None
    """When the client's end of the connection was gone, if that was before the end."""
    closed_ms: float | None = None
    """When the connection was gone."""
    body: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The whole request; not part of `/sim/log`."""

    @property
    def has_id(self) -> bool:
        """Return whether its sender gave it an id."""
        return "x-request-id" in self.headers

    def as_json(self) -> dict[str, Any]:
        """Return all but the body."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name != "body"}


class Log:
    """Holds the records, and wakes whoever waits whenever one changes."""

    def __init__(self, clock: Clock, max_count: int) -> None:
        """Take how many are kept."""
        self._clock = clock
        self.records: deque[Record] = deque(maxlen=max_count)
        self.count = 0
        """How many requests have come, those included that are not kept."""
        self.connections: set[int] = set()
        """The connections that are open now."""
        self.side_counts: dict[str, int] = {}
        """How often `/models` and `/health` were asked for."""
        self._attempts: dict[str, int] = {}
        self._waiting: set[asyncio.Future[None]] = set()
        self._max_ids = max_count
        self._open: dict[int, list[Record]] = {}
        """The records of each open connection."""

    def now_ms(self) -> float:
        """Return the present instant."""
        return self._clock.now() * 1000

    def attempt(self, request_id: str) -> int:
        """Return the how many-th request with an id now comes."""
        count = self._attempts.pop(request_id, 0) + 1
        self._attempts[request_id] = count
        if len(self._attempts) > self._max_ids:
            self._attempts.pop(next(iter(self._attempts)))
        return count

    def arrive(self, record: Record) -> None:
        """Keep a new request."""
        self.records.append(record)
        self._open.setdefault(record.connection, []).append(record)
        if len(self.records) > MAX_BODIES:
            self.records[-MAX_BODIES - 1].body = {}
        self.change()

    def end(self, record: Record, how: str) -> None:
        """Note how a request ended; the first that tells is right."""
        if not record.ended:
            record.ended, record.ended_ms = how, self.now_ms()
            self.change()

    def leave(self, record: Record) -> None:
        """Note that the client has left while its request was open."""
        if not record.ended and record.client_left_ms is None:
            record.client_left_ms = self.now_ms()
            self.change()

    def close(self, connection: int) -> None:
        """Note that a connection is gone."""
        self.connections.discard(connection)
        for record in self._open.pop(connection, ()):
            record.closed_ms = self.now_ms()
        self.change()

    def reset(self) -> None:
        """Forget all requests that have ended, and all counts."""
        open_ones = [record for record in self.records if not record.ended]
        self.records.clear()
        self.records.extend(open_ones)
        self.count = len(open_ones)
        self._attempts.clear()
        self.side_counts.clear()
        self.change()

    def change(self) -> None:
        """Wake whoever waits."""
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, set()
        for each in waiting:
            if not each.done():
                each.set_result(None)

    @property
    def open_count(self) -> int:
        """Return how many requests have not ended."""
        return _count(self.records, lambda record: not record.ended)

    def reached(self, what: str, count: int) -> bool:
        """Return whether so many requests have come so far; see `CONDITIONS`."""
        return CONDITIONS[what](self, count)

    async def wait_for(
        self, condition: Callable[["Log"], bool], *, timeout_s: float = 5.0
    ) -> Record:
        """Wait until a condition holds, and return the last request; there must be one by then.

        Raises:
            TimeoutError: it did not hold in time.
        """
        await self.wait_until(condition, timeout_s=timeout_s)
        return self.records[-1]

    async def wait_until(
        self, condition: Callable[["Log"], bool], *, timeout_s: float = 5.0
    ) -> None:
        """Wait until a condition holds.

        Raises:
            TimeoutError: it did not hold in time.
        """
        async with asyncio.timeout(timeout_s):
            while not condition(self):
                future = asyncio.get_running_loop().create_future()
                self._waiting.add(future)
                await future

    def as_json(self, request_id: str = "") -> dict[str, Any]:
        """Return what `/sim/log` answers: all requests, or those with one id."""
        kept = [r for r in self.records if not request_id or r.request_id == request_id]
        return {
            "now_ms": self.now_ms(),
            "request_count": self.count,
            "open_count": self.open_count,
            "side_counts": self.side_counts,
            "connection_count": len(self.connections),
            "requests": [record.as_json() for record in kept],
        }


def _count(records: Iterable[Record], holds: Callable[[Record], bool]) -> int:
    return sum(1 for record in records if holds(record))


CONDITIONS: Mapping[str, Callable[[Log, int], bool]] = {
    "arrived": lambda log, n: log.count >= n,
    "streaming": lambda log, n: _count(log.records, lambda r: r.tokens_written > 0) >= n,
    "left": lambda log, n: _count(log.records, lambda r: r.client_left_ms is not None) >= n,
    "closed": lambda log, n: _count(log.records, lambda r: r.closed_ms is not None) >= n,
    "ended": lambda log, n: _count(log.records, lambda r: bool(r.ended)) >= n,
    "idle": lambda log, n: log.count >= n and log.open_count == 0,
}
"""What can be waited for: that so many requests have come, been sent a token, lost their client,
lost their connection, or ended; or that so many have come and none is open."""
