"""Names its pod, and nothing stands in for it."""

from pathlib import Path

from services.tool.registry import Fallback, Tool
from tests.e2e.mesh.leaf import LeafArguments, leaf

TOOL = Tool(
    name="bare",
    description="Names its pod, for tests.",
    arguments=LeafArguments,
    run=leaf(Path(__file__).parent),
    timeout_s=5.0,
    max_concurrency=64,
    fallback=Fallback.NONE,
    idempotent=True,
)
