"""Tests where the files of an answer end up."""

from pathlib import Path

import pytest

from gateway.cli.artefacts import require_folder, safe_name, save
from gateway.cli.events import Artefact
from gateway.cli.problem import EXIT_FAILED, EXIT_USAGE, FailedError, RefusedError


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("report.pdf", "report.pdf"),
        ("图表.png", "图表.png"),
        ("../../etc/passwd", "passwd"),
        ("/etc/passwd", "passwd"),
        ("..\\..\\boot.ini", "boot.ini"),
        ("C:evil.pdf", "evil.pdf"),
        ("a\x1b[31m\n.pdf", "a_[31m_.pdf"),
        ("..", "file"),
        ("", "file"),
        (".bashrc", "bashrc"),
        ("a/", "a"),
        ("\ud800.pdf", "?.pdf"),
    ],
)
def test_a_name_is_only_ever_a_name(name: str, safe: str) -> None:
    assert safe_name(name) == safe.replace("?", "_")


def test_a_long_name_keeps_its_suffix() -> None:
    name = safe_name("x" * 500 + ".pdf")

    assert len(name) <= 120
    assert name.endswith(".pdf")


def test_files_are_written_and_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "report.pdf").write_bytes(b"mine")

    saved = save(
        [Artefact("report.pdf", "application/pdf", b"1"), Artefact("report.pdf", "x", b"22")],
        tmp_path,
    )

    assert [Path(file.path).name for file in saved] == ["report-2.pdf", "report-3.pdf"]
    assert [file.byte_count for file in saved] == [1, 2]
    assert (tmp_path / "report.pdf").read_bytes() == b"mine"
    assert (tmp_path / "report-3.pdf").read_bytes() == b"22"


def test_an_answer_without_files_makes_no_folder(tmp_path: Path) -> None:
    save([], tmp_path / "new")

    assert not (tmp_path / "new").exists()


def test_a_folder_that_is_a_file_is_refused_before_the_run(tmp_path: Path) -> None:
    (tmp_path / "out").touch()

    with pytest.raises(RefusedError, match="--out") as caught:
        require_folder(tmp_path / "out")

    assert caught.value.exit_code == EXIT_USAGE


def test_a_file_that_cannot_be_written_is_a_failure_that_says_where(tmp_path: Path) -> None:
    (tmp_path / "out").touch()

    with pytest.raises(FailedError, match=r"report\.pdf cannot be written") as caught:
        save([Artefact("report.pdf", "application/pdf", b"1")], tmp_path / "out")

    assert caught.value.exit_code == EXIT_FAILED
