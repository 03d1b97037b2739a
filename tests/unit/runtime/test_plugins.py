"""Holds additions to being one file that exports one constant, and to errors that name the file."""

from pathlib import Path

import pytest

from services.runtime.plugins import PluginError, discover

NOWHERE = Path("/nonexistent")


def found(*folders: Path) -> list[tuple[str, object]]:
    """Return what some extra folders offer."""
    return list(
        discover(NOWHERE, "none", extra_folders=folders, group="sixhop.none", constant="THING")
    )


def write(folder: Path, name: str, text: str) -> Path:
    """Put a file into a folder."""
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def test_each_file_gives_its_constant_in_the_order_of_the_names(tmp_path: Path) -> None:
    second = write(tmp_path, "b.py", "THING = 2\n")
    first = write(tmp_path, "a.py", "THING = 1\n")
    write(tmp_path, "_private.py", "raise RuntimeError\n")
    write(tmp_path, "notes.txt", "nothing")

    assert found(tmp_path) == [(str(first), 1), (str(second), 2)]


def test_files_of_the_same_name_in_two_folders_are_two(tmp_path: Path) -> None:
    write(tmp_path / "one", "a.py", "THING = 1\n")
    write(tmp_path / "two", "a.py", "THING = 2\n")

    assert [thing for _, thing in found(tmp_path / "one", tmp_path / "two")] == [1, 2]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("OTHER = 1\n", "it exports no THING; write THING = ..."),
        ("THING = None\n", "it exports no THING"),
        ("import nowhere_at_all\n", "importing it failed with ModuleNotFoundError"),
        ("THING = (\n", "importing it failed with SyntaxError"),
        ("1 / 0\n", "importing it failed with ZeroDivisionError"),
    ],
)
def test_a_file_that_is_no_addition_is_named_with_its_problem(
    tmp_path: Path, text: str, problem: str
) -> None:
    file = write(tmp_path, "a.py", text)

    with pytest.raises(PluginError) as caught:
        found(tmp_path)

    assert caught.value.origin == str(file)
    assert problem in caught.value.problem


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(PluginError, match="does not exist; correct the configuration"):
        found(tmp_path / "none")
