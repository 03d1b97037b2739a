"""Holds the rules of sizes to finding places that are too few."""

import pytest

from services.runtime.checks.finding import Severity
from tests.unit.runtime.checks.configuring import ENGINE, found

MORE = {"LIMIT__MAX_INFLIGHT": "321"}


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        (MORE, "limit.max_inflight 321"),
        (
            {"LIMIT__ALGORITHM": "gradient", "LIMIT__GRADIENT__MAX_LIMIT": "321"},
            "limit.gradient.max_limit 321",
        ),
    ],
)
def test_who_is_let_in_and_finds_no_place_is_a_warning(settings: dict[str, str], name: str) -> None:
    (told,) = found("admitted-find-places", **ENGINE, **settings)

    assert told.severity is Severity.WARNING
    assert name in told.text
    assert "64 permits and 256 places to wait, 320 in all" in told.text


@pytest.mark.parametrize(
    "mended",
    [
        {"LIMIT__MAX_INFLIGHT": "320"},
        MORE | {"BULKHEAD__CORE__MAX_QUEUED": "257"},
        MORE | {"BULKHEAD__MODE": "observe"},
        MORE | {"ADMISSION__LIMIT": "off"},
    ],
)
def test_with_places_for_all_there_is_nothing_to_tell(mended: dict[str, str]) -> None:
    assert found("admitted-find-places", **ENGINE, **mended) == []
