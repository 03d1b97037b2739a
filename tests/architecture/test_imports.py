"""Holds imports to the one direction that the contracts in pyproject.toml draw."""

import ast
import os
import subprocess
import sys
from pathlib import PurePosixPath

from importlinter import cli

from tests.architecture.sources import ROOT, Source, parse, product, sources
from tests.requirements import requirement

ROOM_FOLDERS = ("services/routing", "services/domain", "services/tool", "services/model")
WIRE_FILES = {"__main__.py", "service.py", "ports.py", "directory.py"}
"""The files of a room that may see messages of the wire."""


def imported_modules(source: Source) -> set[str]:
    """Return the dotted name of every module that a source imports, wherever in it."""
    names: set[str] = set()
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return names


def late_imports(source: Source) -> list[int]:
    """Return the lines of the imports that are not at the top, and whose block gives no reason.

    The reason is a comment above the first of them, such as what the import costs an idle process.
    """
    top = {id(node) for node in source.tree.body}
    guarded = {
        id(inner)
        for node in source.tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in node.body
    }
    late = [
        node
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Import | ast.ImportFrom) and id(node) not in top | guarded
    ]
    reasoned: set[int] = set()
    lines = source.text.splitlines()
    for node in late:
        above = node.lineno - 1
        if lines[above - 1].lstrip().startswith("#") or above in reasoned:
            reasoned.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return [node.lineno for node in late if node.lineno not in reasoned]


@requirement("architecture:import-direction")
def test_every_import_contract_is_kept() -> None:
    kept = cli.lint_imports(
        config_filename=str(ROOT / "pyproject.toml"), no_cache=True, no_logo=True
    )

    assert kept == 0


@requirement("architecture:import-direction")
def test_messages_of_the_wire_stop_at_the_doors_of_a_room() -> None:
    leaks = [
        f"{source.name}: {module}"
        for source in sources(*ROOM_FOLDERS)
        if PurePosixPath(source.name).name not in WIRE_FILES
        for module in sorted(imported_modules(source))
        if module.split(".")[0] in {"sixhop", "google"}
    ]

    assert not leaks


def test_an_inner_import_without_a_reason_is_found() -> None:
    source = parse("import a\ndef f():\n    import b\n    # heavy\n    import c\n    import d\n")

    assert late_imports(source) == [3]


def test_imports_are_at_the_top_or_say_why_not() -> None:
    late = {
        f"{source.name}:{line}"
        for source in product()
        if not source.name.endswith("__main__.py")  # what must precede grpc's import is set there
        for line in late_imports(source)
    }

    assert not late


def test_a_gateway_that_believes_no_tokens_loads_nothing_to_check_them() -> None:
    """Cryptography and an HTTP client would take a quarter of its memory."""
    look = (
        "import sys, services.runtime.process, gateway.service;"
        "print(sorted({'jwt', 'cryptography', 'aiohttp', 'redis'} & sys.modules.keys()))"
    )
    found = subprocess.run(
        [sys.executable, "-c", look],
        env=os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'protos'}"},
        capture_output=True,
        check=True,
        text=True,
        timeout=60,
    )

    assert found.stdout.strip() == "[]"
