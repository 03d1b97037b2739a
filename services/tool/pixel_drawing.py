"""Draws shapes as a PNG picture."""

import io
from functools import lru_cache
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from services.tool.drawing import Anchor, Dot, Drawing, Label, Polyline, Rectangle, Shape
from services.tool.fonts import BOLD, REGULAR

# Drawn at four pixels per point and halved: two sharp pixels per point with smooth edges.
DRAWN_SCALE = 4
SHOWN_SCALE = 2
MARGIN = 16
BACKGROUND = "#ffffff"

_ANCHORS = {Anchor.START: "ls", Anchor.MIDDLE: "ms", Anchor.END: "rs"}


def measure(text: str, size: float, *, bold: bool = False) -> float:
    """Return the width of a text in points."""
    return _font(BOLD if bold else REGULAR, size).getlength(text) / DRAWN_SCALE


def png(drawing: Drawing) -> bytes:
    """Return the drawing with a white margin as a PNG file."""
    size = (
        round((drawing.width + 2 * MARGIN) * DRAWN_SCALE),
        round((drawing.height + 2 * MARGIN) * DRAWN_SCALE),
    )
    picture = Image.new("RGB", size, BACKGROUND)
    canvas = ImageDraw.Draw(picture)
    for shape in drawing.shapes:
        _draw(canvas, shape)
    shown = picture.reduce(DRAWN_SCALE // SHOWN_SCALE)
    file = io.BytesIO()
    shown.save(file, "PNG", optimize=True, dpi=(72 * SHOWN_SCALE, 72 * SHOWN_SCALE))
    return file.getvalue()


def _draw(canvas: ImageDraw.ImageDraw, shape: Shape) -> None:
    if isinstance(shape, Rectangle):
        corner = (*_at(shape.x, shape.y), *_at(shape.x + shape.width, shape.y + shape.height))
        canvas.rectangle(corner, fill=shape.color)
    elif isinstance(shape, Polyline):
        points = [_at(x, y) for x, y in shape.points]
        width = max(1, round(shape.width * DRAWN_SCALE))
        canvas.line(points, fill=shape.color, width=width, joint="curve")
    elif isinstance(shape, Dot):
        for radius, color in ((shape.radius + 0.9, BACKGROUND), (shape.radius, shape.color)):
            box = (
                *_at(shape.x - radius, shape.y - radius),
                *_at(shape.x + radius, shape.y + radius),
            )
            canvas.ellipse(box, fill=color)
    elif isinstance(shape, Label):
        font = _font(BOLD if shape.bold else REGULAR, shape.size)
        anchor = _ANCHORS[shape.anchor]
        canvas.text(_at(shape.x, shape.y), shape.text, fill=shape.color, font=font, anchor=anchor)


def _at(x: float, y: float) -> tuple[float, float]:
    return ((x + MARGIN) * DRAWN_SCALE, (y + MARGIN) * DRAWN_SCALE)


@lru_cache(maxsize=16)
def _font(file: Path, size: float) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(str(file), size * DRAWN_SCALE, layout_engine=ImageFont.Layout.BASIC)
