"""Tells which tools can be used now, in plain types."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from services.domain.directory import ToolDirectory
from services.runtime.circuit import BreakerState
from services.runtime.policies.breaker import Breakers


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """Is a tool that an agent may use."""

    name: str
    description: str


@dataclass(frozen=True, slots=True)
class Unavailable:
    """Says that a tool cannot be used for now: its breaker is open."""

    reason: str
    """What opened it, such as `slow_calls`."""
    back_in_s: float | None
    """When it will be tried again, in seconds; None when nobody knows."""


class Availability(Protocol):
    """Tells which tools can be used."""

    def offered(self) -> tuple[OfferedTool, ...]:
        """Return the tools that can be used now, by name."""
        ...

    def unavailable(self) -> Mapping[str, Unavailable]:
        """Return the tools that cannot, by name."""
        ...


class ToolAvailability:
    """Reads the breakers of this process. Half-open ones are offered: somebody has to try."""

    def __init__(self, directory: ToolDirectory, breakers: Callable[[], Breakers | None]) -> None:
        """Take the tools, and what gives the breakers; None while the engine is off."""
        self._directory = directory
        self._breakers = breakers

    def offered(self) -> tuple[OfferedTool, ...]:
        """Return the tools that can be used now."""
        out = self.unavailable()
        return tuple(
            OfferedTool(name, tool.description)
            for name, tool in sorted(self._directory.tools.items())
            if name not in out
        )

    def unavailable(self) -> Mapping[str, Unavailable]:
        """Return the tools whose breaker is open."""
        breakers = self._breakers()
        if breakers is None:
            return {}
        open_keys = {
            tool.callee.key: name
            for name, tool in sorted(self._directory.tools.items())
            if breakers.state(tool.callee.key) is BreakerState.OPEN
        }
        if not open_keys:
            return {}
        snapshots = breakers.snapshot()
        return {
            name: Unavailable(snapshots[key].reason.value, snapshots[key].retry_after_s)
            for key, name in open_keys.items()
        }
