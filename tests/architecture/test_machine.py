"""Shows that a test which measures has the machine for itself."""

import pytest

from tests.processes import ROOT

CONFTEST = """
from pathlib import Path
from tests.machine import TakesTurns

def pytest_configure(config):
    config.addinivalue_line("markers", "alone")
    if hasattr(config, "workerinput"):
        turn, running = Path(__file__).parent / "turn", Path(__file__).parent / "running"
        config.pluginmanager.register(TakesTurns(turn, running))
"""
TESTS = """
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
{mark}

@pytest.mark.parametrize("number", range({count}))
def test_runs(number, tmp_path):
    mine = HERE / f"{name}.now"
    mine.touch()
    before = set(HERE.glob("*.now"))
    subprocess.run([sys.executable, "-c", ""], check=True)
    after = set(HERE.glob("*.now"))
    mine.unlink()
    assert {{each.stem for each in before | after}} {allowed}
"""
ALONE = "pytestmark = pytest.mark.alone"
COUNT = 8


def test_nothing_runs_beside_a_test_that_is_alone(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    (pytester.path / "turn").touch()
    (pytester.path / "running").touch()
    pytester.makeconftest(CONFTEST)
    for name, mark in (("one", ALONE), ("two", ""), ("three", ALONE), ("four", "")):
        allowed = f"== {{'{name}'}}" if mark else "<= {'two', 'four'}"
        text = TESTS.format(mark=mark, name=name, count=COUNT, allowed=allowed)
        pytester.makepyfile(**{f"test_{name}": text})

    result = pytester.runpytest_subprocess("-n2", "--dist=loadfile", "-p", "no:asyncio")

    result.assert_outcomes(passed=4 * COUNT)
