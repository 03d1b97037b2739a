"""Defines what a chart shows."""

from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    FiniteFloat,
    model_validator,
)

Language = Literal["en", "zh"]


def _one_line(text: str) -> str:
    # Line ends and control characters would be drawn as boxes.
    flat = " ".join(text.split())
    return "".join(letter for letter in flat if letter.isprintable())


OneLine = Annotated[str, AfterValidator(_one_line)]
"""Text for one line: line ends become blanks, control characters go."""

MAX_LABEL_COUNT = 400
MAX_SERIES_COUNT = 8


class Series(BaseModel):
    """Holds one line, or one colour of bars."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    name: OneLine = Field(default="", max_length=200)
    """Shown in the legend when there is more than one series."""

    values: tuple[FiniteFloat | None, ...] = Field(max_length=MAX_LABEL_COUNT)
    """One value per label; None where there is none."""


class ChartSpec(BaseModel):
    """Holds one bar or line chart."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    kind: Literal["bar", "line"]
    """Bars for categories, lines for a course over time."""

    title: OneLine = Field(default="", max_length=300)
    """Shown above the chart; may be empty."""

    x_label: OneLine = Field(default="", max_length=200)
    """What the labels are."""

    y_label: OneLine = Field(default="", max_length=200)
    """What the values are, with their unit."""

    labels: tuple[OneLine, ...] = Field(min_length=1, max_length=MAX_LABEL_COUNT)
    """Categories or points in time, in the order to show."""

    series: tuple[Series, ...] = Field(min_length=1, max_length=MAX_SERIES_COUNT)
    """One or more series over the same labels."""

    language: Language = "en"
    """Decides how large numbers on the axis are shortened: 40k or 4万."""

    @model_validator(mode="after")
    def _match(self) -> Self:
        for series in self.series:
            if len(series.values) != len(self.labels):
                raise ValueError(
                    f"series {series.name!r} has {len(series.values)} values for "
                    f"{len(self.labels)} labels; give one value or null per label"
                )
        if all(value is None for series in self.series for value in series.values):
            raise ValueError("no series has a value; there is nothing to draw")
        return self
