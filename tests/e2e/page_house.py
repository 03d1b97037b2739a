"""Runs the suite that the tests of the page look at: simulated models, two tenants, an operator."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.simulators import rescued
from tests.e2e.suite import Suite
from tests.e2e.tenants.asking import put_key

KEY = "open-sesame-4711"
"""The operator's."""
SETTINGS = {
    "SIXHOP_ENGINE__ENABLED": "true",
    "SIXHOP_OPERATOR__KEY": KEY,
    # A breaker that opens is seen to probe within the test.
    "SIXHOP_BREAKER__OPEN_DURATION_S": "2",
}


@dataclass(frozen=True)
class House:
    """Is the suite, with the keys of two tenants."""

    suite: Suite
    acme: str
    globex: str


@contextmanager
def running_house(folder: Path) -> Iterator[House]:
    """Run the suite while the block runs."""
    keys = folder / "keys.json"
    acme, globex = put_key(keys, "acme"), put_key(keys, "globex")
    asking = {"SIXHOP_GATEWAY__KEYS_FILE": str(keys), "SIXHOP_GATEWAY__OPEN": "false"}
    with rescued(folder, **asking, **SETTINGS) as started:
        yield House(started.suite, acme, globex)
