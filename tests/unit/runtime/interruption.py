"""Cancels a task at its n-th wait, or at the n-th wait of any task that works for it."""

import asyncio
import itertools
from collections.abc import Callable, Coroutine, Generator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tests.unit.runtime.fake_time import FakeTimeLoop

MAX_WAITS = 500
"""More than any play has; one that never ends must not hang the tests."""


class How(StrEnum):
    """Says how the cancel meets the wait."""

    WAITING = "waiting"
    """While it goes on."""
    ANSWERED = "answered"
    """In the turn in which it ends: what was waited for is there, and nobody takes it."""
    TWICE = "twice"
    """While it goes on, and again at the wait after it: cleaning up is cancelled as well."""


@dataclass(slots=True)
class Waits:
    """Counts the waits of all tasks of a loop, from the moment that there is somebody to cancel."""

    number: int
    """The wait to cancel at, from 1."""
    how: How
    count: int = 0
    fired: bool = False
    """Whether there was somebody to cancel, not done yet."""
    cancelled: bool = False
    """Whether that was the end."""
    _target: "asyncio.Task[Any] | None" = None

    async def cancel(self, work: Coroutine[Any, Any, object]) -> None:
        """Run work, and cancel it at the wait."""
        self._target = asyncio.get_running_loop().create_task(work)
        await asyncio.wait({self._target})
        self.cancelled = self._target.cancelled()
        self._target = None

    def note(self, waited_for: object) -> None:
        """Count a wait that begins."""
        if self._target is None:
            return
        self.count += 1
        if self.count == self.number or (
            self.how is How.TWICE and self.fired and self.count == self.number + 1
        ):
            if self.how is How.ANSWERED and isinstance(waited_for, asyncio.Future):
                # Before the task that waits has added its own.
                waited_for.add_done_callback(lambda _: self._cancel())
            else:
                self._cancel()

    def _cancel(self) -> None:
        if self._target is not None and not self._target.done():
            self.fired = True
            self._target.cancel()


class _Counted(Coroutine[Any, Any, Any]):
    """Does the steps of a coroutine, and notes each of its waits."""

    def __init__(self, work: Coroutine[Any, Any, Any], waits: Waits) -> None:
        self._work = work
        self._waits = waits

    def send(self, value: Any, /) -> Any:
        return self._noted(self._work.send(value))

    def throw(self, *error: Any) -> Any:
        return self._noted(self._work.throw(*error))

    def close(self) -> None:
        self._work.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._work.__await__()

    def _noted(self, waited_for: object) -> object:
        self._waits.note(waited_for)
        return waited_for


def everywhere(play: Callable[[Waits], Coroutine[Any, Any, None]], how: How) -> int:
    """Play again and again, with a cancel one wait later each time; return how many waits it has.

    Args:
        play: gets what it has to run its work with.
        how: how the cancel meets the wait.
    """
    for number in itertools.count(1):
        waits = Waits(number, how)
        loop = FakeTimeLoop()
        loop.set_task_factory(
            lambda loop, work, waits=waits, **others: asyncio.Task(
                _Counted(work, waits), loop=loop, **others
            )
        )
        try:
            loop.run_until_complete(play(waits))
        finally:
            loop.close()
        if waits.count < number:
            return number - 1
        if number > MAX_WAITS:
            raise RuntimeError("this play has no end")
    raise AssertionError
