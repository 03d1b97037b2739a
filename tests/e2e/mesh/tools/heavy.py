"""Names its pod, and always takes its time for it."""

from pathlib import Path

from services.tool.registry import Fallback, Tool
from tests.e2e.mesh.leaf import HEAVY_S, LeafArguments, leaf

TOOL = Tool(
    name="heavy",
    description="Names its pod slowly, for tests.",
    arguments=LeafArguments,
    run=leaf(Path(__file__).parent, HEAVY_S),
    timeout_s=5.0,
    max_concurrency=64,
    fallback=Fallback.NONE,
    idempotent=True,
)
