"""Writes a report as an A4 PDF file."""

import io
from collections.abc import Callable
from typing import Any

from reportlab.lib.colors import HexColor
from reportlab.lib.pagesizes import A4, landscape
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import BaseDocTemplate, Flowable, Frame, PageTemplate, Spacer

from services.tool.chart_layout import laid_out
from services.tool.chart_spec import ChartSpec
from services.tool.drawing import Anchor, Label
from services.tool.fonts import printable
from services.tool.line_breaking import shortened
from services.tool.paper_drawing import (
    REGULAR_NAME,
    DrawingFlowable,
    TextBlock,
    characters,
    measure,
    write,
)
from services.tool.report_spec import ReportSpec
from services.tool.report_table import INK, NAVY, RULE, fits, table_flowable

SIDE = 54.0
TOP = 54.0
BOTTOM = 62.0
CHART_HEIGHT = 236.0
SOFT_INK = "#5f6c7b"
ACCENT = "#2f5f94"

_WORDS = {
    "en": {"page": "Page {page} of {total}", "notes": "Notes", "table": "Figures"},
    "zh": {"page": "第 {page} 页，共 {total} 页", "notes": "说明", "table": "数据"},
}


def pdf(spec: ReportSpec, check: Callable[[], None]) -> tuple[bytes, int]:
    """Return the PDF file and its number of pages; the same spec gives the same bytes.

    Args:
        spec: what to print.
        check: called on every page; raises when nobody waits for the report any more.
    """
    printed = _printable(spec)
    size = _page_size(printed)
    file = io.BytesIO()
    document = BaseDocTemplate(
        file,
        pagesize=size,
        title=printed.title,
        author="sixhop",
        subject=printed.subtitle,
        lang="zh-CN" if spec.language == "zh" else "en",
        invariant=1,
    )
    frame = Frame(
        SIDE,
        BOTTOM,
        size[0] - 2 * SIDE,
        size[1] - TOP - BOTTOM,
        leftPadding=0,
        rightPadding=0,
        topPadding=0,
        bottomPadding=0,
    )
    document.addPageTemplates(
        PageTemplate(frames=[frame], onPage=lambda canvas, _: _page(canvas, size, check))
    )
    totals: list[int] = []

    def canvas_maker(*positional: Any, **named: Any) -> "_NumberedCanvas":
        return _NumberedCanvas(*positional, spec=printed, width=size[0], totals=totals, **named)

    document.build(_story(printed, size[0] - 2 * SIDE), canvasmaker=canvas_maker)
    return file.getvalue(), totals[0]


def _page_size(spec: ReportSpec) -> tuple[float, float]:
    """Return A4, turned when the table is too wide for it."""
    if spec.table is not None and not fits(spec.table, A4[0] - 2 * SIDE):
        return landscape(A4)
    return A4


def _printable(spec: ReportSpec) -> ReportSpec:
    """Return the spec with only characters that the font has."""
    known = characters()

    def clean(value: Any) -> Any:
        if isinstance(value, str):
            return printable(value, known)
        if isinstance(value, list):
            return [clean(item) for item in value]
        if isinstance(value, dict):
            return {key: clean(item) for key, item in value.items()}
        return value

    return ReportSpec.model_validate(clean(spec.model_dump(mode="json")))


def _page(canvas: Canvas, size: tuple[float, float], check: Callable[[], None]) -> None:
    check()
    if canvas.getPageNumber() == 1:
        canvas.setFillColor(HexColor(ACCENT))
        canvas.rect(0, size[1] - 7, size[0], 7, stroke=0, fill=1)


class _NumberedCanvas(Canvas):
    """Writes the foot of each page last, when the number of pages is known."""

    def __init__(
        self, *positional: Any, spec: ReportSpec, width: float, totals: list[int], **named: Any
    ) -> None:
        super().__init__(*positional, **(named | {"initialFontName": REGULAR_NAME}))
        self._spec = spec
        self._width = width
        self._totals = totals
        self._pages: list[dict[str, Any]] = []

    def showPage(self) -> None:
        """Keep the page; called by the document."""
        self._pages.append(dict(self.__dict__))
        self._startPage()  # type: ignore[attr-defined]  # the stubs leave it out

    def save(self) -> None:
        """Finish all pages; called by the document."""
        total = len(self._pages)
        self._totals.append(total)
        for number, page in enumerate(self._pages, start=1):
            self.__dict__.update(page)
            self._foot(number, total)
            super().showPage()
        super().save()

    def _foot(self, page: int, total: int) -> None:
        self.setStrokeColor(HexColor(RULE))
        self.setLineWidth(0.5)
        right = self._width - SIDE
        self.line(SIDE, BOTTOM - 18, right, BOTTOM - 18)
        title = shortened(self._spec.title, (right - SIDE) * 0.7, lambda text: measure(text, 7.5))
        write(self, Label(0, 0, title, 7.5, SOFT_INK), SIDE, BOTTOM - 30)
        text = _WORDS[self._spec.language]["page"].format(page=page, total=total)
        write(self, Label(0, 0, text, 7.5, SOFT_INK, Anchor.END), right, BOTTOM - 30)


def _story(spec: ReportSpec, width: float) -> list[Flowable]:
    story: list[Flowable] = [
        TextBlock(spec.title, size=20, leading=27, color=NAVY, bold=True, space_after=3)
    ]
    if spec.subtitle:
        story.append(TextBlock(spec.subtitle, size=10, leading=15, color=SOFT_INK, space_after=6))
    story += [_Rule(), Spacer(1, 10)]
    for number, paragraph in enumerate(spec.paragraphs):
        size = 11.5 if number == 0 and len(spec.paragraphs) > 1 else 10.0
        story.append(TextBlock(paragraph, size=size, leading=size * 1.6, color=INK, space_after=8))
    if spec.chart is not None:
        story += [Spacer(1, 8), _chart(spec.chart, width), Spacer(1, 14)]
    if spec.table is not None:
        if spec.chart is not None:
            heading = _WORDS[spec.language]["table"]
            story.append(_heading(heading))
        story += [table_flowable(spec.table, width), Spacer(1, 14)]
    if spec.notes:
        story.append(_heading(_WORDS[spec.language]["notes"]))
        for number, note in enumerate(spec.notes, start=1):
            story.append(
                TextBlock(f"{number}.  {note}", size=8, leading=12.5, color=SOFT_INK, space_after=2)
            )
    return story


def _heading(text: str) -> TextBlock:
    heading = TextBlock(text, size=11, leading=16, color=NAVY, bold=True, space_after=5)
    # A heading alone at the foot of a page belongs to the next one.
    heading.keepWithNext = 1
    return heading


def _chart(spec: ChartSpec, width: float) -> DrawingFlowable:
    return DrawingFlowable(laid_out(spec, width=width, height=CHART_HEIGHT, measure=measure))


class _Rule(Flowable):
    """Draws a thin line over the width of the text."""

    def wrap(self, available_width: float, _available_height: float) -> tuple[float, float]:
        """Return the size; called by the document."""
        self.width, self.height = available_width, 1.0
        return self.width, self.height

    def draw(self) -> None:
        """Draw the line; called by the document."""
        self.canv.setStrokeColor(HexColor(RULE))
        self.canv.setLineWidth(0.8)
        self.canv.line(0, 0, self.width, 0)
