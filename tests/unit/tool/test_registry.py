"""Tests which files and packages become tools, and what a refusal tells their author."""

from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest
from pydantic import ValidationError

from services.runtime import plugins
from services.tool.config import ToolSettings
from services.tool.errors import ToolArgumentsError, ToolDeclarationError, ToolNotFoundError
from services.tool.registry import Fallback, Group, Registry
from tests.requirements import requirement

GOOD = '''
"""Doubles a number."""

from pydantic import BaseModel, ConfigDict

from services.tool.registry import Fallback, Tool, ToolContext, ToolResult


class DoubleArguments(BaseModel):
    """Takes the number."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    number: int


async def double(arguments: DoubleArguments, context: ToolContext) -> ToolResult:
    """Return twice the number."""
    return ToolResult({"doubled": 2 * arguments.number})


TOOL = Tool(
    name="double",
    description="Doubles a number.",
    arguments=DoubleArguments,
    run=double,
    timeout_s=1.0,
    max_concurrency=8,
    fallback=Fallback.NONE,
    idempotent=True,
)
'''


def settings_with(folder: Path, text: str, name: str = "double.py") -> ToolSettings:
    (folder / name).write_text(text, encoding="utf-8")
    return ToolSettings(tool_dirs=(folder,))


def test_the_shipped_tools_are_found_by_their_files() -> None:
    registry = Registry.load(ToolSettings())

    names = [tool.name for tool in registry]
    assert {"chart", "pdf", "profile", "search", "sql", "summarise"} <= set(names)
    assert names == sorted(names)
    assert len(registry) == len(names)


@requirement("extension:tool-is-one-file")
def test_one_file_in_a_configured_folder_is_a_tool(tmp_path: Path) -> None:
    registry = Registry.load(settings_with(tmp_path, GOOD))

    tool = registry.get("double")
    assert (tool.timeout_s, tool.max_concurrency) == (1.0, 8)
    assert (tool.fallback, tool.idempotent, tool.group) == (Fallback.NONE, True, Group.CORE)


def test_what_may_be_given_instead_is_in_the_order_of_its_worth(tmp_path: Path) -> None:
    declared = "fallback=(Fallback.SKIP, Fallback.DEFAULT, Fallback.CACHE), "
    text = GOOD.replace(
        "fallback=Fallback.NONE,", declared + "cache_age_s=60.0, default={'doubled': 0},"
    )

    several = Registry.load(settings_with(tmp_path, text)).get("double")
    none = Registry.load(settings_with(tmp_path, GOOD)).get("double")

    assert several.fallbacks == (Fallback.CACHE, Fallback.DEFAULT, Fallback.SKIP)
    assert none.fallbacks == ()


def test_no_timeout_goes_below_a_fifth_of_the_declared_one_or_what_the_tool_says(
    tmp_path: Path,
) -> None:
    own = GOOD.replace("timeout_s=1.0,", "timeout_s=1.0, min_timeout_s=0.7,")

    assert Registry.load(settings_with(tmp_path, GOOD)).get("double").least_timeout_s == 0.2
    assert Registry.load(settings_with(tmp_path, own)).get("double").least_timeout_s == 0.7


@pytest.mark.parametrize("missing", ["timeout_s", "max_concurrency", "fallback", "idempotent"])
def test_a_tool_without_one_of_the_four_is_refused_with_file_field_and_example(
    tmp_path: Path, missing: str
) -> None:
    text = "\n".join(line for line in GOOD.splitlines() if not line.startswith(f"    {missing}="))

    with pytest.raises(ToolDeclarationError) as refused:
        Registry.load(settings_with(tmp_path, text))

    assert refused.value.missing == (missing,)
    assert str(tmp_path / "double.py") in str(refused.value)
    assert f"add to Tool(...): {missing}=" in str(refused.value)


