"""Lets the client go while the model hop has no answer yet to read: before, and between, requests.

What a client can leave once a provider has its request is in test_client_gone.py.
"""

import asyncio
import time
from collections.abc import Iterator

import psutil
import pytest

from tests.e2e.client import IDLE_WITHIN_S, Client, Running, open_client
from tests.e2e.conftest import QUIET
from tests.e2e.suite import WAIT_S, Suite, eventually, running_suite, wait_until
from tests.listeners import full_listener
from tests.requirements import requirement

pytestmark = [requirement("cancel:every-phase"), pytest.mark.alone]

UNARY = pytest.mark.parametrize("unary", [False, True], ids=["run", "ask"])


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    """Return a suite with one connection to its provider, and a queue before it."""
    folder = tmp_path_factory.mktemp("narrow")
    settings = {
        "SIXHOP_MODEL__MAX_CONNECTIONS": "1",
        # Longer than the test takes on any machine: nothing must end but by the client.
        "SIXHOP_MODEL__CONNECT_TIMEOUT_S": "5",
    }
    with running_suite(folder, **QUIET, **settings) as suite:
        yield suite


@pytest.fixture(scope="module")
def unreachable(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Suite, int]]:
    """Return a suite whose provider takes no connections, and its port."""
    with full_listener() as port:
        folder = tmp_path_factory.mktemp("unreachable")
        settings = {
            "SIXHOP_MODEL__BASE_URL": f"http://127.0.0.1:{port}/v1",
            "SIXHOP_MODEL__CONNECT_TIMEOUT_S": "5",
        }
        with running_suite(folder, **QUIET, **settings) as suite:
            yield suite, port


async def goes(client: Client, run: Running) -> None:
    """Let the client of a run go, and hold every hop to having nothing left in time."""
    gone_at = time.monotonic()
    run.call.cancel()
    idle_s = await client.idle_after(gone_at)
    assert max(idle_s.values()) <= IDLE_WITHIN_S, idle_s


@UNARY
async def test_a_client_that_goes_while_a_connection_is_made_leaves_no_socket(
    unreachable: tuple[Suite, int], unary: bool
) -> None:
    suite, port = unreachable
    model = psutil.Process(suite.child("model").pid)

    def connecting() -> int:
        return sum(1 for c in model.net_connections("tcp") if c.raddr and c.raddr.port == port)

    async with open_client(suite) as client:
        before = connecting()
        run = client.run("Go.", agent="probe_stream", deadline_s=30.0, unary=unary)
        await eventually(lambda: [1] * (connecting() - before), WAIT_S, "the model hop connects")

        await goes(client, run)

        wait_until(lambda: connecting() <= before, WAIT_S, "the socket is closed")


@UNARY
async def test_a_client_that_goes_while_it_waits_for_a_connection_leaves_the_queue(
    narrow: Suite, unary: bool
) -> None:
    narrow.provider.behave("silent")
    async with open_client(narrow) as client:
        first = client.run("Go.", agent="probe_stream", deadline_s=30.0)
        await narrow.provider.asked(first.seen.run_id)
        second = client.run("Go.", agent="probe_stream", deadline_s=30.0, unary=unary)
        await client.busy("model", 2)

        second.call.cancel()
        await one_left(client)
        await goes(client, first)
        narrow.provider.behave("at-once")
        after = await client.answered("probe_stream", WAIT_S)

    assert narrow.provider.requests(second.seen.run_id) == []
    assert after.text


async def one_left(client: Client) -> None:
    """Wait until the model hop serves one call and makes one."""
    async with asyncio.timeout(WAIT_S):
        while True:
            state = await client.snapshot("model")
            if (state.inflight_count, state.outgoing_count) == (1, 1):
                return
            await asyncio.sleep(0.01)


@UNARY
async def test_a_client_that_goes_between_two_attempts_ends_them(
    narrow: Suite, unary: bool
) -> None:
    # It is asked to come back later, and waits as long before it does.
    narrow.provider.behave("503")
    async with open_client(narrow) as client:
        run = client.run("Go.", agent="probe_stream", deadline_s=30.0, unary=unary)
        await refused(narrow, run.seen.run_id)

        await goes(client, run)

        assert len(narrow.provider.requests(run.seen.run_id)) == 1
        assert (await client.snapshot("model")).queued_count == 0


async def refused(suite: Suite, run_id: str) -> None:
    """Wait until the provider has refused the first attempt of a run."""
    await eventually(
        lambda: [r for r in suite.provider.requests(run_id) if r["ended"] == "refused"],
        WAIT_S,
        "the provider refuses",
    )
