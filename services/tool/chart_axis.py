"""Chooses round numbers for the axis of values."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from services.tool.chart_spec import ChartSpec

WANTED_TICKS = 5
# A line chart whose values lie close together far from zero may leave zero out.
MIN_SPREAD_RATIO = 0.4


@dataclass(frozen=True, slots=True)
class ValueAxis:
    """Maps values to a ratio of the axis, 0 at its low end and 1 at its high end."""

    ticks: tuple[float, ...]
    """Round values, rising."""

    def ratio(self, value: float) -> float:
        """Return where on the axis a value is."""
        return (value - self.ticks[0]) / (self.ticks[-1] - self.ticks[0])

    @property
    def zero_ratio(self) -> float:
        """Return where zero is, or the end of the axis nearest to it."""
        return min(1.0, max(0.0, self.ratio(0.0)))


def value_axis(spec: ChartSpec) -> ValueAxis:
    """Return the axis for all series of a chart. Bars always begin at zero."""
    values = [value for series in spec.series for value in series.values if value is not None]
    low, high = min(values), max(values)
    close = low > 0 and (high - low) < MIN_SPREAD_RATIO * high
    if spec.kind == "bar" or not close:
        low, high = min(0.0, low), max(0.0, high)
    if low == high:
        low, high = (0.0, 1.0) if high == 0 else (min(0.0, high), max(0.0, high))
    return ValueAxis(_ticks(low, high))


def _ticks(low: float, high: float) -> tuple[float, ...]:
    step = _round_step((high - low) / WANTED_TICKS)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return tuple(_clean(number * step, step) for number in range(first, last + 1))


def _round_step(rough: float) -> float:
    power = 10.0 ** math.floor(math.log10(rough))
    steps: Sequence[float] = (1.0, 2.0, 2.5, 5.0, 10.0)
    return next(step * power for step in steps if step * power >= rough * (1 - 1e-9))


def _clean(value: float, step: float) -> float:
    # Multiples of 0.1 and the like carry the noise of binary fractions.
    return round(value, max(0, 3 - math.floor(math.log10(step))))
