"""Tests what is told about a process that has ended."""

from pathlib import Path

import pytest

from gateway.cli.supervisor import ending_text, last_problem

REFUSED = b'{"event":"refused_to_start","problem":"tool.max_rows: too small"}\n'


@pytest.mark.parametrize(
    ("returncode", "text"),
    [
        (0, "exited with code 0"),
        (2, "exited with code 2"),
        (-9, "was killed by SIGKILL"),
        (-11, "was killed by SIGSEGV"),
        (-250, "was killed by signal 250"),
    ],
)
def test_an_ending_is_told_as_people_say_it(returncode: int, text: str) -> None:
    assert ending_text(returncode) == text


def test_the_reason_of_a_refusal_is_found_among_other_lines(tmp_path: Path) -> None:
    log = tmp_path / "tool.log"
    log.write_bytes(b'noise\n{"event":"hop_serving"}\n' + REFUSED + b"{not json\n")

    assert last_problem(log, 0) == "tool.max_rows: too small"


def test_a_former_life_is_not_taken_for_the_present_one(tmp_path: Path) -> None:
    log = tmp_path / "tool.log"
    log.write_bytes(REFUSED + b'{"event":"hop_serving"}\n')

    assert last_problem(log, len(REFUSED)) == ""


def test_the_last_line_of_a_traceback_is_the_reason(tmp_path: Path) -> None:
    log = tmp_path / "tool.log"
    log.write_bytes(b"Traceback (most recent call last):\n  File x\nImportError: no duckdb\n\n")

    assert last_problem(log, 0) == "ImportError: no duckdb"


def test_a_log_that_says_nothing_gives_no_reason(tmp_path: Path) -> None:
    log = tmp_path / "tool.log"
    log.write_bytes(b'{"event":"hop_serving"}\n\xff\xfe')

    assert last_problem(log, 0) in ("", "\ufffd\ufffd")
