"""Holds calls to tools to their limit, and to giving what is declared where no driver has tried."""

from collections.abc import Mapping
from typing import Any

import pytest
from pydantic import JsonValue

from services.domain.directory import DeclaredTool
from services.domain.ports import ToolClient, ToolResult
from services.domain.reserve import CutOffError
from services.runtime.call import CURRENT, Callee, Fallback, Inbound
from services.runtime.errors import (
    DependencyFailedError,
    InvalidArgumentError,
    Origin,
    SelfBugError,
    SixhopError,
)
from services.runtime.policies.fallback import FallbackConfig, FallbackDriver
from sixhop.tool.v1 import tool_pb2
from tests.unit.runtime.fake_time import START, LoopClock, in_no_time

CLOCK = LoopClock()
EVERYTHING = (Fallback.CACHE, Fallback.DEFAULT, Fallback.PARTIAL, Fallback.SKIP)
FAILED = DependencyFailedError("tool", "gone", cause="x", origin=Origin("tool"))
REFUSED = InvalidArgumentError("query", "say something")


class Channel:
    """Makes stubs of nothing."""

    def unary_unary(self, *_: object, **__: object) -> None:
        """Return nothing: the dependency calls nobody."""


class Dependency:
    """Answers or fails as the test says, after so long; no driver is around it."""

    channel = Channel()

    def __init__(self, *steps: tuple[float, SixhopError | str]) -> None:
        """Take how long each call takes, and its text or its error."""
        self._steps = list(steps)
        self.sent: list[Any] = []

    async def unary(self, rpc: object, request: object, **how: Any) -> tool_pb2.ExecuteToolResponse:
        """Do the next step."""
        self.sent.append(request)
        length_s, outcome = self._steps.pop(0)
        await CLOCK.sleep(length_s)
        if isinstance(outcome, SixhopError):
            raise outcome
        response = tool_pb2.ExecuteToolResponse()
        response.data.update({"text": outcome})
        return response


class Calls:
    """Makes calls one after the other, in one run."""

    def __init__(self, *steps: tuple[float, SixhopError | str], engine: bool = True) -> None:
        """Take what the tool hop does."""
        self.inbound = Inbound("domain", "RunAgent", True, START, START + 60.0)
        self.declared = DeclaredTool(
            callee=Callee(key="tool/sql", idempotent=True),
            fallbacks=EVERYTHING,
            cache_age_s=60.0,
            default={"text": "default"},
        )
        driver = FallbackDriver(FallbackConfig(), CLOCK) if engine else None
        dependency: Any = Dependency(*steps)
        self.sent: list[Any] = dependency.sent
        self._client = ToolClient(dependency, lambda name: self.declared, driver)

    async def execute(self, count: int = 1, **how: Any) -> ToolResult:
        """Make so many calls, and return what the last one gives."""
        CURRENT.set(self.inbound)
        arguments: Mapping[str, JsonValue] = {"query": "select 1"}
        for _ in range(count):
            result = await self._client.execute(
                "sql", arguments, sources=(), language="en", request_id="the-action", **how
            )
        return result


def given(result: ToolResult) -> tuple[object, str, str]:
    """Return the text, what kind of thing it is, and why."""
    degradation = result.degradation
    assert degradation is not None
    return result.data.get("text"), degradation.mechanism.value, degradation.reason


def test_an_execution_travels_under_the_id_that_its_run_gave_it() -> None:
    calls = Calls((0.1, "rows"))

    in_no_time(calls.execute())

    assert [request.request_id for request in calls.sent] == ["the-action"]


def test_a_call_that_outlives_its_limit_gives_the_best_that_is_declared() -> None:
    calls = Calls((0.1, "rows"), (60.0, "late"))

    result = in_no_time(calls.execute(2, limit_s=5.0, optional=True))

    assert given(result) == ("rows", "cache", "BUDGET_TOO_SMALL")
    assert result.degradation is not None
    # It was five seconds old when the wait was over.
    assert result.degradation.age_s == pytest.approx(5.0)


def test_a_call_that_outlives_its_limit_blames_nobody_for_what_comes_later() -> None:
    calls = Calls((60.0, "late"))

    async def scenario() -> None:
        calls.inbound.cut_wait = "tool"
        await calls.execute(limit_s=5.0)

    in_no_time(scenario())

    assert calls.inbound.cut_wait == ""


def test_a_limit_that_nothing_declared_fits_is_an_error_that_says_so() -> None:
    calls = Calls((60.0, "late"), engine=False)

    with pytest.raises(CutOffError, match=r"it was not done after 5\.0 s") as caught:
        in_no_time(calls.execute(limit_s=5.0))

    assert caught.value.cause == "reserve"


@pytest.mark.parametrize("engine", [True, False])
def test_arguments_that_were_refused_leave_what_the_agent_has_only(engine: bool) -> None:
    def calls() -> Calls:
        return Calls((0.1, "rows"), (0.1, REFUSED), engine=engine)

    partial = in_no_time(calls().execute(2, partial={"text": "mine"}, optional=True))
    skipped = in_no_time(calls().execute(2, optional=True))
    with pytest.raises(InvalidArgumentError):
        in_no_time(calls().execute(2))

    assert given(partial) == ("mine", "partial", "INVALID_ARGUMENT")
    assert given(skipped) == (None, "skip", "INVALID_ARGUMENT")


def test_without_the_engine_an_agent_gives_what_it_has_and_nothing_else() -> None:
    def calls() -> Calls:
        return Calls((0.1, "rows"), (0.1, FAILED), engine=False)

    partial = in_no_time(calls().execute(2, partial={"text": "mine"}))
    with pytest.raises(DependencyFailedError):
        in_no_time(calls().execute(2))

    assert given(partial) == ("mine", "partial", "DEPENDENCY_FAILED")


def test_what_the_driver_could_not_replace_is_not_tried_again() -> None:
    calls = Calls((0.1, FAILED))

    with pytest.raises(DependencyFailedError) as caught:
        in_no_time(calls.execute(partial={"text": "mine"}, optional=True))

    assert caught.value is FAILED


def test_a_defect_of_this_process_is_seen() -> None:
    calls = Calls((0.1, SelfBugError("ours")), engine=False)

    with pytest.raises(SelfBugError):
        in_no_time(calls.execute(partial={"text": "mine"}, optional=True))
