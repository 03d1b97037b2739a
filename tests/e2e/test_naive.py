"""Tests the suite with every control off: what users of other platforms have today."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import grpc
import pytest
import pytest_asyncio

from gateway.cli.profiles import named
from services.runtime.topology import DOMAIN, HOPS, ROUTING, TOOL
from tests.e2e.client import Client, open_client
from tests.e2e.suite import Suite, running_suite
from tests.e2e.test_engine import tool_run
from tests.requirements import requirement

ATTEMPTS = 4
"""The first one, and three blind retries."""


@pytest.fixture(scope="module")
def naive_suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    """Return a suite that runs the profile as it ships."""
    profile = str(named(Path("naive")))
    with running_suite(tmp_path_factory.mktemp("naive"), SIXHOP_CONFIG=profile) as started:
        yield started


@pytest_asyncio.fixture
async def naive(naive_suite: Suite) -> AsyncIterator[Client]:
    """Return a client of the suite."""
    async with open_client(naive_suite) as opened:
        await opened.warm()
        yield opened


@requirement("profile:naive")
async def test_every_hop_says_loudly_that_nothing_is_checked(naive: Client) -> None:
    for hop in HOPS:
        line = await naive.suite.line(hop, "", "started_unchecked")

        assert line["level"] == "warning"
        assert 'deadline.mode = "static"' in line["problem"]


@requirement("profile:naive")
async def test_the_naive_suite_answers_while_nothing_is_wrong(naive: Client) -> None:
    run = await naive.run("SELECT 1", agent="probe_sql").end()

    assert run.code is grpc.StatusCode.OK
    assert run.text


@requirement("profile:naive")
async def test_every_call_has_its_static_timeout_whatever_the_client_gave(naive: Client) -> None:
    given: dict[float, dict[str, float]] = {}
    for deadline_s in (9.0, 60.0):
        run = await naive.run("SELECT 1", agent="probe_sql", deadline_s=deadline_s).end()
        given[deadline_s] = {report.hop: report.given_s for report in run.reports}

    # Of nine seconds the second hop is given twenty-five.
    assert given[9.0] == pytest.approx({ROUTING: 25.0, DOMAIN: 8.0, TOOL: 12.0})
    assert given[60.0] == given[9.0]


@requirement("profile:naive")
async def test_a_callee_that_fails_sees_four_attempts_of_every_call(
    naive: Client, tmp_path: Path
) -> None:
    log = tmp_path / "arrivals"
    calls = 10

    runs = [await tool_run(naive, "faulty", log=str(log)).end() for _ in range(calls)]

    assert len(log.read_text().splitlines()) == ATTEMPTS * calls
    # No breaker has opened and no budget is empty: every run has waited for all four in vain.
    assert {run.details.get("originReason") for run in runs} == {"SELF_UNAVAILABLE"}, runs[0]
    assert {len([r for r in run.reports if r.hop == TOOL]) for run in runs} == {ATTEMPTS}
