"""Keeps what the endpoints of dependencies tell of their load."""

from services.runtime.clock import Clock
from services.runtime.load_report import LoadReader, LoadReport

MAX_AGE_S = 30.0
"""An older report says nothing any more."""


class Loads:
    """Holds the last report of every endpoint that this process calls."""

    def __init__(self, clock: Clock) -> None:
        """Start with nothing told."""
        self._clock = clock
        self._readers: dict[str, dict[str, LoadReader]] = {}

    def endpoint(self, dependency: str, address: str) -> LoadReader:
        """Return what takes the reports of one endpoint; the same one every time."""
        endpoints = self._readers.setdefault(dependency, {})
        if address not in endpoints:
            endpoints[address] = LoadReader(self._clock)
        return endpoints[address]

    def fresh(self, dependency: str) -> LoadReport | None:
        """Return the newest report of any endpoint of a dependency; None when all are too old."""
        readers = self._readers.get(dependency)
        if readers is None:
            return None
        newest = min(readers.values(), key=LoadReader.age_s)
        return newest.report if newest.age_s() <= MAX_AGE_S else None
