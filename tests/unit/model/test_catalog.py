"""Finds backends where they are kept."""

from pathlib import Path

import pytest

from services.model.catalog import find_backend
from services.runtime.config import ConfigError

BACKEND = '''
"""Echoes."""

from services.model.backend import Backend, Capabilities
from services.model.backends.openai_compatible import connect

BACKEND = Backend(name="{name}", capabilities=Capabilities(tools=True), connect=connect)
'''


def test_the_shipped_backend_is_found_by_its_name() -> None:
    assert find_backend("openai_compatible").name == "openai_compatible"


def test_a_backend_is_one_file_in_a_folder_of_the_user(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(BACKEND.format(name="mine"), encoding="utf-8")

    found = find_backend("mine", [tmp_path])

    assert found.capabilities.tools


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (BACKEND.format(name="openai_compatible"), "already taken"),
        ("BACKEND = 7", "must be a Backend"),
        ("", "exports no BACKEND"),
        ("import no_such_module", "no_such_module"),
    ],
)
def test_a_file_that_is_no_backend_is_refused_by_name(
    tmp_path: Path, text: str, problem: str
) -> None:
    (tmp_path / "wrong.py").write_text(text, encoding="utf-8")

    with pytest.raises(ConfigError, match=problem) as caught:
        find_backend("openai_compatible", [tmp_path])

    assert "wrong.py" in str(caught.value)


def test_an_unknown_backend_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="known: openai_compatible"):
        find_backend("opneai")
