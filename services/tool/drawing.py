"""Defines the few shapes that charts are made of, for paper and for pixels alike."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class Anchor(StrEnum):
    """Says which point of a text its x coordinate is."""

    START = "start"
    MIDDLE = "middle"
    END = "end"


class TextMeasure(Protocol):
    """Measures text in the fonts of the reports."""

    def __call__(self, text: str, size: float, *, bold: bool = False) -> float:
        """Return the width of a text in points."""
        ...


@dataclass(frozen=True, slots=True)
class Rectangle:
    """Is filled."""

    x: float
    y: float
    width: float
    height: float
    color: str


@dataclass(frozen=True, slots=True)
class Polyline:
    """Joins points by straight lines with round corners."""

    points: tuple[tuple[float, float], ...]
    color: str
    width: float


@dataclass(frozen=True, slots=True)
class Dot:
    """Is a filled circle with a white rim."""

    x: float
    y: float
    radius: float
    color: str


@dataclass(frozen=True, slots=True)
class Label:
    """Is one line of text; `y` is its base line."""

    x: float
    y: float
    text: str
    size: float
    color: str
    anchor: Anchor = Anchor.START
    bold: bool = False


Shape = Rectangle | Polyline | Dot | Label


@dataclass(frozen=True, slots=True)
class Drawing:
    """Holds shapes in points, with the origin at the top left and y downwards."""

    width: float
    height: float
    shapes: tuple[Shape, ...]
