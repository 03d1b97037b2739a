"""Follows a file that changes while the gateway runs."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from services.runtime.clock import Clock
from services.runtime.telemetry import (
    ACCESS_CHANGED,
    ACCESS_UNREADABLE,
    ACCESS_WRITABLE,
    get_logger,
)

T = TypeVar("T")

INTERVAL_S = 0.25
"""How often the file is looked at, seconds: a key that is revoked is of no use a second later."""
MAX_BYTES = 4 * 1024 * 1024
OTHERS_WRITE = 0o022
"""The permissions of others than the owner to write."""
Stamp = tuple[int, int, int, int]
"""Changes with a file: which it is, when it was written, how long it is, who may do what to it."""


class Follower(Generic[T]):
    """Holds what a file said when it could last be read."""

    def __init__(self, path: Path, read: Callable[[bytes], T], clock: Clock) -> None:
        """Take the file, and what makes a value of its content, or raises ValueError."""
        self.path = path
        self.value: T | None = None
        """What it said; None while it has never been there, or has never made sense."""
        self.found = False
        """Whether it has ever been there, even if it could not be read."""
        self._read = read
        self._clock = clock
        self._stamp: Stamp | None = None
        self._problem = ""
        self._writable = False

    def look(self) -> None:
        """Read the file if it has changed; what was read before stays when it cannot be.

        For the start, when nobody waits; later `follow_forever` does it.
        """
        self._take(*self._changed())

    async def follow_forever(self) -> None:
        """Look again and again, in a thread: a disk may be slow."""
        while True:
            await self._clock.sleep(INTERVAL_S)
            self._take(*await asyncio.to_thread(self._changed))

    def _changed(self) -> tuple[Stamp | None, bytes | None, str]:
        """Return the file's stamp, its content if that has changed, and why it cannot be read."""
        try:
            with self.path.open("rb") as file:
                status = os.fstat(file.fileno())
                stamp = (status.st_ino, status.st_mtime_ns, status.st_size, status.st_mode)
                if stamp == self._stamp:
                    return stamp, None, ""
                return stamp, file.read(MAX_BYTES + 1), ""
        except FileNotFoundError:
            # Never there, it is no problem: there are no keys yet.
            return None, None, "it is gone" if self.value is not None else ""
        except OSError as error:
            return None, None, error.strerror or type(error).__name__

    def _take(self, stamp: Stamp | None, content: bytes | None, problem: str) -> None:
        if content is not None:
            problem = self._parse(content)
            # Also of one that makes no sense: to read it again makes no more.
            self._stamp = stamp
            self._note_writers(stamp)
        elif stamp is None:
            self._stamp = None
        elif stamp == self._stamp:
            return
        self.found = self.found or stamp is not None or bool(problem)
        if problem and problem != self._problem:
            get_logger().error(ACCESS_UNREADABLE, file=str(self.path), problem=problem)
        self._problem = problem

    def _note_writers(self, stamp: Stamp | None) -> None:
        writable = stamp is not None and bool(stamp[-1] & OTHERS_WRITE)
        if writable and not self._writable:
            get_logger().warning(
                ACCESS_WRITABLE,
                file=str(self.path),
                problem="others than its owner can write it, and so let anybody in; chmod go-w",
            )
        self._writable = writable

    def _parse(self, content: bytes) -> str:
        if len(content) > MAX_BYTES:
            return f"it has more than {MAX_BYTES:,} bytes"
        try:
            self.value = self._read(content)
        except ValueError as error:
            return str(error)
        get_logger().info(ACCESS_CHANGED, file=str(self.path))
        return ""
