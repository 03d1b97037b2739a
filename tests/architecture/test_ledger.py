"""Holds the ledger of promises and the tests to each other."""

import ast
from collections.abc import Iterator

import pytest

from tests.architecture.sources import Source, parse, sources
from tests.requirements import REQUIREMENTS, requirement

LEDGER_FOLDERS = ("tests/contract", "tests/integration", "tests/e2e", "tests/drills")
"""Where every test is there for a promise; elsewhere a test may be there for a detail."""


def claims(source: Source) -> Iterator[tuple[str, set[str]]]:
    """Yield each test of a module with the entries that it, or its whole module, claims."""
    shared = {
        entry
        for node in source.tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
        for entry in _entries(node.value)
    }
    for function in source.functions():
        if function.name.startswith("test_"):
            own = {entry for mark in function.decorator_list for entry in _entries(mark)}
            yield f"{source.name}::{function.name}", own | shared


def _entries(node: ast.expr) -> set[str]:
    return {
        argument.value
        for call in ast.walk(node)
        if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("requirement")
        for argument in call.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    }


def test_claims_are_read_from_decorators_and_from_the_module() -> None:
    source = parse(
        "pytestmark = [requirement('a:b')]\n@requirement('c:d', 'e:f')\nasync def test_x(): ...\n"
    )

    assert list(claims(source)) == [("sample.py::test_x", {"a:b", "c:d", "e:f"})]


def test_every_promise_has_a_test() -> None:
    claimed = {
        entry for source in sources("tests") for _, entries in claims(source) for entry in entries
    }

    assert set(REQUIREMENTS) - claimed == set()


def test_every_test_of_behaviour_is_there_for_a_promise() -> None:
    idle = [
        name
        for source in sources(*LEDGER_FOLDERS)
        for name, entries in claims(source)
        if not entries
    ]

    assert not idle


def test_an_unknown_promise_cannot_be_claimed() -> None:
    with pytest.raises(KeyError):
        requirement("no:such-promise")
