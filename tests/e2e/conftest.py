"""Offers the running suite, and a client for each test."""

import time
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from tests.e2e.client import Client, open_client
from tests.e2e.suite import HERE, Suite, TimeLimitError, running_suite

TIMEOUT_S = 180
"""After so long a test hangs, which has its suite started and may be tried twice."""

QUIET = {
    "SIXHOP_BREAKER__MODE": "observe",
    "SIXHOP_DOMAIN__TOOLS_REFRESH_INTERVAL_S": "3600",
}
"""What one test does to a hop must not keep the next one from it, and what a hop asks for itself
must not look like a call that was left behind. Breakers have suites of their own."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the tests of real processes more time than the others, where they do not take more."""
    for item in items:
        if HERE in item.path.parents:
            own = item.get_closest_marker("timeout")
            if own is None or own.args[0] < TIMEOUT_S:
                item.add_marker(pytest.mark.timeout(TIMEOUT_S), append=False)


@pytest.fixture(scope="session")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    """Return the suite that all tests share; each has it whole and idle."""
    with running_suite(tmp_path_factory.mktemp("suite"), **QUIET) as started:
        yield started


@pytest_asyncio.fixture
async def client(suite: Suite) -> AsyncIterator[Client]:
    """Return a client of the whole suite; a test that leaves something behind in it fails."""
    suite.heal()
    suite.provider.behave("at-once")
    async with open_client(suite) as opened:
        await opened.warm()
        yield opened
        suite.heal()
        try:
            await opened.idle_after(time.monotonic())
        except TimeLimitError:
            # The next test must not pay for this one.
            suite.kill()
            raise
