"""Watches that no test leaves anything behind, and offers what most tests take."""

import asyncio
import inspect
import os
import signal
from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path

import hypothesis
import psutil
import pytest
import pytest_asyncio

from services.runtime.clock import ManualClock
from tests.machine import TakesTurns
from tests.processes import SHARED, children

# As a hop does it, and before anything loads the library: two threads burn ten times the CPU.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# The same examples in every run, and no verdict on how fast a busy machine tries them.
hypothesis.settings.register_profile(
    "sixhop",
    deadline=None,
    derandomize=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("sixhop")

TESTS = Path(__file__).resolve().parent
HEARD = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
"""What `nohup`, or a shell that runs something beside it, has its commands ignore."""
MARKERS = {"integration": "integration", "e2e": "e2e", "drills": "drill"}
"""The marker that the tests of a folder get by themselves."""

FAILED = pytest.StashKey[bool]()
SETTLE_S = 0.25
"""How long a task may take to end after its test; the project promises as much to its callers."""


def hear_signals() -> None:
    """Hand none of the signals on as ignored: the processes of tests are to hear them.

    This process goes on as if it ignored them, by a handler that does nothing; of a handler a
    started program knows nothing.
    """
    for number in HEARD:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


hear_signals()


def pytest_configure(config: pytest.Config) -> None:
    """Let workers take turns: those of one checkout, whose files they lock."""
    if hasattr(config, "workerinput"):
        config.pluginmanager.register(TakesTurns(Path(__file__), TESTS / "machine.py"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test with what its folder says it is."""
    for item in items:
        folder = item.path.relative_to(TESTS).parts[0]
        if folder in MARKERS:
            item.add_marker(MARKERS[folder])
    # Who wants the machine alone waits for whoever is at work, and nobody works meanwhile: where
    # all of them come first, each hands it to the next. What is quick comes last, and leaves no
    # worker waiting for another at the end.
    alone = {item.path for item in items if item.get_closest_marker("alone")}
    items.sort(key=lambda item: (item.path not in alone, _length(item)))


def _length(item: pytest.Item) -> int:
    """Return how long the tests of a file take: most in e2e, least in unit."""
    folder = item.path.relative_to(TESTS).parts[0]
    return {"e2e": 0, "unit": 2}.get(folder, 1)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note that a test has failed."""
    report = yield
    item.stash[FAILED] = report.failed
    return report


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """End all that a test which has failed shares with others, whatever state it left it in.

    Its second try, and the next test, start it anew.
    """
    problem: BaseException | None = None
    if item.stash.get(FAILED, False):
        try:
            # As after the last test of all; pytest has no public way to say so.
            item.session._setupstate.teardown_exact(None)
        except BaseException as error:
            problem = error
    yield
    if problem is not None:
        raise problem


@pytest.fixture
def clock() -> ManualClock:
    """Return a clock that only the test moves."""
    return ManualClock()


@pytest.fixture(autouse=True)
def no_leak(request: pytest.FixtureRequest) -> None:
    """Hold every asynchronous test to leaving no task, and every one to leaving no process."""
    request.getfixturevalue("no_process_left")
    if inspect.iscoroutinefunction(getattr(request, "function", None)):
        request.getfixturevalue("no_task_left")


@pytest.fixture
def no_process_left() -> Iterator[None]:
    """Fail when a child process of the test is still there after it, and nobody else owns it."""
    before = children()
    yield
    left = children() - SHARED - before
    told = [str(each) for each in psutil.Process().children() if each.pid in left] if left else []
    assert not told, f"processes left behind: {sorted(told)}"


@pytest_asyncio.fixture
async def no_task_left() -> AsyncIterator[None]:
    """Fail when a task is still there after the test and all of its fixtures."""
    yield
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    if not tasks:
        return
    _, pending = await asyncio.wait(tasks, timeout=SETTLE_S)
    for task in pending:
        task.cancel()
    names = sorted(repr(task.get_coro()) for task in pending)
    assert not names, f"tasks left behind: {names}"
