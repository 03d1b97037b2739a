"""Shares what a gateway has only so many of among its tenants."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from services.runtime.errors import LoadShedError, QuotaExceededError

PART = 4
"""A tenant may hold one of so many parts of all places."""
RETRY_AFTER_S = 1.0
"""When to come back; nobody knows when a place comes free."""


class Places:
    """Counts places that are held. Touched by the event loop only.

    A tenant has a quarter of them at most, so that it alone cannot shut the others out. Where
    nobody is asked who comes, all are the one tenant without a name, which may have all.
    """

    def __init__(self, what: str, setting: str, max_count: int) -> None:
        """Take what the places are.

        Args:
            what: what is going on in one, for people, such as `streams are read`.
            setting: the key in `[gateway.runs]` that says how many there are.
            max_count: how many there are.
        """
        self._what = what
        self._setting = setting
        self._max_count = max_count
        self._held: Counter[str] = Counter()

    @contextmanager
    def held(self, tenant: str) -> Iterator[None]:
        """Hold a place while the block runs.

        Raises:
            LoadShedError: all are held.
            QuotaExceededError: the tenant has its part of them.
        """
        part = max(1, self._max_count // PART) if tenant else self._max_count
        where = f"gateway.runs.{self._setting} is {self._max_count}"
        if self._held.total() >= self._max_count:
            raise LoadShedError(
                f"{self._max_count} {self._what} already ({where}); come back later",
                cause=self._setting,
                retry_after_s=RETRY_AFTER_S,
            )
        if self._held.get(tenant, 0) >= part:
            raise QuotaExceededError(
                f"{part} {self._what} already for tenant {tenant}, which is its part ({where}); "
                "wait until one has ended",
                cause=self._setting,
                retry_after_s=RETRY_AFTER_S,
            )
        # No await between the checks and this.
        self._held[tenant] += 1
        try:
            yield
        finally:
            self._held[tenant] -= 1
            if not self._held[tenant]:
                del self._held[tenant]
