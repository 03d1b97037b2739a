"""Offers the tables of the domain's tests."""

from collections.abc import Iterator

import pytest

from tests.unit.domain.database import Database


@pytest.fixture(scope="session")
def tables() -> Iterator[Database]:
    """Return a database with the three tables that nobody changes."""
    database = Database()
    for name in ("shop", "xiaoshou", "odd"):
        database.load(name)
    yield database
    database.close()


@pytest.fixture
def database() -> Iterator[Database]:
    """Return an empty database."""
    database = Database()
    yield database
    database.close()
