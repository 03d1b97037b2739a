"""Tries every endpoint with what its OpenAPI document allows, and with what it does not.

Schemathesis makes the requests, some two thousand of them: see schemathesis.toml beside this file.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import pytest

from gateway.http.app import OPERATIONS
from gateway.http.operation import Operation
from services.runtime.telemetry import DEFECT
from tests.e2e.suite import HERE, Suite, running_suite
from tests.processes import ROOT
from tests.requirements import requirement

TRY_TIMEOUT_S = 150.0
"""Far above the twenty seconds that it takes."""
PATIENT = {
    "SIXHOP_BREAKER__MAX_FAILURE_RATIO": "0.9",
    "SIXHOP_BREAKER__MIN_CALLS": "12",
    "SIXHOP_BREAKER__SLOW_COUNT": "12",
    "SIXHOP_BREAKER__SLOW_OF": "12",
}
"""Breakers take orders, and do not open because the machine is busy for a moment."""
ABLE = {
    f"SIXHOP_MODEL__{ability}": "true"
    for ability in (
        "JSON_OBJECT",
        "JSON_SCHEMA",
        "SEED",
        "SINGLE_TOOL_CALL",
        "STRICT_TOOLS",
        "TOOLS",
    )
}
"""What a model cannot do is refused rightly, so this one can all of it."""


@dataclass(frozen=True, slots=True)
class Part:
    """Is what one run of Schemathesis has found."""

    code: int
    report: str
    exchanges: Sequence[dict[str, Any]]
    """Every request with its answer, as HAR has them."""


@dataclass(frozen=True, slots=True)
class Tried:
    """Is what Schemathesis has done to a suite, which still runs."""

    suite: Suite
    parts: Sequence["Part"]

    def media_types(self, operation: Operation) -> set[str]:
        """Return the media types of the answers of an endpoint that were no errors."""
        path = re.compile(re.sub(r"\{\w+\}", "[^/]+", operation.path))
        return {
            each["response"]["content"]["mimeType"].partition(";")[0]
            for part in self.parts
            for each in part.exchanges
            if each["request"]["method"] == operation.method
            and path.fullmatch(urlsplit(each["request"]["url"]).path)
            and each["response"]["status"] < 300
        }


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tried]:
    """Return what was tried with a suite whose provider answers at once."""
    folder = tmp_path_factory.mktemp("schema")
    with running_suite(folder, **PATIENT, **ABLE) as suite:
        suite.provider.behave("at-once")
        # An operator's order makes the suite refuse what it should take, and so comes last.
        others = _try(suite, "--exclude-tag=orders")
        orders = _try(suite, "--include-tag=orders", "--phases=examples,coverage,fuzzing")
        yield Tried(suite, [others, orders])


def _try(suite: Suite, which: str, *more: str) -> Part:
    """Try the endpoints that an option of Schemathesis chooses, with more of its options."""
    har = suite.folder / f"{which.strip('-')}.har"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "schemathesis.cli"),
            f"--config-file={HERE / 'schemathesis.toml'}",
            *("run", f"{suite.url}/openapi.json", which, *more),
            *("--no-color", f"--report-har-path={har}"),
        ],
        cwd=suite.folder,
        env=os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'protos'}"},
        capture_output=True,
        timeout=TRY_TIMEOUT_S,
        check=False,
    )
    exchanges = json.loads(har.read_bytes())["log"]["entries"] if har.exists() else []
    return Part(done.returncode, (done.stdout + done.stderr).decode(), exchanges)


@requirement("http:document-is-kept")
def test_schemathesis_finds_nothing(tried: Tried) -> None:
    for part in tried.parts:
        assert part.code == 0, part.report


@requirement("http:document-is-kept")
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.name)
def test_each_endpoint_was_answered_well_in_all_of_its_ways(
    tried: Tried, operation: Operation
) -> None:
    well = [each for each in operation.answers if each.status < 300]
    promised = {each.media_type for each in well if each.kind is not None}

    assert promised <= tried.media_types(operation)
    assert tried.media_types(operation)


@requirement("http:document-is-kept")
def test_no_hop_has_shown_a_defect(tried: Tried) -> None:
    # Within a stream it would have the status of an answer.
    found = [
        line
        for hop in tried.suite.hops
        for line in tried.suite.child(hop).events(DEFECT)
        if line["event"] == DEFECT
    ]

    assert not found
    assert all(tried.suite.child(hop).alive for hop in tried.suite.hops)
