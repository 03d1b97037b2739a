"""Names its pod, and belongs to another group than the others."""

from pathlib import Path

from services.tool.registry import Fallback, Group, Tool
from tests.e2e.mesh.leaf import LeafArguments, leaf

TOOL = Tool(
    name="store",
    description="Names its pod as a tool of the data group, for tests.",
    arguments=LeafArguments,
    run=leaf(Path(__file__).parent),
    timeout_s=5.0,
    max_concurrency=32,
    fallback=Fallback.NONE,
    idempotent=True,
    group=Group.DATA,
)
