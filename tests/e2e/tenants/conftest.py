"""Offers the suite that knows tenants, and what asks its gateway."""

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from services.runtime.topology import GATEWAY
from tests.e2e.tenants.asking import Asker, asking
from tests.e2e.tenants.house import House, running_house


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
