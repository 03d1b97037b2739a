"""Holds runs that go on by themselves to an owner that bounds and ends them."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import cast

import pytest

from gateway.desk import Desk
from gateway.runs.starting import RunStarter, cancel
from services.runtime.call import Inbound
from services.runtime.clock import ManualClock
from services.runtime.cutoff import Cutoffs
from services.runtime.errors import (
    LoadShedError,
    QuotaExceededError,
    RunCancelledError,
    SelfTimeoutError,
)
from sixhop.gateway.v1 import gateway_pb2
from sixhop.type.v1 import run_pb2
from tests.requirements import requirement
from tests.unit.gateway.runs.made import Gateway, kept, text
from tests.waiting import until

ASKED = gateway_pb2.RunRequest()
pytestmark = requirement("runs:go-on")


class Runs:
    """Runs whatever is asked for until it is told to end, in a gateway."""

    def __init__(self, clock: ManualClock) -> None:
        """Take the clock."""
        self.gateway = Gateway(clock)
        self.cutoffs = Cutoffs(clock)
        self.let = asyncio.Event()
        """Lets every run come to its end."""
        self.refuses = False
        self.ended: list[str] = []

    async def run(
        self, inbound: Inbound, request: gateway_pb2.RunRequest, let_in: Callable[[], None]
    ) -> AsyncGenerator[run_pb2.RunEvent, None]:
        """Run, as a desk does."""
        if self.refuses:
            raise LoadShedError("full", cause="limit")
        let_in()
        error: BaseException | None = None
        try:
            with self.cutoffs.begin(inbound.deadline, inbound, self._late) as cutoff:
                inbound.cutoff = cutoff
                yield run_pb2.RunEvent(accepted=run_pb2.RunAccepted())
                await cutoff.bound(self.let.wait())
        except BaseException as raised:
            error = raised
            raise
        finally:
            self.gateway.book.after(inbound, error)
            self.ended.append(str(kept(inbound).record.status))

    def _late(self, inbound: Inbound) -> Exception:
        return SelfTimeoutError("late")


@pytest.fixture
def runs(clock: ManualClock) -> Runs:
    """Return what runs."""
    return Runs(clock)


def starter(runs: Runs, max_count: int = 4) -> RunStarter:
    """Return what starts these runs."""
    return RunStarter(cast(Desk, runs), max_count)


async def test_a_run_that_was_started_needs_nobody(runs: Runs) -> None:
    inbound = runs.gateway.begin()

    await starter(runs).start(inbound, ASKED)
    runs.let.set()

    await until(lambda: runs.ended == ["ok"])


async def test_a_run_that_is_refused_is_refused_to_whoever_started_it(runs: Runs) -> None:
    runs.refuses = True

    with pytest.raises(LoadShedError):
        await starter(runs).start(runs.gateway.begin(), ASKED)


async def test_no_more_runs_go_on_than_may(runs: Runs) -> None:
    owner = starter(runs, max_count=2)
    for number in range(2):
        await owner.start(runs.gateway.begin(f"{number}"), ASKED)

    with pytest.raises(LoadShedError) as caught:
        await owner.start(runs.gateway.begin("more"), ASKED)
    runs.let.set()
    await until(lambda: len(runs.ended) == 2)
    await owner.start(runs.gateway.begin("later"), ASKED)

    assert (caught.value.cause, caught.value.retry_after_s) == ("max_started_count", 1.0)
    await owner.aclose()


@requirement("tenants:own-share")
async def test_a_tenant_with_a_name_starts_a_quarter_of_them(runs: Runs) -> None:
    owner = starter(runs, max_count=8)
    for number in range(2):
        await owner.start(runs.gateway.begin(f"{number}", "acme"), ASKED)

    with pytest.raises(QuotaExceededError, match=r"gateway\.runs\.max_started_count is 8"):
        await owner.start(runs.gateway.begin("more", "acme"), ASKED)
    await owner.start(runs.gateway.begin("other", "globex"), ASKED)
    runs.let.set()
    await until(lambda: len(runs.ended) == 3)
    await owner.start(runs.gateway.begin("later", "acme"), ASKED)

    await owner.aclose()


async def test_runs_that_end_in_time_are_waited_for_when_the_gateway_stops(runs: Runs) -> None:
    owner = starter(runs)
    await owner.start(runs.gateway.begin(), ASKED)

    draining = asyncio.create_task(owner.drain(5.0))
    await asyncio.sleep(0)
    runs.let.set()
    await draining

    assert runs.ended == ["ok"]


async def test_runs_that_do_not_are_ended_and_say_why(runs: Runs) -> None:
    owner = starter(runs)
    inbound = runs.gateway.begin()
    await owner.start(inbound, ASKED)

    await owner.drain(0.0)

    record = kept(inbound).record
    assert record.status == "cancelled"
    assert record.error is not None
    assert (record.error["reason"], record.error["cause"]) == (RunCancelledError.reason, "drain")


async def test_no_run_outlives_its_owner(runs: Runs) -> None:
    owner = starter(runs)
    await owner.start(runs.gateway.begin(), ASKED)

    await owner.aclose()

    assert runs.ended == ["cancelled"]


@requirement("runs:cancelled")
async def test_a_run_is_cancelled_once(runs: Runs) -> None:
    inbound = runs.gateway.begin()
    await starter(runs).start(inbound, ASKED)
    run = kept(inbound)

    first = cancel(run)
    await until(lambda: runs.ended == ["cancelled"])

    assert (first, cancel(run)) == (True, False)


async def test_a_run_that_nobody_serves_yet_cannot_be_cancelled(runs: Runs) -> None:
    inbound = runs.gateway.begin()
    runs.gateway.tell(inbound, text("So."))

    assert not cancel(kept(inbound))
