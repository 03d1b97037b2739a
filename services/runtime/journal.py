"""Writes log lines as JSON, with the fields of the call being served."""

import asyncio
import math
import sys
from datetime import datetime
from typing import Any, BinaryIO

import orjson

from services.runtime.call import CURRENT, Inbound
from services.runtime.clock import Clock, MonotonicClock

FLUSH_AFTER_S = 0.05
LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}
URGENT = LEVELS["warning"]

Event = tuple[str, str, dict[str, Any], datetime, Inbound | None, float]
"""Is a line that is not rendered yet: level, event, fields, time, the call, and what is left of it
in seconds."""


class Journal:
    """Renders the lines of one process, and writes them together; warnings at once.

    Written by hand because the logging library that fits costs 7 MB in each process and twice the
    time for each line.
    """

    def __init__(
        self, hop: str, pod: str, level: str, clock: Clock, target: BinaryIO | None = None
    ) -> None:
        """Take who logs, the least level written, and where to; standard error without a target."""
        self._who = {"hop": hop, "pod": pod}
        self._least = LEVELS[level]
        self._clock = clock
        self._target = target
        self._events: list[Event] = []
        self._scheduled = False

    def reconfigure(self, level: str) -> None:
        """Change the least level that is written."""
        self._least = LEVELS[level]

    def write(self, level: str, event: str, fields: dict[str, Any]) -> None:
        """Write one event in 50 ms, or now when it is urgent, unless its level is too low."""
        rank = LEVELS[level]
        if rank < self._least:
            return
        inbound = CURRENT.get(None)
        left_s = 0.0 if inbound is None else inbound.deadline - self._clock.now()
        self._events.append((level, event, fields, self._clock.utc(), inbound, left_s))
        if rank >= URGENT:
            self.flush()
        elif not self._scheduled:
            self._schedule()

    def flush(self) -> None:
        """Write what has been kept.

        Rendered only here, all in one function: many lines in a row cost a fifth of as many between
        calls.
        """
        self._scheduled = False
        if not self._events:
            return
        events, self._events = self._events, []
        lines: list[bytes] = []
        for level, event, fields, time, inbound, left_s in events:
            line: dict[str, Any] = {
                "time": time.isoformat(timespec="milliseconds"),
                "level": level,
                "event": event,
                **self._who,
            }
            if inbound is not None:
                identity = inbound.identity
                line["method"] = inbound.method
                line["run_id"] = identity.run_id
                line["request_id"] = identity.request_id
                line["tenant"] = identity.tenant
                line["trace_id"] = identity.traceparent[3:35]
                line["remaining_ms"] = milliseconds(left_s)
            line |= fields
            lines.append(orjson.dumps(line, default=str))
        block = b"\n".join(lines) + b"\n"
        target = self._target or sys.stderr.buffer
        target.write(block)
        target.flush()

    def _schedule(self) -> None:
        try:
            asyncio.get_running_loop().call_later(FLUSH_AFTER_S, self.flush)
        except RuntimeError:  # no loop yet, or none any more
            self.flush()
        else:
            self._scheduled = True


class Logger:
    """Writes to the journal of this process, whichever it is by then."""

    def __init__(self) -> None:
        """Start with a journal that nobody has named."""
        self.journal = Journal("", "", "info", MonotonicClock())

    def debug(self, event: str, **fields: Any) -> None:
        """Write what only a developer wants to know."""
        self.journal.write("debug", event, fields)

    def info(self, event: str, **fields: Any) -> None:
        """Write what is as it should be."""
        self.journal.write("info", event, fields)

    def warning(self, event: str, **fields: Any) -> None:
        """Write what went wrong and was dealt with."""
        self.journal.write("warning", event, fields)

    def error(self, event: str, **fields: Any) -> None:
        """Write what somebody has to look at."""
        self.journal.write("error", event, fields)


def milliseconds(length_s: float) -> int | None:
    """Return a length in whole milliseconds, or None for a length without end."""
    return round(length_s * 1000) if math.isfinite(length_s) else None
