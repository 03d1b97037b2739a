"""Tests how lengths of time are read."""

import pytest

from gateway.manifests.lengths import seconds


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("15s", 15.0),
        ("0.25s", 0.25),
        ("250ms", 0.25),
        ("1m30s", 90.0),
        ("1h", 3600.0),
        ("0s", 0.0),
        ("15", None),
        ("5sec", None),
        ("s", None),
        ("-1s", None),
        ("", None),
        (15, None),
        (None, None),
    ],
)
def test_only_what_the_cluster_takes_is_a_length(text: object, expected: float | None) -> None:
    assert seconds(text) == (None if expected is None else pytest.approx(expected))
