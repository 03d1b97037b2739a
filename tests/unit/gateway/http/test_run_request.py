"""Tests that what requests for runs say outside of their bodies is read, or refused by its name."""

import pytest
from starlette.datastructures import Headers, QueryParams

from gateway.http.arriving import arrival_of
from gateway.http.run_request import last_seen, wanted_of
from services.runtime.credential import Credential
from services.runtime.errors import InvalidArgumentError


@pytest.mark.parametrize(
    ("header", "after", "seen"), [(None, "7", 7), ("9", None, 9), ("9", "7", 9), (None, None, 0)]
)
def test_what_a_browser_says_it_has_seen_counts_for_more(
    header: str | None, after: str | None, seen: int
) -> None:
    headers = Headers({"last-event-id": header} if header else {})

    assert last_seen(headers, QueryParams({"after": after} if after else {})) == seen


@pytest.mark.parametrize(("header", "after"), [("9", "x"), ("x", "7"), ("9", ""), ("-1", "7")])
def test_an_event_that_is_none_is_refused_even_where_the_other_counts(
    header: str, after: str
) -> None:
    with pytest.raises(InvalidArgumentError):
        last_seen(Headers({"last-event-id": header}), QueryParams({"after": after}))


@pytest.mark.parametrize(
    "query", ["status=", "status=all", "before=", "before=1", "limit=", "limit=x"]
)
def test_a_list_that_cannot_be_given_is_refused_by_its_parameter(query: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        wanted_of(QueryParams(query), "")

    assert caught.value.field == query.partition("=")[0]


@pytest.mark.parametrize(
    ("header", "value"), [("x-sixhop-criticality", ""), ("x-sixhop-deadline-ms", "-1")]
)
def test_a_header_that_is_not_understood_is_refused_by_its_name(header: str, value: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        arrival_of(Headers({header: value}), Credential())

    assert caught.value.field == header
