"""Keeps the last few results of expensive work."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar, cast

T = TypeVar("T")


class BoundedCache:
    """Maps a key to what was built for it; the least recently used goes first.

    Safe in any thread. Two threads that need the same key at the same time build it once: the
    second waits for the first, and builds it itself if the first failed.
    """

    def __init__(self, max_count: int) -> None:
        """Take the number of results to keep, at least 1."""
        self._max_count = max_count
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, Any] = OrderedDict()
        self._building: dict[Hashable, threading.Lock] = {}

    def __len__(self) -> int:
        """Return the number of results kept."""
        return len(self._kept)

    def get(self, key: Hashable, build: Callable[[], T]) -> T:
        """Return the result kept for `key`, or build and keep it.

        The key must determine the type of the result. What `build` raises is not kept.
        """
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return cast(T, self._kept[key])
            turn = self._building.setdefault(key, threading.Lock())
        with turn:
            with self._lock:
                if key in self._kept:
                    self._kept.move_to_end(key)
                    return cast(T, self._kept[key])
            try:
                built = build()
            finally:
                with self._lock:
                    self._building.pop(key, None)
            with self._lock:
                self._kept[key] = built
                while len(self._kept) > self._max_count:
                    self._kept.popitem(last=False)
            return built
