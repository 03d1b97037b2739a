"""Finds additions: one file that exports one constant, wherever it is kept."""

import hashlib
import importlib
import importlib.util
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any


class PluginError(Exception):
    """Refuses a file or package that is no addition; says which and why."""

    def __init__(self, origin: str, problem: str) -> None:
        """Take where it came from, and the problem, a sentence that says what to do."""
        super().__init__(f"{origin}: {problem}")
        self.origin = origin
        self.problem = problem


def discover(
    folder: Path, package: str, *, extra_folders: Sequence[Path], group: str, constant: str
) -> Iterator[tuple[str, object]]:
    """Yield pairs of origin and exported object, in the order of the files' names.

    Args:
        folder: the built-in folder.
        package: the package of the built-in folder.
        extra_folders: folders named in the configuration.
        group: the entry-point group that installed packages use.
        constant: the name that each file exports, such as `TOOL`.

    Raises:
        PluginError: a folder is missing, a file cannot be imported or exports nothing.
    """
    for file in _files(folder):
        load = partial(importlib.import_module, f"{package}.{file.stem}")
        yield str(file), _exported(str(file), load, constant)
    for extra in extra_folders:
        if not extra.is_dir():
            raise PluginError(str(extra), "this folder does not exist; correct the configuration")
        for file in _files(extra):
            yield str(file), _exported(str(file), partial(_import_file, file), constant)
    for entry in entry_points(group=group):
        origin = f"entry point {entry.name} = {entry.value}"
        yield origin, _guarded(origin, entry.load)


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.glob("*.py") if not file.name.startswith("_"))


def _import_file(file: Path) -> ModuleType:
    # The digest keeps files of the same name in two folders apart.
    digest = hashlib.sha256(str(file.resolve()).encode()).hexdigest()[:12]
    spec = importlib.util.spec_from_file_location(f"sixhop_addition_{digest}_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise PluginError(str(file), "this file cannot be imported as Python")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _exported(origin: str, load: Callable[[], ModuleType], constant: str) -> object:
    module = _guarded(origin, load)
    exported = getattr(module, constant, None)
    if exported is None:
        raise PluginError(origin, f"it exports no {constant}; write {constant} = ...")
    return exported


def _guarded(origin: str, load: Callable[[], Any]) -> Any:
    try:
        return load()
    except PluginError:
        raise
    except Exception as error:  # the file is its author's code: it may raise anything
        raise PluginError(
            origin, f"importing it failed with {type(error).__name__}: {error}"
        ) from error
