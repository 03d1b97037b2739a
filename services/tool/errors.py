"""Defines the refusals of the tool room."""

from collections.abc import Sequence
from pathlib import Path

from services.runtime.errors import (
    InvalidArgumentError,
    NotFoundError,
    SelfUnavailableError,
)


class ToolNotFoundError(NotFoundError):
    """Says that no tool has this name, and which names exist."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        """Take the name asked for and the names that exist."""
        super().__init__("tool", name, known)


class ToolArgumentsError(InvalidArgumentError):
    """Says which argument of a tool is wrong."""


class ToolDeclarationError(SelfUnavailableError):
    """Refuses a tool file at start-up: says what it lacks and what to write."""

    def __init__(
        self, problem: str, *, file: Path | str | None = None, missing: Sequence[str] = ()
    ) -> None:
        """Take the problem, the file once it is known, and the names not declared."""
        where = f"{file}: " if file is not None else ""
        super().__init__(f"{where}{problem}", cause="tool_declaration")
        self.problem = problem
        self.file = file
        self.missing = tuple(missing)


class DataSourceError(InvalidArgumentError):
    """Says what is wrong with a file of data and what its owner can do."""

    def __init__(self, source_name: str, problem: str) -> None:
        """Take the name of the file or table and a sentence that says what to do."""
        super().__init__(source_name, problem)
        self.source_name = source_name


class DataSourceNotFoundError(NotFoundError):
    """Says that the data folder has no dataset of this name."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        """Take the name asked for and the datasets that exist."""
        super().__init__("dataset", name, known)


class SqlRefusedError(InvalidArgumentError):
    """Refuses a query that is not one read-only statement over the given tables."""

    def __init__(self, problem: str) -> None:
        """Take the reason, a sentence that says what is allowed."""
        super().__init__("query", problem)


class SqlInvalidError(InvalidArgumentError):
    """Says why the engine could not answer a query that was allowed."""

    def __init__(self, problem: str) -> None:
        """Take the engine's reason in one or two lines."""
        super().__init__("query", problem)
