"""Has the model write something."""

from pathlib import Path

from services.runtime.conversation import Message
from services.tool.registry import Fallback, Tool, ToolContext, ToolResult
from tests.e2e.mesh.leaf import LeafArguments

NAME = Path(__file__).parent.name


async def write(arguments: LeafArguments, context: ToolContext) -> ToolResult:
    """Return the pod and how much was written."""
    generation = await context.model.generate([Message("user", "Go.")])
    return ToolResult({"pod": NAME, "length": len(generation.text)})


TOOL = Tool(
    name="writer",
    description="Has the model write, for tests.",
    arguments=LeafArguments,
    run=write,
    timeout_s=15.0,
    min_timeout_s=5.0,
    slow_call_s=15.0,
    max_concurrency=64,
    fallback=Fallback.NONE,
    idempotent=True,
)
