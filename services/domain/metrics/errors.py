"""Defines what the metrics refuse, each refusal with what to do instead."""

from services.runtime.errors import InvalidArgumentError


class ReadOnlyError(InvalidArgumentError):
    """Refuses a question that asks to change data; nothing was sent to the database."""

    def __init__(self, found: str) -> None:
        """Take the words that gave the wish away."""
        super().__init__(
            "question",
            f"the data is read-only here, and {found!r} would change it; "
            "ask what you want to know about the data instead",
        )


class NotUnderstoodError(InvalidArgumentError):
    """Says that the question names nothing in the data, and what could be asked."""

    def __init__(self, problem: str, *, columns: tuple[str, ...], example: str) -> None:
        """Take the problem, the columns that exist, and a question that works on them."""
        super().__init__(
            "question",
            f"{problem}; the columns are: {', '.join(columns)}; a question that works: {example!r}",
        )
        self.columns = columns
        self.example = example


class NoDateColumnError(NotUnderstoodError):
    """Says that the question speaks of time, and the data has no dates."""


class NoDataError(InvalidArgumentError):
    """Says that the source has no rows or no columns to ask about."""

    def __init__(self, table: str) -> None:
        """Take the table's name."""
        super().__init__("data", f"the table {table!r} has no rows; give a file with data")
