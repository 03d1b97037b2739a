"""Holds packages to their folders: docstrings alone, one owner a name, protos in their place."""

import ast
import importlib
import re
from pathlib import Path

import pytest

from tests.architecture.sources import PROTOS, ROOT, Source, product, sources
from tests.requirements import requirement

PUBLIC_LIST = "services/runtime/__init__.py"
"""The one package that may also name what it offers."""


def is_docstring_only(source: Source) -> bool:
    """Return whether a module holds one docstring and nothing else."""
    return len(source.tree.body) == 1 and bool(ast.get_docstring(source.tree))


def is_public_list(source: Source) -> bool:
    """Return whether a module holds a docstring, imports and ``__all__``."""
    first, *rest = source.tree.body or [ast.Pass()]
    return isinstance(first, ast.Expr) and all(
        isinstance(node, ast.ImportFrom)
        or (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__")
        for node in rest
    )


@requirement("architecture:packages-are-docstrings")
def test_an_init_file_is_a_docstring() -> None:
    inits = [
        source for source in (*product(), *sources("tests")) if source.name.endswith("/__init__.py")
    ]

    wrong = [
        source.name
        for source in inits
        if not is_docstring_only(source)
        and not (source.name == PUBLIC_LIST and is_public_list(source))
    ]

    assert inits
    assert not wrong


@requirement("architecture:packages-are-docstrings")
def test_every_folder_of_modules_is_a_package() -> None:
    folders = {Path(source.name).parent for source in product()}

    missing = [folder for folder in sorted(folders) if not (ROOT / folder / "__init__.py").exists()]

    assert not missing


@pytest.mark.parametrize("name", ["services", "gateway", "sixhop", "tests"])
def test_a_top_level_name_is_ours_alone(name: str) -> None:
    folder = PROTOS if name == "sixhop" else ROOT

    module = importlib.import_module(name)

    assert [Path(path) for path in module.__path__] == [folder / name]


@requirement("architecture:proto-packages")
def test_a_proto_lies_where_its_package_says() -> None:
    protos = sorted(PROTOS.glob("sixhop/**/*.proto"))

    misplaced = {
        path.relative_to(PROTOS).as_posix(): package
        for path in protos
        if (package := _package(path)) != ".".join(path.relative_to(PROTOS).parent.parts)
    }

    assert protos
    assert not misplaced


@requirement("architecture:proto-packages")
def test_a_room_has_one_proto_named_after_it() -> None:
    folders = {path.parent for path in PROTOS.glob("sixhop/**/*.proto")}

    rooms = {
        folder.relative_to(PROTOS).as_posix(): sorted(path.name for path in folder.glob("*.proto"))
        for folder in folders
        if folder.parent.name != "type"
    }

    assert rooms == {room: [Path(room).parent.name + ".proto"] for room in rooms}


def _package(path: Path) -> str:
    found = re.search(r"^package ([\w.]+);", path.read_text(encoding="utf-8"), re.MULTILINE)
    return found[1] if found else ""
