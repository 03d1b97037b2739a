"""Tests what an execution takes, gives and never exceeds."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from services.runtime.call import Fallback
from services.runtime.errors import SelfBugError, SelfTimeoutError
from services.tool.declaration import Tool, ToolResult
from services.tool.errors import ToolArgumentsError, ToolNotFoundError
from services.tool.execution import execute
from services.tool.registry import Registry
from tests.unit.tool.conftest import MakeContext


class NoArguments(BaseModel):
    """Takes nothing."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def registry_of(run: Any, timeout_s: float = 5.0) -> Registry:
    tool = Tool(
        name="it",
        description="Does it.",
        arguments=NoArguments,
        run=run,
        timeout_s=timeout_s,
        max_concurrency=1,
        fallback=Fallback.NONE,
        idempotent=True,
    )
    return Registry([("here", tool)])


async def test_the_result_comes_back(make_context: MakeContext) -> None:
    async def run(_: NoArguments, context: object) -> ToolResult:
        return ToolResult({"a": 1})

    assert (await execute(registry_of(run), "it", {}, make_context())).data == {"a": 1}


async def test_a_tool_is_cut_off_at_its_own_timeout(make_context: MakeContext) -> None:
    async def run(_: NoArguments, context: object) -> ToolResult:
        await asyncio.Event().wait()
        raise AssertionError

    with pytest.raises(SelfTimeoutError) as late:
        await execute(registry_of(run, timeout_s=0.01), "it", {}, make_context())

    assert late.value.cause == "step_timeout"


async def test_a_tool_is_cut_off_at_this_hops_deadline(make_context: MakeContext) -> None:
    async def run(_: NoArguments, context: object) -> ToolResult:
        await asyncio.Event().wait()
        raise AssertionError

    with pytest.raises(SelfTimeoutError) as late:
        await execute(registry_of(run), "it", {}, make_context(remaining_s=0.01))

    assert late.value.cause == "deadline"


async def test_a_timeout_that_a_tool_lets_out_is_its_bug(make_context: MakeContext) -> None:
    async def run(_: NoArguments, context: object) -> ToolResult:
        raise TimeoutError

    with pytest.raises(SelfBugError):
        await execute(registry_of(run), "it", {}, make_context())


@pytest.mark.parametrize(
    "result",
    [None, {"a": 1}, ToolResult({"a": float("nan")}), ToolResult({"a": Path("x")})],  # type: ignore[dict-item]  # wrong on purpose
)
async def test_what_is_no_answer_is_a_bug(make_context: MakeContext, result: object) -> None:
    async def run(_: NoArguments, context: object) -> object:
        return result

    with pytest.raises(SelfBugError, match="'it' returned"):
        await execute(registry_of(run), "it", {}, make_context())


async def test_unknown_tools_and_arguments_never_run(make_context: MakeContext) -> None:
    async def run(_: NoArguments, context: object) -> ToolResult:
        raise AssertionError

    with pytest.raises(ToolNotFoundError):
        await execute(registry_of(run), "other", {}, make_context())
    with pytest.raises(ToolArgumentsError):
        await execute(registry_of(run), "it", {"x": 1}, make_context())
