"""Holds the fingerprint of a process to changing with its state, and with nothing else."""

from collections.abc import Callable

import pytest

from services.runtime.call import Criticality
from services.runtime.clock import ManualClock
from services.runtime.policies.limit import Fixed
from services.runtime.process_state import ProcessState
from tests.unit.runtime.policies.client_samples import failed, one
from tests.unit.runtime.processes import process_state


def not_ready(state: ProcessState) -> None:
    """Make a process not ready."""
    state.health.ready, state.health.detail = False, "its event loop lags"


def other_detail(state: ProcessState) -> None:
    """Make it say something else."""
    state.health.detail = "something else"


def other_limit(state: ProcessState) -> None:
    """Make its limit another one."""
    assert state.guards is not None
    state.guards.admission._limit = Fixed(3)


def ordered(state: ProcessState) -> None:
    """Close its door."""
    assert state.guards is not None
    state.guards.shed.order("too much", 60.0)


def ordered_otherwise(state: ProcessState) -> None:
    """Narrow its door."""
    assert state.guards is not None
    state.guards.shed.order("too much", 60.0, Criticality.SHEDDABLE)


@pytest.mark.parametrize(
    "change", [not_ready, other_detail, other_limit, ordered, ordered_otherwise]
)
def test_a_change_of_state_changes_it(
    manual: ManualClock, change: Callable[[ProcessState], None]
) -> None:
    state = process_state(manual)
    before = state.fingerprint()

    change(state)

    assert state.fingerprint() != before
    assert state.fingerprint() == state.fingerprint()


async def test_every_move_of_a_breaker_changes_it_time_alone_included(
    manual: ManualClock,
) -> None:
    state = process_state(manual)
    assert state.policies is not None
    seen = [state.fingerprint()]
    for _ in range(10):
        await one(state.policies.breakers, manual, 0.1, failed())
    seen.append(state.fingerprint())
    manual.advance(30.0)
    seen.append(state.fingerprint())
    manual.advance(30.0)
    seen.append(state.fingerprint())

    assert len(set(seen)) == 4


def test_the_end_of_an_order_changes_it_without_anybody_calling(manual: ManualClock) -> None:
    state = process_state(manual)
    ordered(state)
    during = state.fingerprint()
    manual.advance(60.0)

    assert state.fingerprint() != during


async def test_calls_that_change_nothing_leave_it(manual: ManualClock) -> None:
    state = process_state(manual)
    assert state.policies is not None
    await one(state.policies.breakers, manual)
    before = state.fingerprint()

    await one(state.policies.breakers, manual)
    state.activity.record(0.1, 0.0, failed=False)
    state.activity.inflight += 1

    assert state.fingerprint() == before


def test_it_works_without_policies(manual: ManualClock) -> None:
    state = process_state(manual, engine=False)
    before = state.fingerprint()
    not_ready(state)

    assert state.fingerprint() != before
