"""Tests what is refused before a question is sent."""

import os
from pathlib import Path

import pytest

from gateway.cli import data_files
from gateway.cli.data_files import read_data_files
from gateway.cli.events import DataFile
from gateway.cli.problem import EXIT_USAGE, RefusedError


def refusal(*values: object) -> str:
    with pytest.raises(RefusedError) as caught:
        read_data_files([str(value) for value in values])
    assert caught.value.exit_code == EXIT_USAGE
    return caught.value.message


def test_a_file_is_read_with_its_name_alone(tmp_path: Path) -> None:
    file = tmp_path / "Verkäufe 2026.CSV"
    file.write_bytes(b"a,b\n1,2\n")

    assert read_data_files([str(file)]) == (DataFile("Verkäufe 2026.CSV", b"a,b\n1,2\n"),)


def test_a_name_behind_the_prefix_stands_for_a_dataset_of_the_suite() -> None:
    assert read_data_files(["name:orders"]) == (DataFile("orders"),)


def test_a_prefix_without_a_name_is_refused() -> None:
    assert "name:orders" in refusal("name: ")


def test_a_missing_file_is_refused_with_the_way_to_name_a_dataset(tmp_path: Path) -> None:
    message = refusal(tmp_path / "orders")

    assert "there is no such file" in message
    assert "name:NAME" in message


def test_a_folder_is_refused(tmp_path: Path) -> None:
    assert "it is a folder" in refusal(tmp_path)


def test_a_pipe_is_refused_without_waiting_for_its_writer(tmp_path: Path) -> None:
    pipe = tmp_path / "data.csv"
    os.mkfifo(pipe)

    assert "no regular file" in refusal(pipe)


def test_an_empty_file_is_refused_because_it_would_name_a_dataset(tmp_path: Path) -> None:
    file = tmp_path / "orders.csv"
    file.touch()

    assert "it is empty" in refusal(file)


@pytest.mark.parametrize("name", ["photo.png", "table.xlsx", "data.csv.gz"])
def test_an_unknown_kind_is_refused_with_the_known_ones(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_bytes(b"x")

    assert ".parquet" in refusal(file)


def test_a_name_without_a_suffix_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "data"
    file.write_bytes(b"x")

    assert "no suffix" in refusal(file)


def test_a_file_that_may_not_be_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "data.csv"
    file.write_bytes(b"x")

    def denied(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", denied)  # the tests may run as root, whom nothing is denied

    assert "may not be read" in refusal(file)


def test_a_name_that_no_system_takes_is_refused() -> None:
    assert "cannot be read" in refusal("data\0.csv")
    assert "cannot be read" in refusal("x" * 5000 + ".csv")


def test_the_largest_file_passes_and_one_byte_more_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_files, "MAX_FILE_BYTES", 10)
    file = tmp_path / "data.csv"
    file.write_bytes(b"0123456789")
    assert read_data_files([str(file)])

    file.write_bytes(b"0123456789a")

    assert "more than 10 bytes" in refusal(file)


def test_files_that_do_not_fit_one_message_together_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_files, "MAX_TOTAL_BYTES", 10)
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_bytes(b"123456")

    assert "together" in refusal(tmp_path / "a.csv", tmp_path / "b.csv")


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "data.csv").write_bytes(b"x")

    assert "rename one" in refusal(tmp_path / "a" / "data.csv", tmp_path / "b" / "data.csv")
