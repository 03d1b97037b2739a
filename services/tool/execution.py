"""Executes one tool within its own timeout."""

import asyncio
import json
from collections.abc import Mapping

from pydantic import JsonValue

from services.runtime.call import CURRENT
from services.runtime.errors import SelfBugError, SelfTimeoutError
from services.runtime.policies.deadline import own_timeout
from services.tool.context import ToolContext
from services.tool.declaration import ToolResult
from services.tool.registry import Registry


async def execute(
    registry: Registry, name: str, arguments: Mapping[str, JsonValue], context: ToolContext
) -> ToolResult:
    """Return what the tool answers.

    Raises:
        ToolNotFoundError: no tool has this name.
        ToolArgumentsError: an argument is missing, unknown or wrong.
        SelfTimeoutError: the tool outran its own timeout or this hop's deadline.
        DependencyFailedError: the same, while it waited for a dependency.
        SelfBugError: the tool returned something that is no answer.
        SixhopError: what the tool itself raises.
    """
    tool = registry.get(name)
    parsed = registry.parse(tool, arguments)
    limit_s = min(tool.timeout_s, context.time_remaining_s())
    limit = asyncio.timeout(limit_s)
    try:
        async with limit:
            result = await tool.run(parsed, context)
    except TimeoutError as error:
        if not limit.expired():
            raise SelfBugError(f"the tool {name!r} let a TimeoutError out") from error
        inbound = CURRENT.get(None)
        if inbound is not None and inbound.cut_wait:
            # The tool was waiting for somebody else when its time was up.
            raise own_timeout(inbound) from None
        cause = "step_timeout" if limit_s == tool.timeout_s else "deadline"
        raise SelfTimeoutError(
            f"the tool {name!r} did not answer within {limit_s:.2f} s", cause=cause
        ) from None
    return _checked(name, result)


def _checked(name: str, result: object) -> ToolResult:
    if not isinstance(result, ToolResult):
        raise SelfBugError(f"the tool {name!r} returned {type(result).__name__}, no ToolResult")
    try:
        # Not a number and infinity are no JSON: they would break the caller's parser.
        json.dumps(result.data, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise SelfBugError(f"the tool {name!r} returned data that is no JSON: {error}") from error
    return result
