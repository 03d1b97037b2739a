"""Shows that a test which is tried once more, as .ci/run has it, meets nothing of its first try."""

import pytest

CONFTEST = """
from tests.conftest import pytest_runtest_makereport, pytest_runtest_teardown
"""
FAILS_ONCE = """
import pytest

starts = []

@pytest.fixture(scope="{scope}")
def shared():
    starts.append("start")
    yield []
    starts.append("end")

def test_before(shared):
    assert starts == ["start"]

def test_fails_once(shared):
    shared.append(1)
    assert starts.count("start") == 2
    assert shared == [1]

def test_after(shared):
    assert starts == ["start", "end", "start"]
    assert shared == [1]
"""
ARGUMENTS = ("--reruns=1", "-p", "no:asyncio", "-p", "no:randomly", "-p", "no:cacheprovider")


@pytest.mark.parametrize("scope", ["module", "session"])
def test_a_second_try_has_all_that_it_shares_started_anew(
    pytester: pytest.Pytester, scope: str
) -> None:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(FAILS_ONCE.format(scope=scope))

    result = pytester.runpytest_inprocess(*ARGUMENTS)

    outcomes = result.parseoutcomes()
    assert (outcomes["passed"], outcomes["rerun"], outcomes.get("failed")) == (3, 1, None)


def test_what_fails_twice_fails(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile("def test_fails():\n    assert False\n")

    result = pytester.runpytest_inprocess(*ARGUMENTS)

    outcomes = result.parseoutcomes()
    assert (outcomes["failed"], outcomes["rerun"]) == (1, 1)
