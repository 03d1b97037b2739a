"""Offers the suite that knows tenants, and what asks its gateway."""

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from services.runtime.topology import GATEWAY
from tests.e2e.tenants.asking import Asker, asking
from tests.e2e.tenants.house import House, running_house

TIMEOUT_S = 60
"""How long one test may take with the start of its suite, on a machine that is busy."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the tests of real processes more time than the others."""
    for item in items:
        if "tenants" in item.path.parts and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TIMEOUT_S))


@pytest.fixture(scope="session")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """Return the suite that the tests here share."""
    with running_house(tmp_path_factory.mktemp("tenants")) as running:
        yield running


@pytest_asyncio.fixture
async def asker(house: House) -> AsyncIterator[Asker]:
    """Return what asks the gateway."""
    async with asking(house.suite.address(GATEWAY), house.suite.url) as opened:
        yield opened
