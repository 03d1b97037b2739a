"""Holds the README to what is there."""

import re
from datetime import date
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gateway.cli.__main__ import app
from services.runtime.clock import MonotonicClock
from services.tool.config import ToolSettings
from services.tool.context import ToolResources
from services.tool.execution import execute
from services.tool.registry import Registry
from tests.requirements import requirement

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
MAX_LINES = 120
"""Two screens, and some."""


class NoModel:
    """Stands where the tool of the README needs nothing."""

    async def generate(self, messages: object, *, max_output_tokens: int = 0) -> object:
        """Refuse."""
        raise AssertionError("the tool of the README asks no model")


@requirement("readme:true")
async def test_the_tool_of_the_readme_works_as_it_stands_there(tmp_path: Path) -> None:
    code = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    assert code is not None
    (tmp_path / "working_days.py").write_text(code[1], encoding="utf-8")
    settings = ToolSettings(tool_dirs=(tmp_path,))
    clock = MonotonicClock()
    resources = ToolResources.create(settings, clock=clock, model=NoModel())  # type: ignore[arg-type]

    context = resources.context(
        sources=(), request_id="r", language="en", deadline=clock.now() + 10
    )
    first, last = date(2026, 11, 27), date(2026, 12, 1)
    arguments = {"first": first.isoformat(), "last": last.isoformat()}
    result = await execute(Registry.load(settings), "working_days", arguments, context)
    resources.close()

    assert result.data == {"count": 3}


@requirement("readme:true")
@pytest.mark.parametrize(
    "verb", ["up", "ask", "health", "shed", "check", "plan", "demo", "model-sim"]
)
def test_every_verb_of_the_readme_exists(verb: str) -> None:
    outcome = CliRunner().invoke(app, [verb, "--help"])

    assert outcome.exit_code == 0


@requirement("readme:true")
def test_every_path_that_the_readme_names_exists() -> None:
    named = re.findall(r"`((?:tests|services|docs|benchmarks|gateway)/[\w./]*\w/?)`", README)

    missing = [path for path in named if not (ROOT / path).exists()]

    assert len(named) > 10
    assert not missing


@requirement("readme:true")
def test_the_readme_names_the_two_commands_and_stays_short() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")

    assert "make demo" in README
    assert "make test" in README
    assert "\ndemo:" in makefile
    assert "\ntest:" in makefile
    assert len(README.splitlines()) <= MAX_LINES


@requirement("readme:true")
def test_its_curl_says_that_it_sends_json_as_the_door_wants_it() -> None:
    (asking,) = [line for line in README.splitlines() if line.startswith("curl ")]

    assert " --json " in asking
