"""Lays out a bar or line chart as shapes."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from services.tool.chart_axis import ValueAxis, value_axis
from services.tool.chart_spec import ChartSpec
from services.tool.drawing import (
    Anchor,
    Dot,
    Drawing,
    Label,
    Polyline,
    Rectangle,
    Shape,
    TextMeasure,
)
from services.tool.line_breaking import shortened, wrapped
from services.tool.number_text import compact, short

PALETTE = ("#2f5f94", "#e39a35", "#3a9d8f", "#c8553d", "#7566a8", "#8a9199", "#9b6a3c", "#5b8c3e")
INK = "#1f2933"
SOFT_INK = "#5f6c7b"
GRID = "#e4e8ed"
BASE_LINE = "#9aa5b1"

TITLE_SIZE = 12.0
TEXT_SIZE = 8.0
VALUE_SIZE = 7.5
LINE_HEIGHT = 10.5
GAP = 8.0
BAR_SHARE = 0.72
MAX_BAR_WIDTH = 54.0
MAX_LABEL_LINES = 3
MAX_DOTS = 60
MAX_VALUE_LABELS = 60


@dataclass(frozen=True, slots=True)
class Area:
    """Is where the values are drawn."""

    left: float
    top: float
    right: float
    bottom: float


def laid_out(spec: ChartSpec, *, width: float, height: float, measure: TextMeasure) -> Drawing:
    """Return the chart in a drawing of the given size, in points."""
    layout = _Layout(spec, width, height, measure)
    return Drawing(width, height, tuple(layout.shapes()))


class _Layout:
    """Places the parts of one chart."""

    def __init__(self, spec: ChartSpec, width: float, height: float, measure: TextMeasure) -> None:
        self._spec = spec
        self._width = width
        self._height = height
        self._measure = measure
        self._text = partial(measure, size=TEXT_SIZE)
        self._axis = value_axis(spec)
        self._ticks = [short(tick, spec.language) for tick in self._axis.ticks]

    def shapes(self) -> Iterator[Shape]:
        head, top = self._head()
        yield from head
        if self._lies_down(top):
            yield from self._lying_bars(top)
            return
        area = self._upright_area(top)
        yield from self._value_lines(area)
        yield from self._bars(area) if self._spec.kind == "bar" else self._lines(area)
        yield from self._names(area)

    # The head: title, what the values are, legend.

    def _head(self) -> tuple[list[Shape], float]:
        shapes: list[Shape] = []
        y = 0.0
        if self._spec.title:
            bold = partial(self._measure, size=TITLE_SIZE, bold=True)
            for line in wrapped(self._spec.title, self._width, bold)[:2]:
                y += TITLE_SIZE + 2
                shapes.append(Label(0, y, line, TITLE_SIZE, INK, bold=True))
            y += 4
        if len(self._spec.series) > 1:
            legend, y = self._legend(y + LINE_HEIGHT)
            shapes.extend(legend)
            y += 2
        if self._spec.y_label:
            y += LINE_HEIGHT
            text = shortened(self._spec.y_label, self._width, self._text)
            shapes.append(Label(0, y, text, TEXT_SIZE, SOFT_INK))
        return shapes, y + GAP

    def _legend(self, y: float) -> tuple[list[Shape], float]:
        shapes: list[Shape] = []
        x = 0.0
        for number, series in enumerate(self._spec.series):
            name = shortened(series.name or f"{number + 1}", self._width / 2, self._text)
            needed = 12 + self._text(name)
            if x and x + needed > self._width:
                x, y = 0.0, y + LINE_HEIGHT + 2
            shapes.append(Rectangle(x, y - 7, 8, 8, _color(number)))
            shapes.append(Label(x + 12, y, name, TEXT_SIZE, INK))
            x += needed + 16
        return shapes, y

    # Upright charts: names below, values upwards.

    def _upright_area(self, top: float) -> Area:
        left = max(self._text(tick) for tick in self._ticks) + 6
        slot = (self._width - left) / len(self._spec.labels)
        lines = max(len(lines) for lines in self._name_lines(slot))
        below = lines * LINE_HEIGHT + 6 + (LINE_HEIGHT + 2 if self._spec.x_label else 0)
        return Area(left, top, self._width, max(top + 40, self._height - below))

    def _value_lines(self, area: Area) -> Iterator[Shape]:
        for tick, text in zip(self._axis.ticks, self._ticks, strict=True):
            y = self._y(area, tick)
            color, thickness = (BASE_LINE, 0.9) if tick == 0 else (GRID, 0.6)
            yield Polyline(((area.left, y), (area.right, y)), color, thickness)
            yield Label(area.left - 5, y + 2.8, text, TEXT_SIZE, SOFT_INK, Anchor.END)

    def _y(self, area: Area, value: float) -> float:
        return area.bottom - self._axis.ratio(value) * (area.bottom - area.top)

    def _bars(self, area: Area) -> Iterator[Shape]:
        slot = (area.right - area.left) / len(self._spec.labels)
        count = len(self._spec.series)
        bar = min(slot * BAR_SHARE / count, MAX_BAR_WIDTH)
        zero = area.bottom - self._axis.zero_ratio * (area.bottom - area.top)
        texts = self._bar_texts(slot if count == 1 else bar)
        for number, series in enumerate(self._spec.series):
            for position, value in enumerate(series.values):
                if value is None:
                    continue
                middle = area.left + slot * (position + 0.5)
                x = middle - bar * count / 2 + bar * number
                y = self._y(area, value)
                inset = bar * 0.04
                yield Rectangle(
                    x + inset, min(y, zero), bar - 2 * inset, abs(y - zero), _color(number)
                )
                if value in texts:
                    at = y - 3 if value >= 0 else y + TEXT_SIZE
                    text = texts[value]
                    yield Label(x + bar / 2, at, text, VALUE_SIZE, INK, Anchor.MIDDLE)

    def _bar_texts(self, room: float) -> dict[float, str]:
        """Return how values are written: in full, else short, else not at all."""
        values = _values(self._spec)
        in_full = {value: compact(value) for value in values}
        in_short = {value: short(value, self._spec.language) for value in values}
        for texts in (in_full, in_short):
            widest = max(self._measure(text, VALUE_SIZE) for text in texts.values())
            if len(values) <= MAX_VALUE_LABELS and widest <= room:
                return texts
        return {}

    def _lines(self, area: Area) -> Iterator[Shape]:
        slot = (area.right - area.left) / len(self._spec.labels)
        for number, series in enumerate(self._spec.series):
            color = _color(number)
            for run in _runs(series.values):
                points = tuple(
                    (area.left + slot * (position + 0.5), self._y(area, value))
                    for position, value in run
                )
                if len(points) > 1:
                    yield Polyline(points, color, 2.0)
                if len(self._spec.labels) <= MAX_DOTS or len(points) == 1:
                    yield from (Dot(x, y, 2.6, color) for x, y in points)

    def _names(self, area: Area) -> Iterator[Shape]:
        slot = (area.right - area.left) / len(self._spec.labels)
        step = self._name_step(slot)
        for position, lines in enumerate(self._name_lines(slot)):
            if position % step:
                continue
            x = area.left + slot * (position + 0.5)
            for number, line in enumerate(lines, start=1):
                y = area.bottom + 4 + number * LINE_HEIGHT - 1
                yield Label(x, y, line, TEXT_SIZE, SOFT_INK, Anchor.MIDDLE)
        if self._spec.x_label:
            middle = (area.left + area.right) / 2
            text = shortened(self._spec.x_label, area.right - area.left, self._text)
            yield Label(middle, self._height - 2, text, TEXT_SIZE, SOFT_INK, Anchor.MIDDLE)

    def _name_step(self, slot: float) -> int:
        if self._spec.kind == "bar":
            # Bars without their names are worthless; only very many are thinned out.
            return max(1, math.ceil((TEXT_SIZE + 2) * 2 / slot))
        widest = max(self._text(label) for label in self._spec.labels)
        return max(1, math.ceil((min(widest, 90) + 6) / slot))

    def _name_lines(self, slot: float) -> list[list[str]]:
        room = slot * self._name_step(slot) - 4
        return [_fitted(label, room, self._text) for label in self._spec.labels]

    # Lying bars: names at the left, values to the right; for names too long to stand below.

    def _lies_down(self, top: float) -> bool:
        spec = self._spec
        if spec.kind != "bar" or len(spec.labels) < 2:
            return False
        if (self._height - top) / len(spec.labels) < LINE_HEIGHT:
            return False
        left = max(self._text(tick) for tick in self._ticks) + 6
        room = (self._width - left) / len(spec.labels) - 4
        return any(
            len(wrapped(label, room, self._text)) > 2
            or any(self._text(word) > room for word in label.split())
            for label in spec.labels
        )

    def _lying_bars(self, top: float) -> Iterator[Shape]:
        spec = self._spec
        widest = max(self._text(label) for label in spec.labels)
        left = min(widest, self._width * 0.38) + 8
        room = max(self._text(compact(value)) for value in _values(spec)) + 8
        below = LINE_HEIGHT + 4 + (LINE_HEIGHT if spec.x_label else 0)
        area = Area(left, top, self._width - room, self._height - below)
        for tick, text in zip(self._axis.ticks, self._ticks, strict=True):
            x = _x(area, self._axis, tick)
            color, thickness = (BASE_LINE, 0.9) if tick == 0 else (GRID, 0.6)
            yield Polyline(((x, area.top), (x, area.bottom)), color, thickness)
            y = area.bottom + LINE_HEIGHT
            yield Label(x, y, text, TEXT_SIZE, SOFT_INK, Anchor.MIDDLE)
        slot = (area.bottom - area.top) / len(spec.labels)
        for position, label in enumerate(spec.labels):
            y = area.top + slot * (position + 0.5)
            name = shortened(label, left - 8, self._text)
            yield Label(left - 6, y + 2.8, name, TEXT_SIZE, INK, Anchor.END)
            yield from self._lying_group(area, y, slot, position)

    def _lying_group(
        self, area: Area, middle: float, slot: float, position: int
    ) -> Iterator[Shape]:
        count = len(self._spec.series)
        bar = min(slot * BAR_SHARE / count, 22.0)
        zero = area.left + self._axis.zero_ratio * (area.right - area.left)
        for number, series in enumerate(self._spec.series):
            value = series.values[position]
            if value is None:
                continue
            y = middle - bar * count / 2 + bar * number
            x = _x(area, self._axis, value)
            yield Rectangle(min(x, zero), y, abs(x - zero), bar * 0.94, _color(number))
            if bar >= TEXT_SIZE:
                anchor = Anchor.START if value >= 0 else Anchor.END
                at = x + 4 if value >= 0 else x - 4
                yield Label(at, y + bar / 2 + 2.4, compact(value), VALUE_SIZE, INK, anchor)


def _x(area: Area, axis: ValueAxis, value: float) -> float:
    return area.left + axis.ratio(value) * (area.right - area.left)


def _color(number: int) -> str:
    return PALETTE[number % len(PALETTE)]


def _values(spec: ChartSpec) -> list[float]:
    return [value for series in spec.series for value in series.values if value is not None]


def _runs(values: Sequence[float | None]) -> Iterator[list[tuple[int, float]]]:
    """Yield the stretches without a gap."""
    run: list[tuple[int, float]] = []
    for position, value in enumerate(values):
        if value is not None:
            run.append((position, value))
        elif run:
            yield run
            run = []
    if run:
        yield run


def _fitted(label: str, room: float, measure: partial[float]) -> list[str]:
    lines = wrapped(label, room, measure)
    if len(lines) <= MAX_LABEL_LINES:
        return lines
    kept = lines[:MAX_LABEL_LINES]
    kept[-1] = shortened(kept[-1] + lines[MAX_LABEL_LINES], room, measure)
    return kept
