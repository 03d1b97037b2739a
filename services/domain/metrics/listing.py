"""Reads the rows of the `sql` tool, and lists them as text when nothing else is asked."""

from collections.abc import Mapping, Sequence

from pydantic import JsonValue

_SHOWN_ROWS = 20
_CELL_CHARS = 60


def rows_of(data: Mapping[str, JsonValue]) -> list[dict[str, JsonValue]]:
    """Return the rows of a result, each by its columns' names."""
    names = column_names(data)
    rows = data.get("rows")
    if not isinstance(rows, Sequence) or isinstance(rows, str):
        return []
    return [
        dict(zip(names, row, strict=False))
        for row in rows
        if isinstance(row, Sequence) and not isinstance(row, str)
    ]


def column_names(data: Mapping[str, JsonValue]) -> list[str]:
    """Return the names of the columns of a result."""
    columns = data.get("columns")
    if not isinstance(columns, Sequence) or isinstance(columns, str):
        return []
    return [str(column.get("name", "")) for column in columns if isinstance(column, Mapping)]


def listing_text(data: Mapping[str, JsonValue], language: str) -> str:
    """Return the rows as a Markdown table, with how many there are."""
    names, rows = column_names(data), rows_of(data)
    more = bool(data.get("truncated")) or len(rows) > _SHOWN_ROWS
    count = len(rows)
    if language == "zh":
        said = f"查询返回{'至少' if data.get('truncated') else ''}{count}行"
        said += f"，显示前{_SHOWN_ROWS}行。" if more and count > _SHOWN_ROWS else "。"
    else:
        said = f"The query returned {'at least ' if data.get('truncated') else ''}{count:,} "
        said += "row" if count == 1 else "rows"
        said += f"; the first {_SHOWN_ROWS} are:" if more and count > _SHOWN_ROWS else "."
    if not rows or not names:
        return said
    lines = [_line(names), _line(["---"] * len(names))]
    lines += [_line([_cell(row.get(name)) for name in names]) for row in rows[:_SHOWN_ROWS]]
    return f"{said}\n\n" + "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(value: JsonValue) -> str:
    if value is None:
        return ""
    if isinstance(value, float) and value == int(value) and abs(value) < 1e15:
        value = int(value)
    text = str(value).replace("|", "\\|").replace("\n", " ")
    return text if len(text) <= _CELL_CHARS else f"{text[: _CELL_CHARS - 1]}…"
