"""Stops the database statement that a worker thread is running."""

import threading
from typing import Protocol


class Interruptible(Protocol):
    """Runs one statement at a time and can be told to give up."""

    def interrupt(self) -> None:
        """Make the running statement fail soon; harmless when none runs."""
        ...


class InterruptedWorkError(Exception):
    """Ends work whose caller has gone; nobody is left to read it."""


class Interruption:
    """Connects a caller on the event loop with the work of its thread.

    Calling the object is safe from any thread and at any time: before the statement began it
    keeps it from beginning, while it runs it stops it, afterwards it does nothing.
    """

    def __init__(self) -> None:
        """Start with nothing to stop."""
        self._lock = threading.Lock()
        self._target: Interruptible | None = None
        self._requested = False

    def __call__(self) -> None:
        """Ask the work to stop."""
        with self._lock:
            self._requested = True
            if self._target is not None:
                self._target.interrupt()

    def watch(self, target: Interruptible | None) -> None:
        """Name what to interrupt from now on; None when there is nothing any more.

        Raises:
            InterruptedWorkError: the caller has already gone.
        """
        with self._lock:
            self._target = target
            if self._requested and target is not None:
                raise InterruptedWorkError

    def check(self) -> None:
        """Raise InterruptedWorkError if the caller has gone."""
        if self._requested:
            raise InterruptedWorkError
