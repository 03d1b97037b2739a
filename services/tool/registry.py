"""Finds the tools: the built-in folder, the configured folders, installed packages."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, JsonValue, ValidationError

from services.runtime.call import Fallback, Group
from services.runtime.plugins import PluginError, discover
from services.tool.config import ToolSettings
from services.tool.context import ToolContext
from services.tool.declaration import Artifact, Tool, ToolResult
from services.tool.errors import (
    ToolArgumentsError,
    ToolDeclarationError,
    ToolNotFoundError,
)
from services.tool.source import DataSource

__all__ = [
    "Artifact",
    "DataSource",
    "Fallback",
    "Group",
    "Registry",
    "Tool",
    "ToolContext",
    "ToolResult",
]

ENTRY_POINT_GROUP = "sixhop.tools"
BUILT_IN_DIR = Path(__file__).parent / "tools"
BUILT_IN_PACKAGE = "services.tool.tools"


class Registry:
    """Knows every tool of this process by its name."""

    def __init__(self, tools: Iterable[tuple[str, Tool[Any]]]) -> None:
        """Take pairs of origin and tool; the origin is a file or a package, for messages.

        Raises:
            ToolDeclarationError: two tools have the same name.
        """
        self._tools: dict[str, Tool[Any]] = {}
        origins: dict[str, str] = {}
        for origin, tool in tools:
            if tool.name in origins:
                raise ToolDeclarationError(
                    f"the name {tool.name!r} is already taken by {origins[tool.name]}; "
                    "give this tool another name",
                    file=origin,
                )
            origins[tool.name] = origin
            self._tools[tool.name] = tool

    @classmethod
    def load(cls, settings: ToolSettings) -> "Registry":
        """Return the registry of the built-in tools and of what the settings add.

        Raises:
            ToolDeclarationError: a file or package does not declare a tool as it must.
        """
        return cls(_found(settings))

    def __iter__(self) -> Iterator[Tool[Any]]:
        """Iterate over the tools in the order of their names."""
        return iter(sorted(self._tools.values(), key=lambda tool: tool.name))

    def __len__(self) -> int:
        """Return the number of tools."""
        return len(self._tools)

    def get(self, name: str) -> Tool[Any]:
        """Return the tool of this name, or raise ToolNotFoundError."""
        try:
            return self._tools[name]
        except KeyError:
            raise ToolNotFoundError(name, tuple(self._tools)) from None

    def slow_after_s(self, name: str) -> float:
        """Return after how many seconds a tool is slow; 0 for one that is not known."""
        tool = self._tools.get(name)
        return 0.0 if tool is None else tool.slow_after_s

    def parse(self, tool: Tool[Any], arguments: Mapping[str, JsonValue]) -> BaseModel:
        """Return the arguments as the tool's own type, or raise ToolArgumentsError."""
        try:
            parsed: BaseModel = tool.arguments.model_validate(dict(arguments))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            field = ".".join(str(part) for part in first["loc"])
            problem = first["msg"].removeprefix("Value error, ")
            raise ToolArgumentsError(
                field or tool.name, f"{problem} (tool {tool.name!r})"
            ) from None
        return parsed


def _found(settings: ToolSettings) -> Iterator[tuple[str, Tool[Any]]]:
    try:
        exported = list(
            discover(
                BUILT_IN_DIR,
                BUILT_IN_PACKAGE,
                extra_folders=settings.tool_dirs,
                group=ENTRY_POINT_GROUP,
                constant="TOOL",
            )
        )
    except PluginError as error:
        declaration = error.__cause__
        if isinstance(declaration, ToolDeclarationError):
            # Tool(...) itself refused: it knows what is missing, the plug-in loader knows where.
            raise ToolDeclarationError(
                declaration.problem, file=error.origin, missing=declaration.missing
            ) from declaration
        raise ToolDeclarationError(error.problem, file=error.origin) from error
    for origin, tool in exported:
        if not isinstance(tool, Tool):
            raise ToolDeclarationError(
                f"TOOL is {type(tool).__name__}, no tool; write TOOL = Tool(name=..., "
                "description=..., arguments=..., run=..., timeout_s=..., max_concurrency=..., "
                "fallback=..., idempotent=...)",
                file=origin,
            )
        yield origin, tool