def test_all_that_is_missing_is_named_at_once(tmp_path: Path) -> None:
    text = "from services.tool.registry import Tool\nTOOL = Tool(name='x')\n"

    with pytest.raises(ToolDeclarationError) as refused:
        Registry.load(settings_with(tmp_path, text))

    assert refused.value.missing == ("timeout_s", "max_concurrency", "fallback", "idempotent")


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ("timeout_s=1.0", "timeout_s=0", "timeout_s must be above 0"),
        ("timeout_s=1.0", "timeout_s='1'", "timeout_s must be above 0"),
        ("max_concurrency=8", "max_concurrency=0", "whole number from 1"),
        ("max_concurrency=8", "max_concurrency=1.5", "whole number from 1"),
        ("fallback=Fallback.NONE", "fallback='none'", "must be a Fallback"),
        ("fallback=Fallback.NONE", "fallback=()", "must be a Fallback"),
        ("fallback=Fallback.NONE", "fallback=(Fallback.NONE, Fallback.SKIP)", "says NONE"),
        ("fallback=Fallback.NONE", "fallback=Fallback.BACKUP", "is for models"),
        ("fallback=Fallback.NONE", "fallback=Fallback.CACHE", "go together"),
        ("fallback=Fallback.NONE", "fallback=Fallback.SKIP, cache_age_s=5.0", "go together"),
        ("fallback=Fallback.NONE", "fallback=Fallback.CACHE, cache_age_s=-1", "cache_age_s must"),
        ("fallback=Fallback.NONE", "fallback=Fallback.DEFAULT", "and a default go together"),
        ("fallback=Fallback.NONE", "fallback=Fallback.SKIP, default={}", "default go together"),
        (
            "fallback=Fallback.NONE",
            "fallback=Fallback.DEFAULT, default={'x': float('inf')}",
            "that JSON can hold",
        ),
        (
            "fallback=Fallback.NONE,\n    idempotent=True",
            "fallback=Fallback.CACHE,\n    cache_age_s=5.0,\n    idempotent=False",
            "not idempotent",
        ),
        ("timeout_s=1.0", "timeout_s=1.0, min_timeout_s=0", "min_timeout_s must be above 0"),
        ("idempotent=True", "idempotent=1", "must be True or False"),
        ('name="double"', 'name="Double It"', "lower-case letters"),
        ('description="Doubles a number."', 'description=" "', "in one sentence"),
        ("run=double", "run=print", "must be an async function"),
        ("arguments=DoubleArguments", "arguments=dict", "pydantic model class"),
        ('frozen=True, extra="forbid"', "frozen=True", 'extra="forbid"'),
        ("run=double", "run=double, colour='red'", "unexpected keyword argument 'colour'"),
    ],
)
def test_a_declaration_that_cannot_work_is_refused(
    tmp_path: Path, before: str, after: str, problem: str
) -> None:
    assert before in GOOD

    with pytest.raises(ToolDeclarationError, match=problem) as refused:
        Registry.load(settings_with(tmp_path, GOOD.replace(before, after)))

    assert "double.py" in str(refused.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("x = 1\n", "exports no TOOL"),
        ("TOOL = 'double'\n", "TOOL is str, no tool; write TOOL = Tool"),
        ("import nowhere_to_be_found\n", "nowhere_to_be_found"),
        ("def broken(:\n", "SyntaxError"),
    ],
)
def test_a_file_that_is_no_tool_is_refused_with_its_name(
    tmp_path: Path, text: str, problem: str
) -> None:
    with pytest.raises(ToolDeclarationError, match=problem) as refused:
        Registry.load(settings_with(tmp_path, text))

    assert "double.py" in str(refused.value)


def test_a_name_that_is_taken_is_refused_with_both_files(tmp_path: Path) -> None:
    text = GOOD.replace('name="double"', 'name="sql"')

    with pytest.raises(ToolDeclarationError, match=r"'sql' is already taken by .*sql\.py"):
        Registry.load(settings_with(tmp_path, text))


def test_a_folder_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="nowhere does not exist"):
        ToolSettings(tool_dirs=(tmp_path / "nowhere",))


def test_files_that_begin_with_an_underscore_are_no_tools(tmp_path: Path) -> None:
    Registry.load(settings_with(tmp_path, "x = 1\n", name="_shared.py"))


def test_an_installed_package_adds_a_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a_package_with_a_tool.py").write_text(GOOD, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    entry = EntryPoint("double", "a_package_with_a_tool:TOOL", "sixhop.tools")
    monkeypatch.setattr(plugins, "entry_points", lambda *, group: EntryPoints([entry]))

    assert Registry.load(ToolSettings()).get("double").timeout_s == 1.0


def test_an_unknown_tool_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ToolNotFoundError, match="no tool named 'nope'; known: chart, pdf"):
        Registry.load(ToolSettings()).get("nope")


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({}, "query"),
        ({"query": ""}, "query"),
        ({"query": 7}, "query"),
        ({"query": "SELECT 1", "max_rows": 0}, "max_rows"),
        ({"query": "SELECT 1", "limit": 5}, "limit"),
    ],
)
def test_wrong_arguments_are_refused_by_the_name_of_the_first(
    arguments: dict[str, str | int], field: str
) -> None:
    registry = Registry.load(ToolSettings())

    with pytest.raises(ToolArgumentsError) as refused:
        registry.parse(registry.get("sql"), arguments)

    assert refused.value.field == field


def test_whole_numbers_that_travelled_as_fractions_are_whole_again() -> None:
    registry = Registry.load(ToolSettings())

    parsed = registry.parse(registry.get("sql"), {"query": "SELECT 1", "max_rows": 50.0})

    assert parsed.model_dump()["max_rows"] == 50
