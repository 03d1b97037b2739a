"""Holds time, chance, the environment and tasks to the files that own them."""

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch

import pytest

from tests.architecture.sources import Source, parse, product, sources
from tests.requirements import requirement

CLOCK = "services/runtime/clock.py"
DOORS = ("services/runtime/config.py", "services/runtime/launch.py", "*/__main__.py")


@dataclass(frozen=True, slots=True)
class Ban:
    """Bans names outside the files that own them."""

    pattern: str
    """Matches the whole dotted name, as imported."""
    owners: tuple[str, ...]
    """The files that may use it."""


BANS = (
    Ban(r"time(\..*)?", (CLOCK,)),
    Ban(r"datetime\.datetime\.(now|utcnow|today)|datetime\.date\.today", (CLOCK,)),
    Ban(r"asyncio\.sleep", (CLOCK,)),
    Ban(r"random\.[a-z].*", ()),
    Ban(r"os\.(environb?|getenv|putenv|unsetenv)(\..*)?", DOORS),
)


def used_names(source: Source) -> Iterator[tuple[int, str]]:
    """Yield the line and the full dotted name of everything that comes from an import."""
    origins: dict[str, str] = {}
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                origins[alias.asname or alias.name.split(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                origins[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                yield node.lineno, f"{node.module}.{alias.name}"
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Attribute | ast.Name):
            first, *rest = ast.unparse(node).split(".")
            if first in origins:
                yield node.lineno, ".".join([origins[first], *rest])


def banned_uses(source: Source) -> set[str]:
    """Return ``file:line name`` of every use that a ban forbids in this file."""
    return {
        f"{source.name}:{line} {name}"
        for line, name in used_names(source)
        for ban in BANS
        if re.fullmatch(ban.pattern, name)
        if not any(fnmatch(source.name, owner) for owner in ban.owners)
    }


def dropped_tasks(source: Source) -> list[str]:
    """Return ``file:line`` of every task that is started and that nothing keeps.

    A task group keeps its own, so ``group.create_task(...)`` alone is right.
    """
    starters = ("asyncio.create_task(", "asyncio.ensure_future(", "loop.create_task(")
    return [
        f"{source.name}:{node.lineno}"
        for node in ast.walk(source.tree)
        if (isinstance(node, ast.Expr) and _starts(node.value, starters))
        or (
            isinstance(node, ast.Assign)
            and ast.unparse(node.targets[0]) == "_"
            and _starts(node.value, starters)
        )
    ]


def unreasoned_excepts(source: Source) -> list[str]:
    """Return ``file:line`` of every handler of all exceptions without a comment on its line.

    One that ends by raising keeps none, and needs no reason.
    """
    lines = source.text.splitlines()
    broad = {"None", "Exception", "BaseException"}
    return [
        f"{source.name}:{node.lineno}"
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or broad & set(re.findall(r"\w+", ast.unparse(node.type))))
        and not isinstance(node.body[-1], ast.Raise)
        and "#" not in lines[node.lineno - 1]
    ]


def real_sleeps(source: Source) -> list[str]:
    """Return ``file:line`` of every sleep that is not the bare turn of the loop, ``sleep(0)``."""
    return [
        f"{source.name}:{node.lineno}"
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in {"time.sleep", "asyncio.sleep"}
        and [ast.unparse(argument) for argument in node.args] != ["0"]
    ]


def _starts(node: ast.expr, starters: tuple[str, ...]) -> bool:
    call = ast.unparse(node)
    return isinstance(node, ast.Call) and (
        call.startswith(starters) or "_loop().create_task(" in call
    )


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("import time\n", "time"),
        ("from time import monotonic as now\n", "time.monotonic"),
        ("import asyncio as aio\nasync def f():\n    await aio.sleep(1)\n", "asyncio.sleep"),
        ("import random\nx = random.random()\n", "random.random"),
        ("from random import choice\n", "random.choice"),
        ("import os\nx = os.environ['A']\n", "os.environ"),
        ("from datetime import UTC, datetime\nx = datetime.now(UTC)\n", "datetime.datetime.now"),
    ],
)
def test_a_banned_name_is_found_whatever_it_is_called(code: str, name: str) -> None:
    found = banned_uses(parse(code))

    assert {entry.split(" ")[1] for entry in found} == {name}


@pytest.mark.parametrize(
    "code",
    ["import random\nx = random.Random(7)\n", "import os\nx = os.getpid()\n", "time = 1.0\n"],
)
def test_what_only_looks_banned_passes(code: str) -> None:
    assert not banned_uses(parse(code))


@pytest.mark.parametrize(
    ("rule", "wrong", "right"),
    [
        (dropped_tasks, "asyncio.create_task(f())", "group.create_task(f())"),
        (dropped_tasks, "asyncio.get_running_loop().create_task(f())", "t = loop.create_task(f())"),
        (dropped_tasks, "_ = asyncio.ensure_future(f())", "kept.add(asyncio.create_task(f()))"),
        (unreasoned_excepts, "try: f()\nexcept Exception: g()", "try: f()\nexcept OSError: g()"),
        (unreasoned_excepts, "try: f()\nexcept: g()", "try: f()\nexcept Exception: # why\n g()"),
        (unreasoned_excepts, "try: f()\nexcept: g()", "try: f()\nexcept:\n g()\n raise"),
        (real_sleeps, "asyncio.sleep(0.1)", "asyncio.sleep(0)"),
    ],
)
def test_a_rule_tells_wrong_from_right(
    rule: Callable[[Source], list[str]], wrong: str, right: str
) -> None:
    assert rule(parse(wrong))
    assert not rule(parse(right))


@requirement("architecture:banned-calls")
def test_time_chance_and_environment_are_read_by_their_owners_only() -> None:
    found = {use for source in product() for use in banned_uses(source)}

    assert not found


@requirement("architecture:banned-calls")
def test_a_unit_test_waits_for_conditions_and_never_sleeps() -> None:
    found = [
        place for source in sources("tests/unit", "tests/contract") for place in real_sleeps(source)
    ]

    assert not found


@requirement("architecture:owned-tasks")
def test_no_task_is_started_and_forgotten() -> None:
    found = [place for source in product() for place in dropped_tasks(source)]

    assert not found


@requirement("architecture:reasoned-excepts")
def test_whoever_catches_everything_says_why() -> None:
    found = [place for source in product() for place in unreasoned_excepts(source)]

    assert not found
