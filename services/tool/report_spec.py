"""Defines what a report contains."""

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, model_validator

from services.tool.chart_spec import ChartSpec, Language, OneLine

MAX_ROW_COUNT = 2000
MAX_COLUMN_COUNT = 20
MAX_CELL_CHARS = 500

Cell = str | int | FiniteFloat | None


class TableSpec(BaseModel):
    """Holds one table; columns of numbers are aligned to the right."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    columns: tuple[str, ...] = Field(min_length=1, max_length=MAX_COLUMN_COUNT)
    """The heads, repeated on every page."""

    rows: tuple[tuple[Cell, ...], ...] = Field(max_length=MAX_ROW_COUNT)
    """The cells. Numbers get thousands separators; text is printed as it is."""

    @model_validator(mode="after")
    def _match(self) -> Self:
        for number, row in enumerate(self.rows, start=1):
            if len(row) != len(self.columns):
                raise ValueError(
                    f"row {number} has {len(row)} cells for {len(self.columns)} columns"
                )
            if any(isinstance(cell, str) and len(cell) > MAX_CELL_CHARS for cell in row):
                raise ValueError(f"row {number} has a cell of more than {MAX_CELL_CHARS} letters")
        return self


class ReportSpec(BaseModel):
    """Holds one report: text, a chart, a table, notes."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    title: OneLine = Field(min_length=1, max_length=300)
    """Printed large on the first page, and small at the foot of each."""

    subtitle: OneLine = Field(default="", max_length=500)
    """Such as the period, the source and the date of the report."""

    language: Language = "en"
    """The language of the words that the report adds, such as "Page"."""

    paragraphs: tuple[str, ...] = Field(default=(), max_length=50)
    """Plain text; the first paragraph is the answer and is set larger."""

    table: TableSpec | None = None
    """The figures."""

    chart: ChartSpec | None = None
    """The picture of the figures."""

    notes: tuple[str, ...] = Field(default=(), max_length=50)
    """What a reader should know about the figures: sources, gaps, assumptions."""
