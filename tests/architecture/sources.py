"""Finds the Python that people wrote here, as text and as syntax trees."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROTOS = ROOT / "protos"
PRODUCT_FOLDERS = ("services", "gateway")
TOOLING_FOLDERS = ("tests", "benchmarks", "scripts", "k8s")

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Source:
    """Holds one module of ours."""

    name: str
    """Its path from the root of the repository, with slashes."""
    text: str
    """What is in it."""
    tree: ast.Module
    """The same, parsed."""

    def functions(self) -> Iterator[FunctionNode]:
        """Yield every function and method, nested ones included."""
        for node in ast.walk(self.tree):
            if isinstance(node, FunctionNode):
                yield node


def sources(*folders: str) -> tuple[Source, ...]:
    """Return the modules of some folders of the repository, in order; a missing folder has none."""
    paths = sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    return tuple(_read(path) for path in paths)


def product() -> tuple[Source, ...]:
    """Return what is shipped, without generated code."""
    return sources(*PRODUCT_FOLDERS)


def everything() -> tuple[Source, ...]:
    """Return all that people wrote."""
    return (*product(), *sources(*TOOLING_FOLDERS), _read(PROTOS / "generate.py"))


def parse(text: str, name: str = "sample.py") -> Source:
    """Return a module made of text, to show a rule what it must find."""
    return Source(name=name, text=text, tree=ast.parse(text))


@cache
def _read(path: Path) -> Source:
    return parse(path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix())
