"""Holds the steps of a run to their reserve, and to saying what was given in place of what."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from pydantic import JsonValue

from services.domain import wording
from services.domain.availability import Unavailable
from services.domain.events import Degraded, StepFinished, StepStarted, StepState
from services.domain.ports import ToolResult
from services.domain.run import Partial, Ports, Run
from services.runtime.call import Degradation, Fallback, Identity, Inbound
from services.runtime.errors import (
    BudgetTooSmallError,
    LoopDetectedError,
    NotFoundError,
    SixhopError,
)
from services.runtime.generation import Wait
from tests.requirements import requirement
from tests.stacks import Unwatched
from tests.unit.domain.running import events_of
from tests.unit.runtime.fake_time import START, LoopClock, in_no_time


class Scripted:
    """Answers as the test says, after so long on the loop's clock."""

    def __init__(self, result: ToolResult | SixhopError, length_s: float = 0.0) -> None:
        self._result = result
        self._length_s = length_s
        self.asked: list[dict[str, Any]] = []

    async def execute(
        self, name: str, arguments: Mapping[str, JsonValue], **how: Any
    ) -> ToolResult:
        """Work."""
        self.asked.append({"name": name, **how})
        await LoopClock().sleep(self._length_s)
        if isinstance(self._result, SixhopError):
            raise self._result
        return self._result


def given(kind: Fallback, age_s: float = 0.0, **data: JsonValue) -> ToolResult:
    """Return what is given in place of an answer."""
    degradation = Degradation(
        mechanism=kind, reason="DEPENDENCY_FAILED", age_s=age_s, message="it broke"
    )
    return ToolResult(dict(data), degradation=degradation)


def timed_run(tool: Scripted, *, time_s: float = 10.0, language: str = "en") -> Run:
    """Return a run on the loop's clock."""
    nobody: Any = None
    port: Any = tool
    return Run(
        question="hello",
        language=language,
        sources=(),
        session_id="",
        inbound=Inbound("domain", "RunAgent", True, START, START + time_s, Identity("run-1")),
        ports=Ports(port, nobody, LoopClock(), Unwatched()),
    )


PARTIAL = Partial({"text": "what there is"}, mechanism="template")
STEP: dict[str, Any] = {"title": "asks", "expected_s": 1.0, "reserve_s": 2.0}


def test_an_earlier_answer_is_an_answer_that_says_how_old_it_is() -> None:
    run = timed_run(Scripted(given(Fallback.CACHE, 42.0, rows=3)))

    result = in_no_time(run.tool("sql", {}, title="asks", part="numbers"))

    assert result.data == {"rows": 3}
    assert events_of(run)[1:] == [
        StepFinished(1, "sql", StepState.OK, 0.0, "an earlier answer, 42 s old"),
        Degraded("cache", "numbers", "it broke", 42.0, "DEPENDENCY_FAILED"),
    ]
    assert run.stale_note() == "This answer is not fresh: it uses earlier results, up to 42 s old."
    assert run.missing_parts == []


def test_a_mandatory_step_that_nothing_can_replace_ends_with_its_own_error() -> None:
    failure = NotFoundError("tool", "sqll", ["sql"])
    run = timed_run(Scripted(failure))

    with pytest.raises(NotFoundError) as caught:
        in_no_time(run.tool("sqll", {}, title="asks"))

    assert caught.value is failure
    assert run.degraded_parts == []


def test_an_optional_step_that_is_left_out_is_missing_and_says_why() -> None:
    tool = Scripted(given(Fallback.SKIP))
    run = timed_run(tool)

    result = in_no_time(run.optional("pdf", {}, part="report", **STEP))

    assert result is None
    assert tool.asked[0]["optional"]
    assert events_of(run)[1:] == [
        StepFinished(1, "pdf", StepState.FAILED, 0.0, "it broke"),
        Degraded("skip", "report", "it broke", 0.0, "DEPENDENCY_FAILED"),
    ]
    assert (run.missing_parts, run.degraded_parts) == (["report"], ["report"])


def test_what_the_agent_has_is_given_under_its_own_name() -> None:
    tool = Scripted(given(Fallback.PARTIAL, text="what there is"))
    run = timed_run(tool)

    result = in_no_time(run.optional("summarise", {}, part="prose", partial=PARTIAL, **STEP))

    assert result is not None
    assert tool.asked[0]["partial"] == {"text": "what there is"}
    assert events_of(run)[2] == Degraded("template", "prose", "it broke", 0.0, "DEPENDENCY_FAILED")
    assert run.missing_parts == []


@pytest.mark.parametrize(("time_s", "tried"), [(3.1, True), (2.9, False)])
def test_an_optional_step_is_not_begun_when_it_would_not_leave_the_reserve(
    time_s: float, tried: bool
) -> None:
    tool = Scripted(ToolResult({}))
    run = timed_run(tool, time_s=time_s)

    result = in_no_time(run.optional("pdf", {}, **STEP))

    assert (len(tool.asked) == 1, result is not None) == (tried, tried)
    if not tried:
        reason = "2.9 s are left and it needs 3.0 s"
        assert events_of(run)[1:] == [
            StepFinished(1, "pdf", StepState.SKIPPED, 0.0, reason),
            Degraded("skip", "pdf", reason, 0.0, "BUDGET_TOO_SMALL"),
        ]


