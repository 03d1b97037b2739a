"""Names its pod, and has a default."""

from pathlib import Path

from services.tool.registry import Fallback, Tool
from tests.e2e.mesh.leaf import LeafArguments, leaf

TOOL = Tool(
    name="leaf",
    description="Names its pod, for tests.",
    arguments=LeafArguments,
    run=leaf(Path(__file__).parent),
    timeout_s=5.0,
    max_concurrency=64,
    fallback=Fallback.DEFAULT,
    default={"pod": "", "number": -1},
    idempotent=True,
)
