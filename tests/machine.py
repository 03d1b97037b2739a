"""Shares the machine between the workers that run tests, and gives it to one that measures."""

import fcntl
from collections.abc import Iterator
from pathlib import Path

import pytest


class TakesTurns:
    """Is the plugin of one worker of several.

    A test marked with `alone` begins when no other runs, and none begins before it has ended. Who
    waits to be alone keeps the turn, so that the others cannot go on for ever.
    """

    def __init__(self, turn: Path, running: Path) -> None:
        """Take two files that all workers lock; no process of a test inherits the locks."""
        self._turn = turn.open()
        self._running = running.open()
        self._alone = False

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Iterator[None]:
        """Wait for the machine, before the time of the test begins, and give it back."""
        if not self._alone:
            self._take(alone=_is_alone(item))
        try:
            return (yield)
        finally:
            # Whole modules go on alone: what they share has to be started and ended alone, too.
            if not (self._alone and _is_alone(nextitem)):
                self._give_back()

    def _take(self, *, alone: bool) -> None:
        fcntl.flock(self._turn, fcntl.LOCK_EX)
        fcntl.flock(self._running, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        self._alone = alone
        if not alone:
            fcntl.flock(self._turn, fcntl.LOCK_UN)

    def _give_back(self) -> None:
        fcntl.flock(self._running, fcntl.LOCK_UN)
        fcntl.flock(self._turn, fcntl.LOCK_UN)
        self._alone = False


def _is_alone(item: pytest.Item | None) -> bool:
    return item is not None and item.get_closest_marker("alone") is not None
