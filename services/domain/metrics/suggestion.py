"""Makes an example question that works on a table."""

from services.domain.metrics.roles import Catalog


def example_question(catalog: Catalog, language: str) -> str:
    """Return a question about the table's main number, group and dates, in the language."""
    measures, dimensions = catalog.measures(), catalog.dimensions()
    measure = measures[0].column.name if measures else ""
    group = dimensions[0].column.name if dimensions else ""
    if language == "zh":
        when = "上个季度" if catalog.axes else ""
        if group:
            return f"{when}哪个{group}的{measure or '行数'}最高？"
        return f"{when}{measure or '行数'}总计是多少？"
    when = " last quarter" if catalog.axes else ""
    if group:
        return f"Which {group} had the highest {measure or 'number of rows'}{when}?"
    return f"What was the total {measure or 'number of rows'}{when}?"
