"""Gives the runtime's unit tests loops on which waiting takes no time."""

from collections.abc import Mapping
from typing import Any

import pytest

from services.runtime.clock import ManualClock
from tests.unit.runtime.fake_time import LoopClock, loop_factories


def pytest_asyncio_loop_factories(config: pytest.Config, item: pytest.Item) -> Mapping[str, Any]:
    """Make the loops of this folder jump."""
    return loop_factories()


@pytest.fixture
def clock() -> LoopClock:
    """Return the clock of the test's loop."""
    return LoopClock()


@pytest.fixture
def manual() -> ManualClock:
    """Return a clock that only the test moves."""
    return ManualClock()
