"""Holds what there is only so much of to being shared among tenants."""

from contextlib import ExitStack

import pytest

from gateway.runs.places import Places
from services.runtime.errors import LoadShedError, QuotaExceededError
from tests.requirements import requirement

pytestmark = requirement("tenants:own-share")


def take(stack: ExitStack, places: Places, tenant: str, count: int) -> None:
    """Hold places of a tenant until the stack is left."""
    for _ in range(count):
        stack.enter_context(places.held(tenant))


def test_a_tenant_with_a_name_has_a_quarter_and_the_others_have_theirs() -> None:
    places = Places("streams are read", "max_reader_count", 8)
    with ExitStack() as stack:
        take(stack, places, "acme", 2)
        with pytest.raises(QuotaExceededError) as caught:
            take(stack, places, "acme", 1)
        take(stack, places, "globex", 2)

    assert caught.value.message.startswith("2 streams are read already for tenant acme")
    assert "gateway.runs.max_reader_count is 8" in caught.value.message
    assert (caught.value.cause, caught.value.retry_after_s) == ("max_reader_count", 1.0)
    with ExitStack() as stack:
        take(stack, places, "acme", 2)


def test_where_nobody_is_asked_all_may_be_taken_and_no_more() -> None:
    places = Places("streams are read", "max_reader_count", 8)
    with ExitStack() as stack:
        take(stack, places, "", 8)
        for tenant in ("", "acme"):
            with pytest.raises(LoadShedError, match=r"gateway\.runs\.max_reader_count is 8"):
                take(stack, places, tenant, 1)


@pytest.mark.parametrize("max_count", [1, 3])
def test_a_tenant_has_one_place_however_few_there_are(max_count: int) -> None:
    places = Places("streams are read", "max_reader_count", max_count)
    with ExitStack() as stack:
        take(stack, places, "acme", 1)
        with pytest.raises((QuotaExceededError, LoadShedError)):
            take(stack, places, "acme", 1)