def test_an_optional_step_is_given_all_but_the_reserve_and_a_mandatory_one_all() -> None:
    tool = Scripted(ToolResult({}))
    run = timed_run(tool)

    in_no_time(run.optional("pdf", {}, **STEP))
    in_no_time(run.tool("sql", {}, title="asks"))

    assert [asked["limit_s"] for asked in tool.asked] == [8.0, None]


@requirement("heartbeat:reaches-the-client")
def test_what_the_model_hop_waits_for_is_told_while_a_generation_opens() -> None:
    class Slow:
        @asynccontextmanager
        async def stream(
            self, messages: object, *, on_wait: Callable[[Wait], None], **how: object
        ) -> AsyncIterator[str]:
            on_wait(Wait("queued", 0.2, 7.0, "model_backup"))
            yield "a generation"

    run = timed_run(Scripted(ToolResult({})))
    model: Any = Slow()
    run._ports = replace(run._ports, model=model)

    async def scenario() -> None:
        async with run.generate([]):
            pass

    in_no_time(scenario())

    assert events_of(run) == [Wait("queued", 0.2, 7.0, hop="model_backup")]


def test_a_generation_ends_before_it_uses_up_the_reserve() -> None:
    class Endless:
        @asynccontextmanager
        async def stream(self, messages: object, **how: object) -> AsyncIterator[str]:
            yield "a generation"

    run = timed_run(Scripted(ToolResult({})), language="zh")
    model: Any = Endless()
    run._ports = replace(run._ports, model=model)

    async def scenario() -> float:
        with pytest.raises(BudgetTooSmallError, match=r"9\.5 秒后仍未完成"):
            async with run.generate([], reserve_s=0.5):
                await LoopClock().sleep(60.0)
        return run.time_remaining_s()

    assert in_no_time(scenario()) == pytest.approx(0.5)


def test_what_cannot_be_used_is_left_out_before_anything_is_waited_for() -> None:
    run = timed_run(tool := Scripted(ToolResult({})))
    out_for = {"pdf": Unavailable("slow_calls", 11.2), "x": Unavailable("slow_calls", None)}
    broken: Any = type("Broken", (Unwatched,), {"unavailable": lambda _: out_for})
    run._ports = replace(run._ports, availability=broken())
    reason = "pdf is unavailable now: it failed or was slow too often; it is tried again in 12 s"

    out = run.leave_out_unavailable({"pdf": "writes", "chart": "draws"})

    assert out == {"pdf"}
    assert tool.asked == []
    assert events_of(run) == [
        StepStarted(1, "pdf", "writes"),
        StepFinished(1, "pdf", StepState.SKIPPED, 0.0, reason),
        Degraded("skip", "pdf", reason, 0.0, "CIRCUIT_OPEN"),
    ]
    assert run.missing_parts == ["pdf"]


def test_the_same_tool_with_the_same_arguments_is_a_loop_and_is_not_executed_again() -> None:
    run = timed_run(tool := Scripted(ToolResult({})))
    in_no_time(run.tool("sql", {"query": "x", "max_rows": 3}, title="asks"))
    events_of(run)

    with pytest.raises(LoopDetectedError) as caught:
        in_no_time(run.tool("sql", {"max_rows": 3, "query": "x"}, title="asks"))

    assert len(tool.asked) == 1
    assert (caught.value.reason, caught.value.cause) == ("LOOP_DETECTED", "same_action")
    assert events_of(run) == [
        StepStarted(2, "sql", "asks"),
        StepFinished(2, "sql", StepState.FAILED, 0.0, wording.repeated("sql", "en")),
    ]


def test_an_action_that_failed_or_was_optional_is_a_loop_the_second_time_too() -> None:
    run = timed_run(tool := Scripted(NotFoundError("tool", "sqll", ["sql"])))
    for _ in range(2):
        with pytest.raises(SixhopError) as caught:
            in_no_time(run.optional("sqll", {}, **STEP))

    assert isinstance(caught.value, LoopDetectedError)
    assert len(tool.asked) == 1


def test_other_arguments_another_tool_and_a_step_that_was_not_begun_are_no_loop() -> None:
    run = timed_run(tool := Scripted(ToolResult({})))

    in_no_time(run.optional("sql", {"query": "x"}, title="asks", expected_s=9.0, reserve_s=2.0))
    in_no_time(run.tool("sql", {"query": "x"}, title="asks"))
    in_no_time(run.tool("sql", {"query": "y"}, title="asks"))
    in_no_time(run.tool("search", {"query": "x"}, title="asks"))

    assert [asked["name"] for asked in tool.asked] == ["sql", "sql", "search"]
