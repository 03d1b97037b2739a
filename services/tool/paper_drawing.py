"""Draws text and shapes on the pages of a PDF file."""

from functools import lru_cache

from reportlab.lib.colors import HexColor
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Flowable

from services.tool.drawing import Anchor, Dot, Drawing, Label, Polyline, Rectangle, Shape
from services.tool.fonts import BOLD, REGULAR
from services.tool.line_breaking import wrapped

REGULAR_NAME = "SixhopSans"
BOLD_NAME = "SixhopSans-Bold"


@lru_cache(maxsize=1)
def characters() -> frozenset[int]:
    """Return the code points that can be printed; makes the fonts known at the first call."""
    regular = TTFont(REGULAR_NAME, str(REGULAR))
    pdfmetrics.registerFont(regular)
    pdfmetrics.registerFont(TTFont(BOLD_NAME, str(BOLD)))
    return frozenset(regular.face.charToGlyph)


def measure(text: str, size: float, *, bold: bool = False) -> float:
    """Return the width of a text in points."""
    return float(pdfmetrics.stringWidth(text, BOLD_NAME if bold else REGULAR_NAME, size))


class DrawingFlowable(Flowable):
    """Puts a drawing into the flow of a document."""

    def __init__(self, drawing: Drawing) -> None:
        """Take the drawing, which keeps its size."""
        super().__init__()
        self.width, self.height = drawing.width, drawing.height
        self._drawing = drawing

    def draw(self) -> None:
        """Draw the shapes; called by the document."""
        canvas: Canvas = self.canv
        canvas.saveState()
        canvas.setLineCap(1)
        canvas.setLineJoin(1)
        for shape in self._drawing.shapes:
            _draw(canvas, shape, self.height)
        canvas.restoreState()


def _draw(canvas: Canvas, shape: Shape, height: float) -> None:
    if isinstance(shape, Rectangle):
        canvas.setFillColor(HexColor(shape.color))
        y = height - shape.y - shape.height
        canvas.rect(shape.x, y, shape.width, shape.height, stroke=0, fill=1)
    elif isinstance(shape, Polyline):
        canvas.setStrokeColor(HexColor(shape.color))
        canvas.setLineWidth(shape.width)
        path = canvas.beginPath()
        for number, (x, y) in enumerate(shape.points):
            (path.lineTo if number else path.moveTo)(x, height - y)
        canvas.drawPath(path, stroke=1, fill=0)
    elif isinstance(shape, Dot):
        for radius, color in ((shape.radius + 0.9, "#ffffff"), (shape.radius, shape.color)):
            canvas.setFillColor(HexColor(color))
            canvas.circle(shape.x, height - shape.y, radius, stroke=0, fill=1)
    elif isinstance(shape, Label):
        write(canvas, shape, shape.x, height - shape.y)


def write(canvas: Canvas, label: Label, x: float, y: float) -> None:
    """Write one line of text at a point of the page."""
    canvas.setFont(BOLD_NAME if label.bold else REGULAR_NAME, label.size)
    canvas.setFillColor(HexColor(label.color))
    if label.anchor is Anchor.MIDDLE:
        canvas.drawCentredString(x, y, label.text)
    elif label.anchor is Anchor.END:
        canvas.drawRightString(x, y, label.text)
    else:
        canvas.drawString(x, y, label.text)


class TextBlock(Flowable):
    """Sets one paragraph; unlike reportlab's own it breaks English and Chinese lines alike."""

    def __init__(
        self,
        text: str,
        *,
        size: float,
        leading: float,
        color: str,
        bold: bool = False,
        space_after: float = 0.0,
    ) -> None:
        """Take the text and its look; sizes in points."""
        super().__init__()
        self._text = text
        self._size = size
        self._leading = leading
        self._color = color
        self._bold = bold
        self.spaceAfter = space_after
        self._lines: list[str] = []

    def wrap(self, available_width: float, _available_height: float) -> tuple[float, float]:
        """Return the size that the text takes; called by the document."""
        self._lines = wrapped(
            self._text,
            available_width,
            lambda text: measure(text, self._size, bold=self._bold),
        )
        self.width, self.height = available_width, len(self._lines) * self._leading
        return self.width, self.height

    def split(self, _available_width: float, available_height: float) -> list[Flowable]:
        """Return the part that fits on this page and the rest; called by the document."""
        fitting = int(available_height // self._leading)
        # A single line left behind or carried over looks like an accident.
        if fitting < 2 or len(self._lines) - fitting < 1:
            return []
        if len(self._lines) - fitting == 1:
            fitting -= 1
        return [self._part(self._lines[:fitting], 0), self._part(self._lines[fitting:])]

    def draw(self) -> None:
        """Write the lines; called by the document."""
        y = self.height - self._leading + (self._leading - self._size) / 2 + self._size * 0.16
        for line in self._lines:
            write(self.canv, Label(0, 0, line, self._size, self._color, bold=self._bold), 0, y)
            y -= self._leading

    def _part(self, lines: list[str], space_after: float | None = None) -> "TextBlock":
        return TextBlock(
            "\n".join(lines),
            size=self._size,
            leading=self._leading,
            color=self._color,
            bold=self._bold,
            space_after=self.spaceAfter if space_after is None else space_after,
        )
