"""Tests how lengths, sizes and documents are written."""

import io
import json

import pytest

from gateway.cli import console
from gateway.cli.console import (
    length_text,
    open_console,
    size_text,
    until_reader_leaves,
    write_json,
)
from gateway.cli.problem import FailedError


@pytest.mark.parametrize(
    ("length_s", "text"),
    [
        (0.0, "0 ms"),
        (0.0001, "<1 ms"),
        (0.0123, "12 ms"),
        (0.9994, "999 ms"),
        (0.9999, "1.00 s"),
        (29.999, "30.00 s"),
        (119.6, "120 s"),
        (-0.25, "-250 ms"),
        (-2.5, "-2.50 s"),
    ],
)
def test_lengths_are_short_and_never_round_to_nothing(length_s: float, text: str) -> None:
    assert length_text(length_s) == text


@pytest.mark.parametrize(
    ("byte_count", "text"), [(3, "3 bytes"), (2048, "2 KiB"), (5_000_000, "4.8 MiB")]
)
def test_sizes_are_short(byte_count: int, text: str) -> None:
    assert size_text(byte_count) == text


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
def test_a_document_is_one_line_of_json_in_every_encoding(encoding: str) -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding)

    write_json(stream, {"text": "退货率\n最高"})

    text = raw.getvalue().decode(encoding)
    assert text.count("\n") == 1
    assert json.loads(text) == {"text": "退货率\n最高"}


def test_what_is_piped_has_no_control_characters_and_is_shown_as_it_is() -> None:
    stream = io.StringIO()

    open_console(stream).print("[red]a[/red] :smile: 12", style="bold red")

    assert stream.getvalue() == "[red]a[/red] :smile: 12\n"


class LeftReader(io.StringIO):
    """Is a pipe whose other end is closed."""

    def write(self, text: str) -> int:
        raise BrokenPipeError


def test_a_reader_that_leaves_ends_the_showing_and_not_the_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    silenced: list[bool] = []
    monkeypatch.setattr(console, "silence_stdout", lambda: silenced.append(True))

    with until_reader_leaves():
        open_console(LeftReader()).print("text")
        pytest.fail("the console went on")
    with until_reader_leaves():
        write_json(LeftReader(), {})

    assert silenced == [True, True]


def test_output_that_finds_no_space_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        monkeypatch.setattr("sys.stdout", full)

        with pytest.raises(FailedError, match="no space is left"), until_reader_leaves():
            write_json(full, {"a": 1})
