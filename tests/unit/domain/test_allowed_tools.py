"""Holds a run to the tools that its tenant may use."""

from collections.abc import Mapping

import pytest

from services.domain.availability import OfferedTool, Unavailable
from services.domain.events import Degraded, StepState
from services.domain.run import Partial, Ports, Run
from services.runtime.call import Inbound
from services.runtime.clock import ManualClock
from services.runtime.errors import PermissionDeniedError
from tests.requirements import requirement
from tests.unit.domain.database import Database
from tests.unit.domain.running import Model, Tools, degraded_of, events_of, skipped_of

pytestmark = requirement("tenants:agents-and-tools")


class Everything(Tools):
    """Offers two tools, and knows of two more whose breaker is open."""

    def offered(self) -> tuple[OfferedTool, ...]:
        """Return two."""
        return OfferedTool("sql", "Asks."), OfferedTool("search", "Finds.")

    def unavailable(self) -> Mapping[str, Unavailable]:
        """Return two."""
        return dict.fromkeys(("pdf", "chart"), Unavailable("slow_calls", 12.0))


@pytest.fixture
def tools(database: Database) -> Everything:
    """Return tools that are never executed here."""
    return Everything(database, "orders")


def run_with(tools: Tools, *allowed: str) -> Run:
    """Return a run of a tenant that may use some tools."""
    clock = ManualClock()
    inbound = Inbound("domain", "RunAgent", True, clock.now(), clock.now() + 30.0)
    ports = Ports(tools, Model(""), clock, tools)
    return Run(question="?", language="en", sources=(), session_id="", inbound=inbound,
               ports=ports, allowed_tools=frozenset(allowed))  # fmt: skip


def test_other_tools_are_not_offered_nor_told_of(tools: Everything) -> None:
    run = run_with(tools, "sql", "pdf")

    assert [each.name for each in run.offered()] == ["sql"]
    assert list(run.unavailable()) == ["pdf"]


async def test_a_step_that_needs_another_tool_is_refused_and_nothing_is_executed(
    tools: Everything,
) -> None:
    run = run_with(tools, "sql")

    with pytest.raises(PermissionDeniedError, match="search is not among the tools"):
        await run.tool("search", {"query": "x"}, title="Look")

    assert tools.calls == []
    assert events_of(run) == []


async def test_a_step_that_the_run_can_do_without_is_left_out_and_the_answer_says_so(
    tools: Everything,
) -> None:
    run = run_with(tools)
    partial = Partial({"rows": 0}, "template")

    nothing = await run.optional("pdf", {}, title="Write", expected_s=1, reserve_s=1)
    something = await run.optional(
        "sql", {}, title="Ask", expected_s=1, reserve_s=1, part="numbers", partial=partial
    )

    assert nothing is None
    assert something is not None
    assert something.data == {"rows": 0}
    assert run.missing_parts == ["pdf"]
    events = events_of(run)
    assert degraded_of(events) == [("skip", "pdf"), ("template", "numbers")]
    assert skipped_of(events) == ["pdf", "sql"]
    assert tools.calls == []
    assert StepState.OK not in [getattr(each, "state", None) for each in events]


def test_optional_tools_are_left_out_before_anything_is_waited_for(tools: Everything) -> None:
    run = run_with(tools, "pdf")

    out = run.leave_out_unavailable({"sql": "Ask", "pdf": "Write"})

    assert out == {"sql", "pdf"}
    degraded = [each for each in events_of(run) if isinstance(each, Degraded)]
    reasons = {each.part: each.error_reason for each in degraded}
    assert reasons == {"sql": "PERMISSION_DENIED", "pdf": "CIRCUIT_OPEN"}
