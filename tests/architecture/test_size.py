"""Holds files and functions to a size that can be read at once."""

from tests.architecture.sources import everything
from tests.requirements import requirement

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60


@requirement("architecture:code-size")
def test_no_file_is_longer_than_one_can_keep_in_mind() -> None:
    lengths = {source.name: len(source.text.splitlines()) for source in everything()}

    long = {name: lines for name, lines in lengths.items() if lines > MAX_FILE_LINES}

    assert lengths
    assert not long


@requirement("architecture:code-size")
def test_no_function_is_longer_than_a_screen_and_a_half() -> None:
    long = {
        f"{source.name}:{function.lineno} {function.name}": lines
        for source in everything()
        for function in source.functions()
        if (lines := (function.end_lineno or 0) - function.lineno + 1) > MAX_FUNCTION_LINES
    }

    assert not long
