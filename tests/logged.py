"""Reads what a test makes the suite log."""

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from services.runtime.clock import Clock, MonotonicClock
from services.runtime.journal import Journal
from services.runtime.telemetry import get_logger


class Logged:
    """Holds the lines that were logged while it was open."""

    def __init__(self, journal: Journal, target: io.BytesIO) -> None:
        """Take the journal that is being written, and where to."""
        self._journal = journal
        self._target = target

    def lines(self) -> list[dict[str, Any]]:
        """Return every line so far."""
        self._journal.flush()
        return [json.loads(line) for line in self._target.getvalue().splitlines()]

    def events(self) -> list[str]:
        """Return the names of the events so far."""
        return [line["event"] for line in self.lines()]


@contextmanager
def logged(hop: str = "tool", pod: str = "tool-7", clock: Clock | None = None) -> Iterator[Logged]:
    """Log into memory while the block runs."""
    target = io.BytesIO()
    journal = Journal(hop, pod, "debug", clock or MonotonicClock(), target)
    before, get_logger().journal = get_logger().journal, journal
    try:
        yield Logged(journal, target)
    finally:
        get_logger().journal = before
