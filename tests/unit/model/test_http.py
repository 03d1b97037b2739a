"""Reads what providers say in their headers."""

from datetime import UTC, datetime

import pytest

from services.model.http import MAX_RETRY_AFTER_S, retry_after_s

NOW = datetime(2026, 11, 29, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "wanted_s"),
    [
        ("7", 7.0),
        (" 7 ", 7.0),
        ("0", 0.0),
        ("Sun, 29 Nov 2026 12:00:30 GMT", 30.0),
        ("Sun, 29 Nov 2026 12:00:30 -0000", 30.0),
        ("Sun, 29 Nov 2026 11:00:00 GMT", 0.0),
        ("99999999", MAX_RETRY_AFTER_S),
        ("", None),
        ("soon", None),
        ("-7", None),
        ("1.5", 1.5),
        ("1e9", None),
        ("9" * 10, None),
    ],
)
def test_the_time_to_come_back_is_seconds_or_a_date(value: str, wanted_s: float | None) -> None:
    assert retry_after_s(value, NOW) == wanted_s
