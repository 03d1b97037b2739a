"""Writes log lines as JSON, with the fields of the call being served."""

import asyncio
import math
import sys
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any, BinaryIO

import orjson

from services.runtime.call import CURRENT, Inbound
from services.runtime.clock import Clock, MonotonicClock

FLUSH_AFTER_S = 0.05
LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}


Fields = dict[str, Any] | Callable[[], dict[str, Any]]
"""The fields of a line, or what makes them when it is rendered."""


class LineBuffer:
    """Collects log lines and writes them together; warnings are written at once."""

    def __init__(self, target: BinaryIO | None = None) -> None:
        """Take the stream to write to; standard error, as it is by then, without one."""
        self._target = target
        self._lines: list[bytes | Callable[[], bytes]] = []
        self._scheduled = False

    def add(self, line: bytes | Callable[[], bytes], *, urgent: bool) -> None:
        """Keep a line, or what makes it, until the next flush: in 50 ms, or now when urgent."""
        self._lines.append(line)
        if urgent:
            self.flush()
        elif not self._scheduled:
            self._schedule()

    def flush(self) -> None:
        """Write what has been kept."""
        self._scheduled = False
        if self._lines:
            lines, self._lines = self._lines, []
            made = [line if isinstance(line, bytes) else line() for line in lines]
            block = b"\n".join(made) + b"\n"
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


class Journal:
    """Renders the lines of one process.

    Written by hand because the logging library that fits costs 7 MB in each process and twice the
    time for each line.
    """

    def __init__(
        self, hop: str, pod: str, level: str, clock: Clock, target: BinaryIO | None = None
    ) -> None:
        """Take who logs, the least level written, and where to; standard error without a target."""
        self.buffer = LineBuffer(target)
        self._who = {"hop": hop, "pod": pod}
        self._least = LEVELS[level]
        self._clock = clock

    def reconfigure(self, level: str) -> None:
        """Change the least level that is written."""
        self._least = LEVELS[level]

    def write(self, level: str, event: str, fields: Fields) -> None:
        """Write one event, unless its level is too low."""
        if LEVELS[level] < self._least:
            return
        inbound = CURRENT.get(None)
        left_s = 0.0 if inbound is None else inbound.deadline - self._clock.now()
        # Rendered with the flush: many lines in a row cost a fifth of as many between calls.
        line = partial(self._render, level, event, fields, self._clock.utc(), inbound, left_s)
        self.buffer.add(line, urgent=LEVELS[level] >= LEVELS["warning"])

    def _render(
        self,
        level: str,
        event: str,
        fields: Fields,
        time: datetime,
        inbound: Inbound | None,
        left_s: float,
    ) -> bytes:
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
        line |= fields if isinstance(fields, dict) else fields()
        return orjson.dumps(line, default=str)


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

    def later(self, event: str, fields: Callable[[], dict[str, Any]]) -> None:
        """Write what is as it should be, with fields that are made with the line."""
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
