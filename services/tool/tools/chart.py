"""Draws a bar or line chart as a PNG picture."""

from services.tool.chart_spec import ChartSpec
from services.tool.registry import Artifact, Fallback, Group, Tool, ToolContext, ToolResult

WIDTH = 608
HEIGHT = 328


async def chart(arguments: ChartSpec, context: ToolContext) -> ToolResult:
    """Return the picture as the artefact chart.png."""

    def work() -> bytes:
        # Imported here: the image library takes 10 MB, and an idle process does without.
        from services.tool.chart_layout import laid_out
        from services.tool.pixel_drawing import measure, png

        return png(laid_out(arguments, width=WIDTH, height=HEIGHT, measure=measure))

    content = await context.run_blocking(work)
    return ToolResult({}, (Artifact("chart.png", "image/png", content),))


TOOL = Tool(
    name="chart",
    description="Draws a bar or line chart of one or more series as a picture.",
    arguments=ChartSpec,
    run=chart,
    timeout_s=5.0,
    max_concurrency=4,
    fallback=Fallback.SKIP,
    idempotent=True,
    group=Group.AUXILIARY,
)
