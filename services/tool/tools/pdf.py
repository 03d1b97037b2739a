"""Writes a report with text, a chart, a table and notes as a PDF file."""

from services.tool.interruption import Interruption
from services.tool.registry import Artifact, Fallback, Group, Tool, ToolContext, ToolResult
from services.tool.report_spec import ReportSpec


async def report(arguments: ReportSpec, context: ToolContext) -> ToolResult:
    """Return the number of pages, and the file as the artefact report.pdf."""
    interruption = Interruption()

    def work() -> tuple[bytes, int]:
        # Imported here: the PDF library takes 20 MB, and an idle process does without.
        from services.tool.report import pdf

        return pdf(arguments, interruption.check)

    content, page_count = await context.run_blocking(work, interrupt=interruption)
    return ToolResult(
        {"page_count": page_count}, (Artifact("report.pdf", "application/pdf", content),)
    )


TOOL = Tool(
    name="pdf",
    description="Writes a report with text, a chart, a table and notes as an A4 PDF file.",
    arguments=ReportSpec,
    run=report,
    timeout_s=10.0,
    max_concurrency=2,
    fallback=Fallback.SKIP,
    idempotent=True,
    group=Group.AUXILIARY,
)
