"""Holds what an agent sees of its run to what the run's reader hears."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from pydantic import JsonValue

from services.domain import wording
from services.domain.events import (
    Degraded,
    Event,
    Restarted,
    StepFinished,
    StepStarted,
    StepState,
    TextDelta,
)
from services.domain.ports import ToolResult, request_id
from services.domain.run import Ports, Run
from services.domain.sources import DataSource
from services.domain.telling import MAX_STEPS
from services.runtime.call import Identity, Inbound
from services.runtime.clock import ManualClock
from services.runtime.errors import NotFoundError, SixhopError
from tests.stacks import Unwatched


class OneTool:
    """Takes 1.5 s and gives its result, or fails."""

    def __init__(self, clock: ManualClock, failure: SixhopError | None = None) -> None:
        self._clock = clock
        self._failure = failure
        self.asked: dict[str, Any] = {}

    async def execute(
        self,
        name: str,
        arguments: Mapping[str, JsonValue],
        *,
        sources: Sequence[DataSource],
        language: str,
        request_id: str,
        partial: Mapping[str, JsonValue] | None = None,
        optional: bool = False,
        limit_s: float | None = None,
    ) -> ToolResult:
        """Work."""
        self.asked = {
            "name": name,
            "arguments": arguments,
            "sources": sources,
            "language": language,
            "request_id": request_id,
        }
        self._clock.advance(1.5)
        if self._failure is not None:
            raise self._failure
        return ToolResult({"rows": 3})


def new_run(tool: OneTool, clock: ManualClock) -> Run:
    """Return a run with 30 s."""
    now, model = clock.now(), None
    ports: Any = Ports(tool, model, clock, Unwatched())  # type: ignore[arg-type]
    return Run(
        question="hello",
        language="zh",
        sources=[DataSource("a.csv")],
        session_id="s-1",
        inbound=Inbound(
            "domain", "RunAgent", True, now, now + 30.0, Identity(run_id="run-1"), margin_s=1.0
        ),
        ports=ports,
    )


def events_of(run: Run) -> list[Event]:
    """Return what the reader hears."""
    events = []
    while (event := run.events.take()) is not None:
        events.append(event)
    return events


async def test_a_tool_is_a_step_with_a_beginning_and_an_end(clock: ManualClock) -> None:
    tool = OneTool(clock)
    run = new_run(tool, clock)

    result = await run.tool("sql", {"query": "select 1"}, title="asks the data")

    assert result.data == {"rows": 3}
    assert events_of(run) == [
        StepStarted(1, "sql", "asks the data"),
        StepFinished(1, "sql", StepState.OK, 1.5),
    ]
    assert tool.asked == {
        "name": "sql",
        "arguments": {"query": "select 1"},
        "sources": (DataSource("a.csv"),),
        "language": "zh",
        "request_id": request_id("run-1", "sql", {"query": "select 1"}),
    }


async def test_a_tool_that_fails_is_a_failed_step_and_an_error(clock: ManualClock) -> None:
    failure = NotFoundError("tool", "sqll", ["sql"])
    run = new_run(OneTool(clock, failure), clock)

    with pytest.raises(NotFoundError) as caught:
        await run.tool("sqll", {}, title="asks")

    assert caught.value is failure
    told = wording.failed("sqll", failure.message, run.language)
    assert events_of(run)[1] == StepFinished(1, "sqll", StepState.FAILED, 1.5, told)


async def test_the_time_that_remains_ends_before_the_callers(clock: ManualClock) -> None:
    run = new_run(OneTool(clock), clock)

    before = run.time_remaining_s()
    await run.tool("sql", {}, title="asks")

    assert (before, run.time_remaining_s()) == (29.0, 27.5)


async def test_steps_are_counted_over_tools_and_skips(clock: ManualClock) -> None:
    run = new_run(OneTool(clock), clock)

    await run.tool("sql", {"query": "one"}, title="asks")
    run.skipped("chart", title="draws", reason="no time")
    await run.tool("sql", {"query": "two"}, title="asks again")

    assert events_of(run)[2:4] == [
        StepStarted(2, "chart", "draws"),
        StepFinished(2, "chart", StepState.SKIPPED, 0.0, "no time"),
    ]


async def test_an_agent_that_takes_too_many_steps_is_ended(clock: ManualClock) -> None:
    run = new_run(OneTool(clock), clock)
    for number in range(MAX_STEPS):
        await run.tool("sql", {"number": number}, title="asks")

    with pytest.raises(RuntimeError, match="it is in a loop"):
        await run.tool("sql", {"number": MAX_STEPS}, title="asks")


def test_what_is_said_is_heard_and_empty_text_is_nothing(clock: ManualClock) -> None:
    run = new_run(OneTool(clock), clock)

    run.say("one")
    run.say("")
    run.restart("wrong")
    run.say("two")

    assert events_of(run) == [TextDelta("one"), Restarted("wrong"), TextDelta("two")]


def test_a_lesser_part_is_told_and_remembered(clock: ManualClock) -> None:
    run = new_run(OneTool(clock), clock)

    run.degraded(mechanism="template", part="prose", reason="the model was late")

    assert events_of(run) == [Degraded("template", "prose", "the model was late")]
    assert run.degraded_parts == ["prose"]
