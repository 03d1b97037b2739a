"""Shows that the watch over leaks, which every test is under, bites."""

import pytest

from tests.requirements import requirement

CONFTEST = "from tests.conftest import no_leak, no_process_left, no_task_left\n"
ARGUMENTS = (
    "--asyncio-mode=auto",
    "--override-ini=asyncio_default_fixture_loop_scope=function",
    "-p",
    "no:randomly",
    "-p",
    "no:cacheprovider",
)

LEAVES_A_TASK = """
import asyncio

kept = set()

async def test_leaves_a_task():
    kept.add(asyncio.create_task(asyncio.Event().wait()))
"""

LEAVES_A_PROCESS = """
import subprocess
import sys

kept = set()

def test_leaves_a_process():
    kept.add(subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE))

def test_next():
    for process in kept:
        process.communicate()
"""

LEAVES_NOTHING = """
import asyncio

async def test_leaves_nothing():
    await asyncio.create_task(asyncio.sleep(0))
    asyncio.create_task(asyncio.sleep(0.01))
"""


@requirement("architecture:owned-tasks")
@pytest.mark.parametrize("leak", [LEAVES_A_TASK, LEAVES_A_PROCESS])
def test_a_leak_fails_the_test_that_made_it(pytester: pytest.Pytester, leak: str) -> None:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(leak)

    result = pytester.runpytest_inprocess(*ARGUMENTS)

    result.assert_outcomes(passed=leak.count("def test_"), errors=1)
    result.stdout.fnmatch_lines(["E * left behind: *"])


def test_what_ends_by_itself_is_no_leak(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(LEAVES_NOTHING)

    result = pytester.runpytest_inprocess(*ARGUMENTS)

    result.assert_outcomes(passed=1)
