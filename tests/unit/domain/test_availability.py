"""Holds the list of tools on offer to the breakers of this process."""

from typing import Any

from services.domain.availability import OfferedTool, ToolAvailability, Unavailable
from services.domain.directory import DeclaredTool, ToolDirectory
from services.runtime.call import Callee
from services.runtime.circuit import BreakerConfig
from services.runtime.clock import ManualClock
from services.runtime.policies.breaker import Breakers


def directory(clock: ManualClock, *names: str) -> ToolDirectory:
    """Return what is known of some tools."""
    nobody: Any = None
    tools = {
        name: DeclaredTool(callee=Callee(key=f"tool/{name}"), description=f"Does {name}.")
        for name in names
    }
    return ToolDirectory(nobody, clock, tools)


def test_a_tool_whose_breaker_is_open_is_not_on_offer_until_it_is_tried_again(
    clock: ManualClock,
) -> None:
    breakers = Breakers(BreakerConfig(), clock)
    availability = ToolAvailability(directory(clock, "sql", "pdf"), lambda: breakers)

    breakers.force_open("tool/pdf", for_s=12.0)
    breakers.force_open("tool/elsewhere")
    clock.advance(2.0)

    assert availability.offered() == (OfferedTool("sql", "Does sql."),)
    assert availability.unavailable() == {"pdf": Unavailable("operator", 10.0)}

    clock.advance(10.0)

    assert [tool.name for tool in availability.offered()] == ["pdf", "sql"]
    assert availability.unavailable() == {}


def test_without_the_engine_every_tool_is_on_offer(clock: ManualClock) -> None:
    availability = ToolAvailability(directory(clock, "sql", "pdf"), lambda: None)

    assert [tool.name for tool in availability.offered()] == ["pdf", "sql"]
    assert availability.unavailable() == {}
